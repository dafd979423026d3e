# class: kernel
# tries: a core dump: the kernel may hand it to a program of the host, even where the limit is 0
# network: any
import contextlib
import os
import resource
import signal

hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
for limit in (hard, 0):
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (limit, hard))
        print(f"ESCAPED: the limit was set to {limit}")
child = os.fork()
if child == 0:
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)
dumped = os.WCOREDUMP(os.waitpid(child, 0)[1])
print("ESCAPED: it dumped core" if dumped else "HELD: no core, and no limit to change")
