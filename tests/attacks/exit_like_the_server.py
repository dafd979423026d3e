# class: output
# tries: ends with the code that means "nothing was run", and words to go with it
# network: any
# exit: 125
import os
import sys

print("ATTEMPTED: an exit code of ours", flush=True)
print("pysbx: no sandbox works here", file=sys.stderr, flush=True)
os._exit(125)
