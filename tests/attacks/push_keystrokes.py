# class: terminal
# tries: types into the caller's terminal with TIOCSTI and TIOCLINUX, also with high bits set
# network: any
# needs: terminal
import ctypes
import glob
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
fds = [0, 1, 2]
for path in ("/dev/tty", "/dev/console", "/dev/tty0", *glob.glob("/dev/pts/[0-9]*")):
    try:
        fds.append(os.open(path, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        pass
for fd in fds:
    for request in (0x5412, 0x100005412, 0x541C, 0x10000541C):
        libc.ioctl(fd, request, b"x" if request & 0xFFFF == 0x5412 else b"\3")
print(f"ATTEMPTED: typed into {len(fds)} descriptors")
