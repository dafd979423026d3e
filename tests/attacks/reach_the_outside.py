# class: network
# tries: a route to the internet, to private networks, to the metadata service of a cloud
# network: off
import socket

got = []
for address in (
    *("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254", "192.168.0.1"),
    *("10.0.0.1", "172.17.0.1", "1.1.1.1", "2606:4700:4700::1111", "224.0.0.1"),
):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as peer:
        try:
            peer.connect((address, 80))  # asks for a route; nothing is sent
            got.append(address)
        except OSError:
            pass
print(f"ESCAPED: routes to {got}" if got else "HELD: no route")
