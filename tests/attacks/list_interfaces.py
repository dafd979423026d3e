# class: network
# tries: learns the host's interfaces, addresses, routes and open sockets
# network: off
import os
import socket

got = [name for _, name in socket.if_nameindex() if name != "lo"]
for table in ("route", "arp", "fib_trie", "tcp", "udp", "unix", "if_inet6"):
    try:
        rows = open(f"/proc/net/{table}").read().splitlines()
    except OSError:
        continue
    rows = [row for row in rows[1:] if table not in ("if_inet6", "fib_trie")]
    got += [f"{table}: {len(rows)}"] if rows else []
if os.path.isdir("/sys/class/net"):
    got += [name for name in os.listdir("/sys/class/net") if name != "lo"]
if os.path.isdir("/sys/devices/virtual/net"):
    got += [name for name in os.listdir("/sys/devices/virtual/net") if name != "lo"]
print(f"ESCAPED: sees {got[:6]}" if got else "HELD: sees its own loopback only")
