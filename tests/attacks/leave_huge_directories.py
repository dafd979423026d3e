# class: artifact
# tries: a hundred thousand files, directories 2000 deep, files that are huge or only seem so
# network: any
# bomb: yes
# timeout: 30
import os

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: much is left", flush=True)
here = os.open(".", os.O_RDONLY)
os.mkdir("many")
for number in range(100_000):
    os.close(os.open(f"many/{number}", os.O_CREAT | os.O_WRONLY))
for number in range(30):
    with open(f"big-{number}", "wb") as file:
        file.write(bytes(9 << 20))
with open("sparse", "wb") as file:
    for size in (1 << 40, 500 << 20):
        try:
            os.truncate(file.fileno(), size)
            break
        except OSError:
            pass
try:
    for _ in range(2000):
        os.mkdir("d" * 100)
        os.chdir("d" * 100)
    with open("bottom", "w") as file:
        file.write("x")
except OSError:
    pass
os.fchdir(here)
