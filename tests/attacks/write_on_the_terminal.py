# class: terminal
# tries: writes on the caller's terminal past the output, and makes it its own
# network: any
# needs: terminal
import fcntl
import glob
import os
import termios

os.fork() and os.wait()
try:
    os.setsid()
except OSError:
    pass
tried = 0
paths = ["/dev/tty", "/dev/console", *glob.glob("/dev/pts/[0-9]*")]
paths += glob.glob("/proc/[0-9]*/fd/[0-9]*")
for path in paths:
    try:
        if "/fd/" in path and not os.readlink(path).startswith(("/dev/pts", "/dev/tty")):
            continue
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tried += os.write(fd, b"@MARK@\r\n")
        fcntl.ioctl(fd, termios.TIOCSCTTY, 1)
    except OSError:
        pass
print(f"ATTEMPTED: {tried} bytes written")
