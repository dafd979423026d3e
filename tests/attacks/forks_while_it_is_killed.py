# class: process
# tries: twelve processes replace themselves all the time, so that a list of them is always old
# network: any
# bomb: yes
# exit: 0
import os
import signal
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ATTEMPTED: a hydra is left behind", flush=True)
for _ in range(12):
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
        os._exit(0)
time.sleep(0.5)
