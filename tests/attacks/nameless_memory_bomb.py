# class: resource
# tries: memory that belongs to no process: memfd files and System V segments
# network: any
# bomb: yes
# with: --memory 512
# timeout: 20
import ctypes
import os

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: allocating", flush=True)
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmdt.argtypes = [ctypes.c_void_p]
held = 0
try:
    for _ in range(10):
        fd = os.memfd_create("x")
        for _ in range(64):
            os.write(fd, b"x" * (1 << 20))
        held += 64
except (OSError, MemoryError):
    pass
for _ in range(20):
    segment = libc.shmget(0, 64 << 20, 0o1600)
    if segment < 0:
        break
    place = libc.shmat(segment, None, 0)
    ctypes.memset(place, 1, 64 << 20)
    libc.shmdt(place)
    held += 64
print(f"ESCAPED: {held} MB" if held > 1000 else f"HELD: {held} MB")
