# class: artifact
# tries: children that survive it swap files for links and let files grow while they are read
# network: any
# bomb: yes
# exit: 0
import os
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
target = "@DIR@/secret.txt"
print("ATTEMPTED: swapping", flush=True)
os.makedirs("d/e")
for name in ("a", "d/e/f", "grows"):
    with open(name, "w") as file:
        file.write("plain")
os.symlink(target, "link")
os.symlink("/", "top")
end = time.monotonic() + 20
for role in range(3):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < end:
            try:
                if role == 0:
                    os.rename("link", "a")
                    os.symlink(target, "link")
                    with open("b", "w") as file:
                        file.write("plain")
                    os.rename("b", "a")
                elif role == 1:
                    os.rename("d/e", "d/x")
                    os.symlink("/etc", "d/e")
                    os.unlink("d/e")
                    os.rename("d/x", "d/e")
                else:
                    with open("grows", "ab") as file:
                        file.write(bytes(1 << 16))
            except OSError:
                pass
        os._exit(0)
time.sleep(0.3)
