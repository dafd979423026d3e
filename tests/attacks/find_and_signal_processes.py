# class: process
# tries: finds processes of the host by listing, by guessing numbers and by signals; signals one
# network: any
import os
import signal

own, got = set(), []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        own.update(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        pass
for pid in range(2, 40_000):
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        if b"@NAME@" in words:
            got.append(f"sees {pid}")
            os.kill(pid, signal.SIGUSR1)
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass
    except OSError:
        continue
    got += [f"{pid} answers"] if pid not in own else []
print(f"ESCAPED: {got[:5]}" if got else f"HELD: sees {len(own)} processes, its own")
