# class: fs-read
# tries: /proc/PID/mem of its parents, of pid 1 and of a process of the host that holds a secret
# network: any
import os
import re

parents, pid = [], os.getppid()
while pid > 0:
    parents.append(pid)
    pid = int(re.findall(r"PPid:\s+(\d+)", open(f"/proc/{pid}/status").read())[0])
for other in filter(str.isdigit, os.listdir("/proc")):
    try:
        if b"@NAME@" in open(f"/proc/{other}/cmdline", "rb").read().split(b"\0"):
            parents.append(int(other))
    except OSError:
        pass
got = []
for pid in parents[:4] + parents[-1:]:
    try:
        areas = open(f"/proc/{pid}/maps").read()
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for start, end in re.findall(r"(?m)^([0-9a-f]+)-([0-9a-f]+) rw", areas):
                memory.seek(int(start, 16))
                size = min(int(end, 16) - int(start, 16), 64 << 20)
                if re.search(rb"CANARY-[0-9a-f]{16}", memory.read(size) or b""):
                    got.append(pid)
                    break
    except OSError:
        pass
print(f"ESCAPED: a secret is in the memory of {got}" if got else "HELD: no secret in any memory")
