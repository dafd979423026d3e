# class: process
# tries: finds a process of the host in /proc, by listing and by guessing numbers
# network: any
import os

got = []
listed = [int(name) for name in os.listdir("/proc") if name.isdigit()]
for pid in {*listed, *range(1, 40_000)}:
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
    except OSError:
        continue
    got += [pid] if b"@NAME@" in words else []
print(f"ESCAPED: sees process {got}" if got else f"HELD: sees {len(listed)} processes, its own")
