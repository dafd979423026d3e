# class: terminal
# tries: types into the caller's terminal with TIOCSTI and TIOCLINUX, also with high bits set
# network: any
# needs: terminal
import ctypes
import glob
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
paths = ["/dev/tty"]
if os.readlink("/proc/self/ns/pid") != "@PIDNS@":  # without a sandbox other people are there
    paths += ["/dev/console", "/dev/tty0", *glob.glob("/dev/pts/[0-9]*")]
fds = [0, 1, 2]
for path in paths:
    try:
        fds.append(os.open(path, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        pass
for fd in fds:
    for request, what in (
        (0x5412, b"x"),
        (0x100005412, b"x"),
        (0x541C, b"\3"),
        (0x10000541C, b"\3"),
    ):
        libc.ioctl(fd, request, what)
print(f"ATTEMPTED: typed into {len(fds)} descriptors")
