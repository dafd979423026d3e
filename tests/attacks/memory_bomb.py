# class: resource
# tries: memory of one process, without end
# network: any
# bomb: yes
# with: --memory 512
# timeout: 20
import os

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: allocating", flush=True)
blocks = []
try:
    while len(blocks) < 20:
        blocks.append(b"x" * (64 << 20))
    print(f"ESCAPED: {len(blocks) * 64} MB", flush=True)
except MemoryError:
    size = len(blocks) * 64
    del blocks
    print(f"HELD: no more than {size} MB")
