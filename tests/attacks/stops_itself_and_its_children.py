# class: process
# tries: stops all its processes: they cannot be asked to end, only killed
# network: any
# exit: timeout
# timeout: 3
import os
import signal

print("ATTEMPTED: everything is stopped", flush=True)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
os.kill(os.getpid(), signal.SIGSTOP)
