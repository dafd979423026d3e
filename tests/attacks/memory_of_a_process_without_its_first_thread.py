# class: resource
# tries: memory of a process whose first thread has ended: its status has no memory
# network: any
# bomb: yes
# with: --memory 512
# timeout: 20
import ctypes
import mmap
import os
import threading

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: filling", flush=True)
libc, EXIT = ctypes.CDLL(None), {"x86_64": 60, "aarch64": 93}[os.uname().machine]


def fill() -> None:
    flags, areas = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, []
    for number in range(1, 21):
        area = mmap.mmap(-1, 100 << 20, flags=flags)
        areas.append(area)
        for at in range(0, 100 << 20, 4096):
            area[at] = 1
        print(f"HELD: {number * 100} MB so far", flush=True)
    print("ESCAPED: 2000 MB", flush=True)
    os._exit(0)


threading.Thread(target=fill).start()
libc.syscall(EXIT, 0)
