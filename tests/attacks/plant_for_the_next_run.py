# class: fs-write
# tries: leaves files wherever it can and, when run a second time, finds them
# network: any
# needs: twice
import os
import sys

home = os.path.expanduser("~")
os.makedirs(f"{home}/.config", exist_ok=True)
places = ["/tmp", "/dev/shm", "/var/tmp", "/run", "/run/lock", "/dev/mqueue", ".", home]
places += [f"{home}/.config", "/pysbx/envs", os.path.dirname(sys.prefix), sys.prefix]
found = [place for place in places if os.path.lexists(f"{place}/@MARK@")]
left = 0
for place in places:
    try:
        if found:
            os.unlink(f"{place}/@MARK@")
        else:
            with open(f"{place}/@MARK@", "w") as file:
                left += file.write("x")
    except OSError:
        pass
print(f"ESCAPED: from an earlier run: {found}" if found else f"HELD: {left} left, none found")
