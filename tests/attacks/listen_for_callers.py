# class: network
# tries: opens a port that somebody on the host can reach
# network: off
# needs: dial
import socket

port, got = int("@LPORT@"), []
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1")):
    try:
        listener = socket.socket(family)
        listener.bind((address, port))
        listener.listen()
        listener.settimeout(2)
        got += [listener.accept()[1]]
    except OSError:
        pass
print(f"ESCAPED: called from {got}" if got else "HELD: nobody can call")
