# class: artifact
# tries: leaves pipes and sockets, on which a careless reader waits for ever, and odd permissions
# network: any
# timeout: 30
import os
import socket

os.mkfifo("report.csv")
os.makedirs("locked/inside")
socket.socket(socket.AF_UNIX).bind("report.sock")
for name, mode in (("none", 0), ("setuid", 0o6755), ("sticky", 0o1777), ("program", 0o777)):
    with open(name, "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod(name, mode)
try:
    os.setxattr("sticky", "user.note", b"x")
except OSError:
    pass
os.chmod("locked", 0)
print("ATTEMPTED: a pipe, a socket and odd modes are left", flush=True)
