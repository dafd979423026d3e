"""--network public, with servers on loopback, on a veth pair and in a namespace that stands for the internet."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import HAS_BWRAP, until

WORLD = "pysbx-test-world"  # 203.0.113.0/24 is for documentation (RFC 5737): to us it is public
NEEDED = ("slirp4netns", "ip", "nsenter")
pytestmark = [
    pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed"),
    pytest.mark.skipif(
        not all(map(shutil.which, NEEDED)), reason="slirp4netns, ip or nsenter is missing"
    ),
    pytest.mark.skipif(
        not os.access("/dev/net/tun", os.R_OK | os.W_OK), reason="/dev/net/tun cannot be opened"
    ),
]
DIAL = """
import socket
for host, port in (("203.0.113.2", {port}), ("203.0.113.1", {port}), ("192.168.77.2", {port}), ("198.51.100.6", {port}), ("127.0.0.1", {port}), ("10.0.2.2", {port}), ("169.254.169.254", 80)):
    try:
        s = socket.create_connection((host, port), 3); s.sendall(b"x"); print(host, s.recv(9))
    except OSError as e: print(host, "closed")
s = socket.socket(socket.AF_UNIX)
try: s.connect("\\0{abstract}"); print("abstract open")
except OSError: print("abstract closed")
"""
SERVE = "import socketserver as s\nclass H(s.BaseRequestHandler):\n    def handle(self): self.request.recv(1); self.request.sendall(b'reached')\ns.ThreadingTCPServer.allow_reuse_address = True\ns.ThreadingTCPServer(('0.0.0.0', {}), H).serve_forever()"


@pytest.fixture(scope="module")
def world():
    if os.geteuid() != 0:
        pytest.skip("network namespaces of the test need root")

    def run(line):
        return subprocess.run(line.split(), check=False, capture_output=True)

    for line in (
        f"ip netns add {WORLD}",
        "ip link add pysbx-t0 type veth peer name pysbx-t1",
        f"ip link set pysbx-t1 netns {WORLD}",
        "ip addr add 203.0.113.1/24 dev pysbx-t0",
        "ip addr add 192.168.77.1/24 dev pysbx-t0",
        "ip link set pysbx-t0 up",
        "ip addr add 198.51.100.5/24 dev lo",  # all of the network is this host
        f"ip netns exec {WORLD} ip addr add 203.0.113.2/24 dev pysbx-t1",
        f"ip netns exec {WORLD} ip addr add 192.168.77.2/24 dev pysbx-t1",
        f"ip netns exec {WORLD} ip link set pysbx-t1 up",
    ):
        run(line)
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    code = SERVE.format(port)
    servers = [
        subprocess.Popen([sys.executable, "-c", code]),
        subprocess.Popen(["ip", "netns", "exec", WORLD, sys.executable, "-c", code]),
    ]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0pysbx-test-{port}")
    listener.listen()
    assert until(
        lambda: (
            not run(
                f"{sys.executable} -c __import__('socket').create_connection(('203.0.113.2',{port}),1)"
            ).returncode
        ),
        10,
    )
    yield port
    for server in servers:
        server.kill()
        server.wait()
    listener.close()
    run("ip addr del 198.51.100.5/24 dev lo")
    run("ip link del pysbx-t0")
    run(f"ip netns del {WORLD}")


def reached(text):
    return {line.split()[0] for line in text.splitlines() if "reached" in line or "open" in line}


def test_public_reaches_the_internet_and_neither_this_host_nor_its_neighbours(pysbx, world):
    done = pysbx(
        "--network",
        "public",
        "--require-sandbox",
        script=DIAL.format(port=world, abstract=f"pysbx-test-{world}"),
    )
    assert reached(done.out) == {"203.0.113.2"}, done


def test_the_same_detectors_fire_with_the_network_on_and_nothing_with_it_off(pysbx, world):
    script = DIAL.format(port=world, abstract=f"pysbx-test-{world}")
    assert reached(pysbx("--network", "on", script=script).out) >= {
        "203.0.113.2",
        "203.0.113.1",
        "192.168.77.2",
        "198.51.100.6",
        "127.0.0.1",
        "abstract",
    }
    assert reached(pysbx("--network", "off", script=script).out) == set()


def test_public_ends_with_the_run_and_leaves_no_helper(pysbx):
    done = pysbx(
        "--network", "public", "--require-sandbox", script="print(open('/etc/resolv.conf').read())"
    )
    assert done.out == "nameserver 10.0.2.3\n\n", done
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "slirp4netns --configure" not in listed


def test_public_is_refused_in_a_sentence_where_it_cannot_be_had(pysbx, tmp_path):
    for name in ("sh", "uv", "env", "bwrap"):
        (tmp_path / name).symlink_to(os.path.realpath(shutil.which(name)))
    done = pysbx(
        "--network",
        "public",
        "--require-sandbox",
        script="print('RAN')",
        env={"PATH": str(tmp_path)},
    )
    assert done.code == 125 and "install slirp4netns" in done.err and "RAN" not in done.out, done
