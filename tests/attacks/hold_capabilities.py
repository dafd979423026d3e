# class: privilege
# tries: looks for capabilities, root, a way to new privileges, a process without a filter
# network: any
import os
import re

got = ["root"] * (os.getuid() == 0 or os.geteuid() == 0)
for pid in ("self", *filter(str.isdigit, os.listdir("/proc"))):
    text = open(f"/proc/{pid}/status").read()
    sets = re.findall(r"(Cap\w+):\s+([0-9a-f]+)", text)
    got += [f"{name} of {pid}" for name, value in sets if int(value, 16)]
    got += [f"no_new_privs of {pid}"] * ("NoNewPrivs:\t1" not in text)
    got += [f"no filter on {pid}"] * ("Seccomp:\t2" not in text)
    if len(got) > 5:
        break
print(f"ESCAPED: {got}" if got else "HELD: no capability, and none to be had")
