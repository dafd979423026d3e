# class: network
# tries: gets data out by looking names up: a name server, or a local service that asks one
# network: off
import re
import socket

servers = ["127.0.0.53", "127.0.0.11", "127.0.0.1", "::1"]
try:
    servers += re.findall(r"(?m)^nameserver\s+(\S+)", open("/etc/resolv.conf").read())
except OSError:
    pass
got = []
query = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1"
for server in dict.fromkeys(servers):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as peer:
        peer.settimeout(0.5)
        try:
            peer.connect((server, 53))
            peer.send(query)
            got += [f"{server} answered"] if peer.recv(512) else []
        except TimeoutError:
            got.append(f"{server} got the question")
        except OSError:
            pass
for path in (
    "/run/nscd/socket",
    "/var/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        got.append(path)
    except OSError:
        pass
print(f"ESCAPED: {got}" if got else "HELD: nobody to ask")
