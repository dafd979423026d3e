# class: network
# tries: connects to a service on the host's loopback, and sends datagrams to it
# network: off
import socket

port, got = int("@PORT@"), []
for address in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "127.0.0.2", "::ffff:127.0.0.1"):
    try:
        with socket.create_connection((address, port), 1) as peer:
            got += [address] * bool(peer.recv(10))
    except OSError:
        pass
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        socket.socket(family, socket.SOCK_DGRAM).sendto(b"@MARK@", (address, port))
    except OSError:
        pass
print(f"ESCAPED: reached {got}" if got else "HELD: nobody is there")
