# class: output
# tries: closes its streams and works on: their end is not the end of the run
# network: any
# exit: timeout
# timeout: 3
import os
import time

print("ATTEMPTED: closing", flush=True)
os.closerange(0, 64)
time.sleep(60)
