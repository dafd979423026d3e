# class: fs-read
# tries: uses descriptors that it inherited, and opens those of its ancestors through /proc
# network: any
# needs: descriptor
import os
import re

got, pid = [], os.getpid()
while pid > 0:
    for fd in range(256):
        try:
            path = f"/proc/{pid}/fd/{fd}"
            if re.match("pipe|socket|anon|/dev", os.readlink(path)):
                continue
            if re.search(rb"CANARY-[0-9a-f]{16}", open(path, "rb").read(1 << 20)):
                got.append(path)
        except OSError:
            pass
    try:
        pid = int(re.findall(r"PPid:\s+(\d+)", open(f"/proc/{pid}/status").read())[0])
    except OSError:
        break
own = [int(fd) for fd in os.listdir("/proc/self/fd")]
strange = []
for fd in own:
    try:
        kind = os.readlink(f"/proc/self/fd/{fd}")
        strange += [kind] if fd > 2 and not kind.startswith("/proc/") else []
    except OSError:
        pass
print(f"ESCAPED: {got or strange}" if got or strange else f"HELD: only {len(own) - 1} of its own")
