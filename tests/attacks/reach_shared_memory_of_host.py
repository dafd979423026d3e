# class: process
# tries: attaches System V memory of the host, and lists its queues, semaphores and segments
# network: any
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
got = []
segment = libc.shmget(int("@SHMKEY@"), 4096, 0)
if segment >= 0 and libc.shmat(segment, None, 0x1000) not in (None, 2**64 - 1):
    got.append("attached a segment")
for name in ("shm", "msg", "sem"):
    try:
        rows = open(f"/proc/sysvipc/{name}").read().splitlines()[1:]
        got += [f"{len(rows)} of {name}"] if rows else []
    except OSError:
        pass
print(f"ESCAPED: {got}" if got else "HELD: an IPC namespace of its own")
