# class: network
# tries: sockets of docker, podman, containerd, D-Bus, X11, agents, systemd, and of a canary
# network: any
import glob
import os
import socket

paths = "/var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock".split()
paths += "/run/podman/podman.sock /run/dbus/system_bus_socket /run/systemd/private".split()
paths += "/run/systemd/notify /run/systemd/journal/stdout /dev/log /run/snapd.socket".split()
for pattern in (
    "/run/user/*/*",
    "/tmp/.X11-unix/*",
    "/tmp/ssh-*/*",
    "/run/*.sock",
    "/run/*/*.sock",
):
    paths += glob.glob(pattern)
paths += [os.environ.get("SSH_AUTH_SOCK") or "/nowhere", "@DIR@/canary.sock"]
got = []
for path in paths:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as peer:
            peer.settimeout(1)
            try:
                peer.connect(path)
                got.append(path)
            except OSError:
                pass
print(f"ESCAPED: connected to {got}" if got else "HELD: no socket can be reached")
