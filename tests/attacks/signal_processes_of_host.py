# class: process
# tries: sends signal 0 to every number, and a real one to a process of the host that it finds
# network: any
import os
import signal

own = set()
for pid in filter(str.isdigit, os.listdir("/proc")):
    own.update(map(int, os.listdir(f"/proc/{pid}/task")))
answers = []
for pid in range(2, 70_000):
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass
    except OSError:
        continue
    answers += [pid] if pid not in own else []
for pid in own:
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        if b"@NAME@" in words:
            os.kill(pid, signal.SIGUSR1)
    except OSError:
        pass
print(f"ESCAPED: {answers[:5]} answer" if answers else "HELD: nobody else answers")
