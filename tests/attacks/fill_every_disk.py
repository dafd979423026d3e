# class: resource
# tries: fills everything that can be written: all of it is memory of the host
# network: any
# bomb: yes
# with: --disk 64
# timeout: 25
import os

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: filling", flush=True)
places = ["/tmp", "/dev/shm", "/dev", "/", "/run", "/var/tmp", "/work", os.path.expanduser("~")]
filled = {}
for place in places:
    number = 0
    try:
        while filled.get(place, 0) < 800:
            with open(f"{place}/@MARK@{number}", "wb", buffering=0) as file:
                for _ in range(32):
                    filled[place] = filled.get(place, 0) + (file.write(bytes(1 << 20)) >> 20)
            number += 1
    except OSError:
        pass
total = sum(filled.values())
print(f"ESCAPED: {filled} MB" if total > 600 else f"HELD: {filled} MB, then no more")
