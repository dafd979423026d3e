# class: resource
# tries: shared anonymous memory that no process has mapped: no /proc/PID/status counts it
# network: any
# bomb: yes
# with: --memory 512
# timeout: 20
import mmap
import os
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: allocating", flush=True)
reader, writer = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        blocks = []
        for _ in range(4):
            block = mmap.mmap(-1, 64 << 20)
            block.write(b"x" * len(block))
            block.madvise(mmap.MADV_DONTNEED)  # the pages stay, this process's share goes
            blocks.append(block)
            os.write(writer, b"+")
        time.sleep(3)
        os._exit(0)
os.close(writer)
done = 0
while data := os.read(reader, 64):
    done += 64 * len(data)
    if done >= 1280:
        print(f"ESCAPED: {done} MB of shared memory", flush=True)
        break
