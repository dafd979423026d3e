# class: fs-write
# tries: opens programs, libraries and settings of the system for writing; adds files beside them
# network: any
import glob
import os

got = []
for path in [
    *("/usr/bin/env", "/bin/sh", "/etc/passwd", "/etc/hosts", "/etc/ld.so.cache"),
    *("/etc/resolv.conf", "/etc/ld.so.preload", "/etc/localtime", *glob.glob("/lib*/*/libc.so.6")),
]:
    try:
        os.close(os.open(path, os.O_WRONLY))  # nothing is written
        got.append(path)
    except OSError:
        pass
for place in "/ /usr /usr/bin /usr/lib /usr/local/bin /etc /opt /var /sys /proc /dev".split():
    try:
        os.mkdir(f"{place}/@MARK@")
        got.append(place)
        os.rmdir(f"{place}/@MARK@")
    except OSError:
        pass
print(f"ESCAPED: can be written: {got[:6]}" if got else "HELD: the system is read-only")
