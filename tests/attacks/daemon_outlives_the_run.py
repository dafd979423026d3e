# class: process
# tries: leaves a daemon in a session of its own and ends at once
# network: any
# exit: 0
import os
import time

print("ATTEMPTED: a daemon is left", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        time.sleep(120)
    os._exit(0)
os.wait()
