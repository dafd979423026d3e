# class: output
# tries: an exception, arguments and paths of modules that name the caller's directories
# network: any
# exit: 1
import sys

print("ATTEMPTED:", sys.argv, __file__, flush=True)
raise RuntimeError(f"{sys.path} {sys.orig_argv}")
