# class: resource
# tries: memory of the kernel: bytes that wait in sockets and pipes which nobody reads
# network: any
# bomb: yes
# with: --memory 512
# timeout: 20
import os
import socket
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: filling", flush=True)
reader, writer = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        ends, full = [], 0
        try:
            while True:
                ends += socket.socketpair()
                for end in ends[-2:]:
                    end.setblocking(False)
                    try:
                        while True:
                            full += end.send(bytes(65536))
                    except BlockingIOError:
                        pass
        except OSError:
            pass
        os.write(writer, b"%d " % (full >> 20))
        time.sleep(4)
        os._exit(0)
os.close(writer)
said = b""
while data := os.read(reader, 100):
    said += data
    if (held := sum(map(int, said.split()))) > 1000:
        print(f"ESCAPED: {held} MB in sockets", flush=True)
        break
else:
    print(f"HELD: {sum(map(int, said.split()))} MB in sockets")
