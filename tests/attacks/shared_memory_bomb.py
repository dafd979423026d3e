# class: resource
# tries: shared memory that children fill and nobody has mapped: no /proc/PID/status counts it
# network: any
# bomb: yes
# with: --memory 512
# timeout: 20
import mmap
import os
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: allocating", flush=True)
areas, filled = [mmap.mmap(-1, 32 << 20) for _ in range(40)], 0
for area in areas:
    if os.fork() == 0:
        area.write(b"x" * len(area))  # the pages stay, this process and its share go
        os._exit(0)
    filled += os.waitstatus_to_exitcode(os.wait()[1]) == 0
time.sleep(0.5)
said = f"{filled * 32} MB of shared memory"
print(f"ESCAPED: {said}" if filled * 32 > 1000 else f"HELD: {said}", flush=True)
