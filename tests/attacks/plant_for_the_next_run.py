# class: fs-write
# tries: leaves files wherever it can and, when run a second time, finds them
# network: any
# needs: twice
import os
import sys

home = os.path.expanduser("~")
places = ["/tmp", "/dev/shm", "/var/tmp", "/run", "/run/lock", "/dev/mqueue", ".", "/work", home]
places += [f"{home}/.config", f"{home}/.cache", f"{home}/.local", "/pysbx/envs", sys.prefix]
found, left = [], 0
for place in places:
    path = f"{place}/@MARK@"
    found += [path] * os.path.lexists(path)
    try:
        os.makedirs(place, exist_ok=True)
        with open(path, "w") as file:
            left += file.write("x")
    except OSError:
        pass
print(f"ESCAPED: from an earlier run: {found}" if found else f"HELD: {left} left, none found")
