# class: resource
# tries: writes to both streams without end, without a single newline
# network: any
# bomb: yes
# exit: timeout
# timeout: 4
import os
import threading
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: writing", flush=True)


def flood(fd):
    while True:
        os.write(fd, b"\0x" * 32768)


for fd in (1, 2):
    threading.Thread(target=flood, args=(fd,), daemon=True).start()
time.sleep(60)
