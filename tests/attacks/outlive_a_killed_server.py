# class: process
# tries: lives on when the server dies, after it has disarmed whoever waits for that
# network: any
# bomb: yes
# timeout: 60
# needs: server-kill
import os
import signal
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
kept = []
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    for fd in range(12):  # a writer of the gate's own stdin: its end never comes
        try:
            kept.append(os.open(f"/proc/{pid}/fd/{fd}", os.O_WRONLY))
        except OSError:
            pass
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    if pid not in (1, os.getpid(), os.getppid()):
        os.kill(pid, signal.SIGKILL)
print("ATTEMPTED: nobody waits for the server any more", flush=True)
for _ in range(60):
    time.sleep(1)
