# class: resource
# tries: forks without end
# network: any
# bomb: yes
# with: --max-processes 64
# timeout: 15
import os
import signal
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: forking", flush=True)
made = 0
try:
    while made < 300:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError:
    pass
print(f"ESCAPED: {made} processes" if made > 100 else f"HELD: stopped after {made}")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
