# class: fs-read
# tries: /proc/1/root and the root and cwd of every other process: a way into another file system
# network: any
import os

got = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    for link in ("root", "cwd/" + "../" * 30, f"task/{pid}/root"):
        try:
            with open(f"/proc/{pid}/{link}@DIR@/secret.txt") as file:
                got.append(f"{pid}/{link[:4]}" * bool(file.read(1)))
        except OSError:
            pass
print(f"ESCAPED: the secret can be read through {got[:5]}" if got else "HELD: no root has it")
