# class: terminal
# tries: writes on the caller's terminal past the output, and makes it its own
# network: any
# needs: terminal
import fcntl
import glob
import os
import termios

paths = ["/dev/tty"]
if os.readlink("/proc/self/ns/pid") != "@PIDNS@":  # without a sandbox other people are there
    paths += ["/dev/console", *glob.glob("/dev/pts/[0-9]*")]
    for path in glob.glob("/proc/[0-9]*/fd/[0-9]*"):
        try:
            paths += [path] if os.readlink(path).startswith(("/dev/pts", "/dev/tty")) else []
        except OSError:
            pass
tried = 0
for path in paths:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tried += os.write(fd, b"@MARK@\r\n")
        fcntl.ioctl(fd, termios.TIOCSCTTY, 1)
    except OSError:
        pass
print(f"ATTEMPTED: {tried} bytes written")
