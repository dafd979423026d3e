# class: kernel
# tries: sockets of the families that are not for programs: AF_ALG, AF_VSOCK, AF_PACKET and more
# network: any
import socket

families = {"AX25": 3, "IPX": 4, "X25": 9, "KEY": 15, "PACKET": 17, "RDS": 21, "PPPOX": 24}
families |= {"LLC": 26, "CAN": 29, "TIPC": 30, "BLUETOOTH": 31, "PHONET": 35, "ALG": 38}
families |= {"NFC": 39, "VSOCK": 40, "KCM": 41, "QIPCRTR": 42, "SMC": 43, "XDP": 44, "MCTP": 45}
got = []
for name, family in families.items():
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        got.append(name)
        break
for protocol in range(1, 23):
    try:
        socket.socket(16, 3, protocol).close()
    except OSError:
        continue
    got.append(f"netlink {protocol}")
for kind, protocol in ((3, 1), (3, 6), (3, 255), (10, 0)):
    for family in (2, 10):
        try:
            socket.socket(family, kind, protocol).close()
            got.append(f"raw {family}/{protocol}")
        except OSError:
            pass
print(f"ESCAPED: can be opened: {got[:8]}" if got else "HELD: none can be opened")
