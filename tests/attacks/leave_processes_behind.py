# class: process
# tries: ends at once, but leaves a daemon in its own session, and a child that holds its output
# network: any
# exit: 0
# timeout: 60
import os
import time

print("ATTEMPTED: the answer must come now, and nobody may live on", flush=True)
if os.fork() == 0:
    time.sleep(120)
    os._exit(0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        time.sleep(120)
    os._exit(0)
