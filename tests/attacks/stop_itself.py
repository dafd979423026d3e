# class: process
# tries: stops itself: it neither runs nor ends
# network: any
# exit: timeout
# timeout: 3
import os
import signal

print("ATTEMPTED: stopped", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
