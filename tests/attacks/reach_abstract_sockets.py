# class: network
# tries: an abstract unix socket of the host: these belong to the network namespace, not to files
# network: off
import socket

got = []
for name in ("\0@NAME@", "\0/tmp/.X11-unix/X0", "\0/containerd-shim", "\0@/tmp/.ICE-unix/1"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as peer:
            peer.settimeout(1)
            try:
                peer.connect(name)
                got.append(name[1:])
            except OSError:
                pass
print(f"ESCAPED: reached {got}" if got else "HELD: nobody listens")
