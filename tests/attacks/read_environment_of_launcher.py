# class: fs-read
# tries: finds the server's secrets in its own environment or in that of its ancestors
# network: any
import os
import re

SECRET = re.compile(rb"CANARY-[0-9a-f]{16}")
got = [name for name, value in os.environb.items() if SECRET.search(value)]
pid = os.getpid()
while pid > 0:
    try:
        if SECRET.search(open(f"/proc/{pid}/environ", "rb").read()):
            got.append(f"/proc/{pid}/environ")
        pid = int(re.findall(r"PPid:\s+(\d+)", open(f"/proc/{pid}/status").read())[0])
    except OSError:
        break
print(f"ESCAPED: a secret is in {got}" if got else "HELD: no secret in any environment")
