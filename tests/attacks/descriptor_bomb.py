# class: resource
# tries: opens files, pipes and timers until it is refused
# network: any
# bomb: yes
# timeout: 15
import os

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
fds = []
try:
    while len(fds) < 10_000:
        fds += [*os.pipe(), os.open("/dev/null", os.O_RDONLY), os.eventfd(0)]
except OSError:
    pass
count = len(fds)
os.closerange(3, 12_000)
print(f"ESCAPED: {count} descriptors" if count > 5000 else f"HELD: stopped after {count}")
