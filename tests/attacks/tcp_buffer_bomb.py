# class: resource
# tries: bytes that wait in TCP connections: the kernel has one limit for them, for the whole host
# network: off
# bomb: yes
# with: --memory 512
# timeout: 25
import os
import socket
import time

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: filling", flush=True)
reader, writer = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        ends, full, listener = [], 0, socket.create_server(("127.0.0.1", 0), backlog=500)
        try:
            while full < 300 << 20:
                end = socket.socket()
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
                end.connect(listener.getsockname())
                ends += [end, listener.accept()[0]]
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
held = sum(map(int, said.split()))
print(f"ESCAPED: {held} MB in connections" if held > 1000 else f"HELD: {held} MB", flush=True)
