# class: resource
# tries: memory of many processes together, each below any limit of its own
# network: any
# bomb: yes
# with: --memory 512
# timeout: 20
import os
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: allocating", flush=True)
reader, writer = os.pipe()
for _ in range(12):
    if os.fork() == 0:
        block = b"x" * (100 << 20)
        os.write(writer, b"+")
        time.sleep(3)
        os._exit(len(block) & 1)
os.close(writer)
done = 0
while data := os.read(reader, 12):
    done += len(data)
    if done >= 11:
        print(f"ESCAPED: {done} processes hold 100 MB each", flush=True)
