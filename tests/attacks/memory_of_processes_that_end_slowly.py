# class: resource
# tries: memory of processes that are ending, of which no status tells, at the lowest priority
# network: any
# bomb: yes
# with: --memory 512
# timeout: 25
import mmap
import os
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: ending slowly", flush=True)


def machine() -> int:
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("AnonPages"))


reader, writer = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        os.nice(5)
        while True:
            pass
before, end = machine(), time.monotonic() + 12
while (held := machine() - before) < 2500 and time.monotonic() < end:
    if os.fork() == 0:
        area = mmap.mmap(-1, 300 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, 300 << 20, 4096):
            area[at] = 1
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        os.write(writer, b"x")
        os._exit(0)
    os.read(reader, 1)
    time.sleep(0.02)
print(f"ESCAPED: {held} MB" if held >= 2500 else f"HELD: {held} MB", flush=True)
os.kill(0, 9)
