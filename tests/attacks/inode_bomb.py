# class: resource
# tries: empty files, links and directories in /tmp, /work and /dev/shm: memory of the kernel
# network: any
# bomb: yes
# with: --memory 256
# timeout: 25
import os
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: creating", flush=True)
places, most = ("/tmp", "/work", "/dev/shm"), 500_000
for other in places[1:]:
    if os.fork() == 0:
        place = other
        break
else:
    place = places[0]
end, number = time.monotonic() + 14, 0
try:
    while time.monotonic() < end:
        os.mkdir(f"{place}/{number}")
        for name in range(1000):
            os.close(os.open(f"{place}/{number}/{name}", os.O_CREAT | os.O_WRONLY))
        number += 1
        used = sum(s.f_files - s.f_ffree for s in map(os.statvfs, places))
        if used > most:
            print(f"ESCAPED: {used} files", flush=True)
            break
except OSError:
    pass
