# class: process
# tries: kills or stops its parent, the first process of its namespace, and everything it may
# network: any
# bomb: yes
# timeout: 8
import os
import signal

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: signals to all", flush=True)
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        for pid in (os.getppid(), 1, -1):
            try:
                os.kill(pid, number)
            except OSError:
                pass
signal.pause()
