# class: fs-read
# tries: reaches a file of the host through chains of .., links and the links of /proc; prints it
# network: any
import os

target = "@DIR@/secret.txt"
ways = [f"{start}/{'../' * 40}{target}" for start in (".", "/tmp", "/dev/fd", "/proc/self/cwd")]
ways += [f"/proc/{self}/root{target}" for self in ("self", "thread-self", "self/task/../..")]
for name, link in (("a", target), ("b", "../" * 40 + target), ("c", "/proc/1/root" + target)):
    os.symlink(link, name)
    ways.append(name)
os.symlink("/", "root")
ways.append(f"root/{target}")
os.makedirs("deep/er")
here = os.open("deep/er", os.O_RDONLY)
for way in ways:
    try:
        print(open(way).read())
    except OSError:
        pass
try:
    print(open(os.open("../../../../../.." + target, os.O_RDONLY, dir_fd=here)).read())
except OSError:
    pass
print(f"ATTEMPTED: {len(ways) + 1} ways; what they reached is printed above")
