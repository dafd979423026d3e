# class: process
# tries: ends at once while a child holds its output open for two minutes
# network: any
# exit: 0
# timeout: 60
import os
import time

if os.fork() == 0:
    time.sleep(120)
    os._exit(0)
print("ATTEMPTED: the answer must come now, not after the time limit", flush=True)
