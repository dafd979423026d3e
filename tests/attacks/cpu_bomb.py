# class: resource
# tries: keeps every core busy with 32 processes
# network: any
# bomb: yes
# exit: timeout
# timeout: 4
import os
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: spinning", flush=True)
for _ in range(32):
    if os.fork() == 0:
        break
end = time.monotonic() + 40
while time.monotonic() < end:
    pass
