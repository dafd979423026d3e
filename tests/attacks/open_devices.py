# class: kernel
# tries: finds devices that it may use, and makes some: memory, disks, fuse, kvm, tun
# network: any
import os
import stat

USUAL = "null zero full random urandom tty ptmx console".split()
got = []
for directory, _, names in os.walk("/dev"):
    if directory.startswith("/dev/pts"):
        continue
    for name in names:
        path = f"{directory}/{name}"
        try:
            mode = os.lstat(path).st_mode
            device = stat.S_ISBLK(mode) or stat.S_ISCHR(mode)
            if device and name not in USUAL and os.access(path, os.R_OK):
                got.append(path)  # not opened: opening a watchdog starts it
        except OSError:
            pass
for path in ("/proc/kcore", "/proc/kmsg", "/proc/kpagecgroup", "/sys/kernel/debug/sched/debug"):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        got.append(path)
    except OSError:
        pass
for place in (".", "/tmp", "/dev/shm"):
    for kind, number in ((stat.S_IFCHR, (1, 1)), (stat.S_IFBLK, (254, 0)), (stat.S_IFBLK, (8, 0))):
        path = f"{place}/@MARK@-device"
        try:
            os.mknod(path, kind | 0o600, os.makedev(*number))
            got.append(f"mknod in {place}")
            os.unlink(path)
        except OSError:
            pass
print(f"ESCAPED: {got[:6]}" if got else "HELD: only harmless devices")
