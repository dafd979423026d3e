"""What is pure, or nearly: a host is a directory, a system call filter is a program to interpret,
a hostile script is a directory that it left. The last part reads the argument lists of real runs.
"""

import contextlib
import errno
import itertools
import json
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import pysbx
import pysbx_sandbox
from pysbx_sandbox import (
    Policy,
    Spec,
    Stream,
    Unavailable,
    _entries,
    bwrap_options,
    cache_dir,
    collect_files,
    docker_argv,
    etc_files,
    explain_bwrap,
    find_uv,
    host_shape,
    run,
    seccomp_filter,
    uv_environment,
)

ROOT = Path(__file__).resolve().parent.parent
HAS_BWRAP = bool(shutil.which("bwrap"))
HELP = "--disable-userns --size BYTES"


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail at once, not at the end, where something takes longer."""

    def late(number: int, frame: object) -> None:
        pytest.fail(f"not ready after {seconds} s")  # a BaseException: nobody swallows it

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def an_ordinary_user() -> Iterator[None]:
    """Root reads everything: be nobody for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


# ---- the shape of a host


def host(root: Path, *directories: str, **links: str) -> Path:
    for directory in directories:
        (root / directory).mkdir(parents=True)
    for name, text in links.items():
        (root / name).symlink_to(text)
    return root


def shape(root: Path) -> dict[str, tuple[str, str]]:
    """Return {destination: (option, source or text of the link)}."""
    options = host_shape(root)
    triples = [options[at : at + 3] for at in range(0, len(options), 3)]
    assert len({target for _, _, target in triples}) == len(triples), "a destination twice"
    return {target: (option, source) for option, source, target in triples}


def test_a_host_with_merged_usr_gets_the_links_as_they_are(tmp_path: Path) -> None:
    links = {name: f"usr/{name}" for name in ("bin", "sbin", "lib", "lib64")}
    root = host(tmp_path, "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", **links)
    wanted = {f"/{name}": ("--symlink", text) for name, text in links.items()}
    assert shape(root) == {"/usr": ("--ro-bind", str(root / "usr")), **wanted}


def test_a_host_with_unmerged_usr_gets_its_directories(tmp_path: Path) -> None:
    """As Alpine: real /bin, /sbin and /lib, no /lib64."""
    root = host(tmp_path, "usr/bin", "bin", "sbin", "lib")
    names = ("usr", "bin", "sbin", "lib")
    assert shape(root) == {f"/{name}": ("--ro-bind", str(root / name)) for name in names}


@pytest.mark.parametrize("text", ["usr/lib", "usr/lib64"])
def test_lib64_as_a_link_is_copied_with_its_text(text: str, tmp_path: Path) -> None:
    """https://github.com/containers/bubblewrap/issues/686"""
    root = host(tmp_path, "usr/lib", "usr/lib64", lib="usr/lib", lib64=text)
    assert shape(root)["/lib64"] == ("--symlink", text)


def test_lib64_as_a_directory_is_bound(tmp_path: Path) -> None:
    root = host(tmp_path, "usr/lib", "lib64", lib="usr/lib")
    assert shape(root)["/lib64"] == ("--ro-bind", str(root / "lib64"))


def test_lib64_that_is_absent_is_left_out(tmp_path: Path) -> None:
    assert "/lib64" not in shape(host(tmp_path, "usr/lib", lib="usr/lib"))


def test_a_nixos_host_shows_its_store_and_needs_no_lib(tmp_path: Path) -> None:
    root = host(tmp_path, "usr/bin", "bin", "nix/store", "nix/var/nix/db", "etc/static")
    assert shape(root) == {
        "/usr": ("--ro-bind", str(root / "usr")),
        "/bin": ("--ro-bind", str(root / "bin")),
        "/nix/store": ("--ro-bind", str(root / "nix/store")),
    }


def test_a_guix_host_shows_its_store(tmp_path: Path) -> None:
    root = host(tmp_path, "bin", "gnu/store", "var/guix")
    assert shape(root)["/gnu/store"] == ("--ro-bind", str(root / "gnu/store"))
    assert "/usr" not in shape(root)


def test_an_empty_host_gives_no_option_for_what_is_not_there(tmp_path: Path) -> None:
    assert host_shape(tmp_path) == []


def test_files_and_private_directories_of_a_host_are_not_shown(tmp_path: Path) -> None:
    root = host(
        tmp_path, "usr", "etc/ssl/private", "home/user", "root", "var", "run", "opt", "srv"
    )
    (root / "etc/shadow").write_text("secret")
    (root / "lib64").write_text("not a directory")
    assert set(shape(root)) == {"/usr"}


def test_the_loader_cache_and_the_time_zone_are_bound_where_their_links_lead(
    tmp_path: Path,
) -> None:
    root = host(tmp_path, "usr/share/zoneinfo", "etc/alternatives")
    (root / "usr/share/zoneinfo/UTC").write_text("TZif")
    (root / "etc/localtime").symlink_to("../usr/share/zoneinfo/UTC")
    (root / "etc/ld.so.cache").symlink_to("missing")
    found = shape(root)
    assert found["/etc/localtime"] == ("--ro-bind", str(root / "usr/share/zoneinfo/UTC"))
    assert found["/etc/alternatives"] == ("--ro-bind", str(root / "etc/alternatives"))
    assert "/etc/ld.so.cache" not in found


# ---- the /etc of a sandbox


@pytest.mark.parametrize("relative", [True, False])
def test_resolv_conf_is_read_through_its_link(relative: bool, tmp_path: Path) -> None:
    """Ubuntu links it to /run/systemd/resolve, WSL to /mnt/wsl: a bind over the link dangles."""
    (tmp_path / "run/resolve").mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "run/resolve/stub.conf").write_text("nameserver 127.0.0.53\n")
    place = ".." if relative else str(tmp_path)
    (tmp_path / "etc/resolv.conf").symlink_to(f"{place}/run/resolve/stub.conf")
    assert etc_files("on", tmp_path)["resolv.conf"] == b"nameserver 127.0.0.53\n"
    assert "resolv.conf" not in etc_files("off", tmp_path)


def test_a_dangling_or_missing_or_looping_resolv_conf_is_left_out(tmp_path: Path) -> None:
    assert "resolv.conf" not in etc_files("on", tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/resolv.conf").symlink_to("../run/missing")
    assert "resolv.conf" not in etc_files("on", tmp_path)
    (tmp_path / "etc/resolv.conf").unlink()
    (tmp_path / "etc/resolv.conf").symlink_to("resolv.conf")
    assert "resolv.conf" not in etc_files("on", tmp_path)
    (tmp_path / "etc/resolv.conf").unlink()
    (tmp_path / "etc/resolv.conf").mkdir()
    assert "resolv.conf" not in etc_files("on", tmp_path)


def test_the_etc_is_ours_and_nothing_else_of_the_hosts_is_read(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    for name in ("passwd", "group", "hosts", "nsswitch.conf", "shadow"):
        (tmp_path / "etc" / name).write_text("from the host\n")
    files = etc_files("on", tmp_path)
    assert set(files) == {"passwd", "group", "hosts", "nsswitch.conf"}
    assert not any(b"from the host" in content for content in files.values())
    users = [line.split(b":")[2] for line in files["passwd"].splitlines()]
    assert users == [b"0", b"1000", b"65534"]  # what is the host's has an owner with a name
    assert b"127.0.0.1 localhost" in files["hosts"]
    assert b"::1 localhost" in files["hosts"]
    assert b"hosts: files dns" in files["nsswitch.conf"]


# ---- bwrap's options

ARITY = dict.fromkeys(
    """--unshare-all --unshare-user --share-net --disable-userns --new-session
    --die-with-parent""".split(),
    0,
)
ARITY |= dict.fromkeys(
    """--uid --gid --hostname --cap-drop --proc --dev --tmpfs --dir --remount-ro --chdir --perms
    --size --seccomp""".split(),
    1,
)
ARITY |= dict.fromkeys(
    "--bind --ro-bind --ro-bind-try --ro-bind-data --symlink --setenv".split(), 2
)
FRESH = ("--tmpfs", "--proc", "--dev")
MOUNTS = (*FRESH, "--bind", "--ro-bind", "--ro-bind-try", "--ro-bind-data", "--symlink", "--dir")


def operations(options: list[str]) -> list[tuple[str, ...]]:
    """Return the options with their values; one that bwrap 0.7 does not know is a KeyError."""
    found, rest = [], list(options)
    while rest:
        count = ARITY[rest[0]] + 1
        found.append(tuple(rest[:count]))
        rest = rest[count:]
    return found


def below(path: str, directory: str) -> bool:
    return path != directory and f"{path}/".startswith(f"{directory.rstrip('/')}/")


def check_rules(options: list[str]) -> None:
    """Assert what must hold for every argument list."""
    steps = operations(options)
    mounts = [(step[0], step[-1]) for step in steps if step[0] in MOUNTS]
    targets = [target for _, target in mounts]
    assert all(os.path.isabs(t) and os.path.normpath(t) == t for t in targets)
    twice = {t for t in targets if targets.count(t) > 1}
    assert not twice, f"two rules for one destination: {twice}"
    for at, (kind, target) in enumerate(mounts):
        hidden = [t for t in targets[:at] if kind in FRESH and below(t, target)]
        assert not hidden, f"{kind} {target} hides what was mounted before: {hidden}"
        planted = [t for t in targets if kind == "--bind" and below(t, target)]
        assert not planted, f"CVE-2026-87766: {planted} lie in {target}, which scripts can write"
    names = [step[0] for step in steps]
    last = max(at for at, name in enumerate(names) if name in (*MOUNTS, "--remount-ro"))
    assert steps[last] == ("--remount-ro", "/"), (
        f"{steps[last]} comes after all was made read-only"
    )
    for read_only in ("/proc", "/dev"):
        at = steps.index(("--remount-ro", read_only))
        late = [s for s in steps[at:] if s[0] in MOUNTS and below(s[-1], read_only)]
        assert not late, f"{late} cannot be made below {read_only}, which is read-only by then"
    assert "--setenv" not in names, "a value on a command line is seen by all processes"
    assert ("--cap-drop", "ALL") in steps
    for needed in "--unshare-all --unshare-user --new-session --die-with-parent".split():
        assert needed in names
    for at, step in enumerate(steps):
        if step[0] == "--tmpfs":
            assert steps[at - 1][0] == "--size", f"{step} takes half of the memory"


def spec(network: str = "on", binds: tuple[tuple[str, str, bool], ...] = ()) -> Spec:
    return Spec(policy=Policy(backend="native", network=network), binds=binds)


BINDS = (
    ("/home/user/data", "/home/user/data", False),
    ("/home/user/out", "/home/user/out", True),
    ("/tmp/input", "/tmp/input", False),
    ("/srv/store", "/pysbx", True),
    ("/srv/pythons", "/python", False),
    ("/opt/uv", "/run/uv", False),
)
DATA = {
    "passwd": 7,
    "group": 8,
    "hosts": 9,
    "resolv.conf": 10,
    "ssl/certs/ca-certificates.crt": 11,
}


@pytest.mark.parametrize("network", ["on", "off"])
@pytest.mark.parametrize("binds", [(), BINDS])
@pytest.mark.parametrize("help_text", ["", HELP])
def test_an_argument_list_keeps_the_rules(
    network: str, binds: tuple[tuple[str, str, bool], ...], help_text: str
) -> None:
    options = bwrap_options(spec(network, binds), DATA, help_text)
    check_rules(options)
    assert ("--share-net" in options) == (network == "on")
    assert ("--disable-userns" in options) == ("--disable-userns" in help_text)


def test_binds_are_read_only_unless_they_say_otherwise() -> None:
    steps = operations(bwrap_options(spec(binds=BINDS), {}, HELP))
    for source, target, writable in BINDS:
        assert ("--bind" if writable else "--ro-bind", source, target) in steps
    assert sum(step[0] == "--bind" for step in steps) == 2


def test_the_work_directory_is_private_and_has_the_size_of_the_policy() -> None:
    policy = Policy(backend="native", network="off", disk=77)
    steps = operations(bwrap_options(Spec(policy=policy), {}, HELP))
    at = steps.index(("--tmpfs", "/work"))
    assert set(steps[at - 2 : at]) == {("--perms", "0700"), ("--size", str(77 << 20))}
    assert ("--chdir", "/work") in steps


def test_files_of_etc_come_by_descriptor() -> None:
    steps = operations(bwrap_options(spec(), DATA, HELP))
    for name, descriptor in DATA.items():
        assert ("--ro-bind-data", str(descriptor), f"/etc/{name}") in steps


# ---- the system call filter

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = tuple(ARCH)
CALLS = {  # x86-64, aarch64; from the kernel's unistd.h
    "read": (0, 63),
    "write": (1, 64),
    "openat": (257, 56),
    "mmap": (9, 222),
    "execve": (59, 221),
    "futex": (202, 98),
    "prctl": (157, 167),
    "getrandom": (318, 278),
    "wait4": (61, 260),
    "kill": (62, 129),
    "pidfd_open": (434, 434),
    "ioctl": (16, 29),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "clone": (56, 220),
    "clone3": (435, 435),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "sethostname": (170, 161),
    "personality": (135, 92),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
}
ORDINARY = """read write openat mmap execve futex prctl getrandom wait4 kill pidfd_open""".split()
UNSEEN = "memfd_create memfd_secret shmget msgget semget".split()
SPECIAL = "ioctl socket socketpair clone clone3".split()
DENIED = [name for name in CALLS if name not in (*ORDINARY, *UNSEEN, *SPECIAL)]


def interpret(program: bytes, data: bytes) -> int:
    """Run a classic BPF program as the kernel does for seccomp; what seccomp forbids fails here."""
    code = list(struct.iter_unpack("<HBBI", program))
    assert 0 < len(code) <= 4096
    accumulator = at = 0
    while True:
        operation, if_true, if_false, k = code[at]  # an IndexError: it runs off its end
        at += 1
        if operation == 0x20:  # load a word
            assert k % 4 == 0
            assert k + 4 <= len(data)
            accumulator = struct.unpack_from("<I", data, k)[0]
        elif operation == 0x06:
            return int(k)
        else:
            met = {
                0x15: accumulator == k,
                0x25: accumulator > k,
                0x35: accumulator >= k,
                0x45: bool(accumulator & k),
            }[operation]
            at += if_true if met else if_false


def answer(
    machine: str, call: str | int, *arguments: int, arch: int = 0, memory_is_limited: bool = True
) -> int:
    """Return the filter's answer to a system call with these 64-bit arguments."""
    number = CALLS[call][MACHINES.index(machine)] if isinstance(call, str) else call
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, arch or ARCH[machine], 0x7F0000001234, *values)
    return interpret(seccomp_filter(machine, memory_is_limited=memory_is_limited), data)


def refused(code: int) -> int:
    return REFUSE | code


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("limited", [True, False])
def test_every_jump_of_the_filter_stays_inside_and_every_path_ends(
    machine: str, limited: bool
) -> None:
    program = seccomp_filter(machine, memory_is_limited=limited)
    assert len(program) % 8 == 0
    code = list(struct.iter_unpack("<HBBI", program))
    for at, (operation, if_true, if_false, _) in enumerate(code):
        assert operation in (0x20, 0x15, 0x25, 0x35, 0x45, 0x06)
        if operation != 0x06:
            assert at + 1 + max(if_true, if_false) < len(code)
    assert code[-1][0] == 0x06


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("limited", [True, False])
def test_ordinary_system_calls_are_allowed(machine: str, limited: bool) -> None:
    for name in ORDINARY:
        assert answer(machine, name, memory_is_limited=limited) == ALLOW, name


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", DENIED)
def test_a_dangerous_system_call_gets_eperm_whatever_its_arguments(
    machine: str, name: str
) -> None:
    for arguments in ((), (1, 2, 3, 4, 5, 6), ((1 << 64) - 1,) * 6):
        assert answer(machine, name, *arguments) == refused(errno.EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_clone_may_make_threads_and_processes_but_no_namespaces(machine: str) -> None:
    sigchld, thread = 17, 0x3D0F00
    for flags in (sigchld, thread, 0x4000 | 0x100 | sigchld):
        assert answer(machine, "clone", flags) == ALLOW
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        for more in (0, sigchld, thread, 1 << 32):
            assert answer(machine, "clone", bit | more) == refused(errno.EPERM), hex(bit)
    assert answer(machine, "clone", sigchld, 0x10000000) == ALLOW, "that is the stack"


@pytest.mark.parametrize("machine", MACHINES)
def test_clone3_does_not_exist_so_that_libc_takes_clone(machine: str) -> None:
    assert answer(machine, "clone3", 0x7FFF0000, 88) == refused(errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("high", [0, 1 << 32, 0xFFFFFFFF << 32])
def test_the_request_of_ioctl_is_compared_as_the_kernel_reads_it(machine: str, high: int) -> None:
    """CVE-2019-10063: an exact compare of 64 bits is passed by TIOCSTI + 2**32."""
    for request in (0x5412, 0x541C):  # TIOCSTI, TIOCLINUX
        assert answer(machine, "ioctl", 0, high | request) == refused(errno.EPERM)
    for request in (0x5401, 0x5413, 0x5421, 0x541B):  # TCGETS, TIOCGWINSZ, FIONBIO, FIONREAD
        assert answer(machine, "ioctl", 0x5412, high | request) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_only_the_socket_families_of_ordinary_programs_can_be_had(machine: str, call: str) -> None:
    unix, inet, inet6, netlink, alg, vsock = 1, 2, 10, 16, 38, 40
    for family in (unix, inet, inet6):
        for kind, protocol in ((1, 0), (2, 0), (2, 17), (1, 6), (3, 1), (1 | 0o2000000, 9)):
            assert answer(machine, call, family, kind, protocol) == ALLOW
    for family in (alg, vsock, 0, 3, 4, 9, 11, 15, 17, 21, 29, 30, 31, 44, 46, 255):
        for high in (0, 1 << 32):
            got = answer(machine, call, high | family, 3, 0)
            assert got == refused(errno.EAFNOSUPPORT), family
    assert answer(machine, call, netlink, 3, 0) == ALLOW, "getaddrinfo needs it"
    for protocol in (*range(1, 24), 9, 0x80000000):
        assert answer(machine, call, netlink, 3, protocol) == refused(errno.EAFNOSUPPORT)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", UNSEEN)
def test_memory_that_no_rlimit_sees_is_denied_only_without_a_cgroup(
    machine: str, name: str
) -> None:
    assert answer(machine, name, memory_is_limited=True) == ALLOW
    assert answer(machine, name, memory_is_limited=False) == refused(errno.EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_foreign_architecture_is_killed(machine: str) -> None:
    foreign = {"i386": 0x40000003, "arm": 0x40000028, "riscv64": 0xC00000F3, "nothing": 0x1}
    others = [*foreign.values(), *(a for m, a in ARCH.items() if m != machine)]
    for arch, name in itertools.product(others, ("read", "ptrace", "socket")):
        assert answer(machine, name, 2, arch=arch) == KILL


def test_the_x32_interface_is_killed_whole() -> None:
    for number in (0, 1, 16, 41, 56, 101, 435, 512, 520, 547):
        assert answer("x86_64", 0x40000000 | number, 2) == KILL
    assert answer("x86_64", 0xFFFFFFFF) == KILL


@pytest.mark.parametrize("machine", ["riscv64", "i686", "armv7l", "ppc64le", "s390x", ""])
def test_there_is_no_filter_for_other_machines_and_that_is_said(machine: str) -> None:
    with pytest.raises(Unavailable, match="docker"):
        seccomp_filter(machine, memory_is_limited=True)


# ---- what bwrap says

SAYS = {  # what bwrap says: what our sentence must name
    "setting up uid map: Permission denied": "AppArmor.*apparmor-profiles",
    "loopback: Failed RTM_NEWADDR: Operation not permitted": "AppArmor.*apparmor-profiles",
    "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded"
    " (ENOSPC)": r"user\.max_user_namespaces",
    "No permissions to create new namespace, likely because the kernel does not allow"
    " non-privileged user namespaces.": "docker.*seccomp=unconfined.*systempaths=unconfined",
    "Can't mount proc on /newroot/proc: Operation not permitted": "systempaths=unconfined",
    "Failed to make / slave: Permission denied": "docker",
    "Can't find source path /opt/x: No such file or directory": "",
    "execvp /opt/x: No such file or directory": "loader",  # the program, or its /lib64/ld-…
    "Can't mkdir parents for /run/x: Permission denied": "",
    "Can't create file at /etc/x: Too many levels of symbolic links": "",
    "Unknown option --size": r"0\.7 or newer",
    "prctl(PR_SET_SECCOMP) reported EINVAL": "(?i)filter|seccomp",  # wrong or shared, never old
}


@pytest.mark.parametrize("said", SAYS)
def test_what_bwrap_says_becomes_one_sentence_with_a_remedy(said: str) -> None:
    """What bwrap 0.8 to 0.13 prints, and what it means."""
    text = explain_bwrap(f"bwrap: {said}\n")
    sentence = text.partition(" (it said")[0]
    assert "\n" not in text
    assert ". " not in sentence
    assert said in text
    remedy = sentence.partition("; ")[2]
    assert re.match(r"(install|use|raise|look|start|try|report|name|give|check) ", remedy)
    assert re.search(SAYS[said], sentence)


@pytest.mark.parametrize(
    "said", ["", "\n\n", "bwrap: something new\nin two lines\n", "x" * 99_999]
)
def test_what_bwrap_never_said_before_is_still_one_short_sentence(said: str) -> None:
    text = explain_bwrap(said)
    assert "\n" not in text
    assert len(text) < 700
    assert ";" in text


# ---- streams


def test_a_short_stream_is_shown_whole() -> None:
    stream = Stream(10)
    for part in (b"ab", b"", b"cdefgh", b"ij", b"klmnop"):
        stream.add(part)
    assert (stream.total, stream.show(16)) == (16, b"abcdefghijklmnop")


def test_of_a_long_stream_the_first_and_the_last_part_are_shown_and_the_middle_counted() -> None:
    stream = Stream(50)
    for number in range(100_000):
        stream.add(b"%05d\n" % number)
    shown = stream.show(100)
    head, _, rest = shown.partition(b"\n[")
    assert stream.total == 600_000
    assert head.startswith(b"00000\n00001\n")
    assert rest.endswith(b"99998\n99999\n")
    left = int(re.search(rb"([\d,]+) bytes left out", shown)[1].replace(b",", b""))  # type: ignore[index]
    marker = re.search(rb"\n\[\.\.\. .* \.\.\.\]\n", shown)
    assert marker
    assert len(shown) - len(marker[0]) + left == stream.total
    assert len(shown) - len(marker[0]) <= 100


def test_a_stream_holds_a_bounded_part_in_memory() -> None:
    stream = Stream(1000)
    for _ in range(1000):
        stream.add(b"x" * 65_536)
        assert len(stream.head) + len(stream.tail) <= 100_000
    assert stream.total == 65_536_000


def test_add_returns_the_part_that_belongs_to_the_head() -> None:
    stream = Stream(5)
    assert [stream.add(part) for part in (b"abc", b"defg", b"hi")] == [b"abc", b"de", b""]


@pytest.mark.parametrize("text", ["é", "世", "🙂", "aé世🙂", "e\u0301", "👨\u200d👩\u200d👧"])
def test_a_stream_is_cut_only_between_characters(text: str) -> None:
    whole, numbers = (text * 400).encode(), random.Random(7)
    for budget in range(20, 60, 2):
        stream, at = Stream(budget // 2), 0
        while at < len(whole):
            size = numbers.randrange(1, 50)
            stream.add(whole[at : at + size])
            at += size
        shown = stream.show(budget).decode("utf-8")  # strict: a torn character is an error
        head, tail = re.split(r"\n\[\.\.\. [\d,]+ bytes left out \.\.\.\]\n", shown)
        assert head == (text * 400)[: len(head)]
        assert (text * 400).endswith(tail)
        assert min(len(head.encode()), len(tail.encode())) >= budget // 2 - 4


def test_what_was_shown_live_is_not_shown_again() -> None:
    stream = Stream(50)
    live = b"".join(stream.add(bytes([97 + n % 26]) * 10) for n in range(100))
    rest = stream.show(100, len(live))
    assert len(live) == 50
    assert rest.startswith(b"\n[... 900 bytes left out ...]\n")
    assert rest.endswith(b"v" * 10)


@pytest.mark.parametrize("data", [b"\xff" * 1000, b"\x80" * 1000, b"\0" * 1000, b"\xf0" * 1000])
def test_bytes_that_are_no_text_are_bounded_too(data: bytes) -> None:
    stream = Stream(20)
    stream.add(data)
    shown = stream.show(40)
    assert len(shown) <= 40 + 40
    assert b"bytes left out" in shown


@pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed")
def test_an_odd_output_limit_shows_the_true_end_of_the_output() -> None:
    """The last part must be the last bytes: none of the first part may stand before them."""
    policy = Policy(network="off", require_sandbox=True, max_output_bytes=101)
    script = "print('a' * 500 + 'b' * 500 + 'c' * 500, end='')"
    head, _, tail = run(script, policy=policy).stdout.partition("\n[")
    assert set(head) == {"a"}
    assert set(tail.partition("]\n")[2]) == {"c"}


# ---- the files that a hostile script left


def opened(place: Path) -> list[str]:
    """Return what this process holds open at or below a directory; other threads hold other things."""
    names = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(link))
    return [name for name in names if name == str(place) or name.startswith(f"{place}/")]


def collected(place: Path, seconds: float = 5.0) -> tuple[dict[str, int], list[str], list[object]]:
    """Return ({name: size}, notes, data) of what is collected below a directory."""
    notes: list[str] = []
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with within(seconds):
            files = collect_files(_entries(directory), notes)
        assert opened(place) == [str(place)], "a descriptor was left open"
    finally:
        os.close(directory)
    return {file.name: file.size for file in files}, notes, [file.data for file in files]


def test_regular_files_come_back_and_the_script_itself_does_not(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print(1)")
    (tmp_path / "a.txt").write_text("abc")
    (tmp_path / "empty").touch()
    (tmp_path / "sub/deeper").mkdir(parents=True)
    (tmp_path / "sub/deeper/script.py").write_text("x")
    assert collected(tmp_path) == (
        {"a.txt": 3, "empty": 0, "sub/deeper/script.py": 1},
        [],
        [b"abc", b"", b"x"],
    )


def test_directories_alone_end_the_collection_too(tmp_path: Path) -> None:
    for one in range(60):
        for other in range(100):
            (tmp_path / f"{one}/{other}").mkdir(parents=True)
    (tmp_path / "a.txt").write_text("a")
    files, notes, _ = collected(tmp_path)
    assert files == {"a.txt": 1} and "more than" in notes[0]


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").write_text("secret")
    for name, target in (
        ("absolute", str(tmp_path / "secret")),
        ("relative", "../secret"),
        ("dangling", "missing"),
        ("loop", "loop"),
        ("passwd", "/etc/passwd"),
        ("root", "/"),
        ("up", ".."),
    ):
        (tmp_path / "work" / name).symlink_to(target)
    names, notes, _ = collected(tmp_path / "work")
    assert names == {}
    assert len(notes) == 1
    assert notes[0].startswith("7 ")


def test_pipes_sockets_and_devices_are_neither_opened_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    count = 2
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):  # not even root may in a user namespace
            os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
            count = 3
    (tmp_path / "good").write_text("x")
    names, notes, _ = collected(tmp_path)
    assert names == {"good": 1}
    assert notes[0].startswith(f"{count} ")


def test_hard_links_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1000)
    for number in range(200):
        os.link(tmp_path / "a", tmp_path / f"b{number}")
    names, notes, data = collected(tmp_path)
    assert (names, data) == ({"a": 1000}, [b"x" * 1000])
    assert notes[0].startswith("200 ")


def test_three_thousand_directories_are_walked_in_time(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"d{number:04}").mkdir()
    (tmp_path / "z.txt").write_text("last")
    assert collected(tmp_path)[0] == {"z.txt": 4}


def test_a_deep_tree_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/b/c/near").write_text("x")
    there = os.open(".", os.O_RDONLY)
    try:
        os.chdir(tmp_path)
        for _ in range(500):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        Path("far").write_text("x")
    finally:
        os.fchdir(there)
        os.close(there)
    names, notes, _ = collected(tmp_path)
    assert names == {"a/b/c/near": 1}
    assert notes, "files are missing, and nothing says so"
    subprocess.run(["rm", "-rf", tmp_path / ("d" * 200)], check=True)


def test_a_sparse_file_of_a_tebibyte_is_named_and_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        try:
            file.truncate(1 << 40)
        except OSError:
            pytest.skip("this file system has no files of a tebibyte")
    assert collected(tmp_path, 1) == ({"huge": 1 << 40}, [], [None])


def test_all_files_together_are_bounded_and_the_rest_is_only_named(tmp_path: Path) -> None:
    for number in range(6):
        with open(tmp_path / f"f{number}", "wb") as file:
            file.truncate(9 << 20)
    names, _, data = collected(tmp_path)
    assert len(names) == 6
    assert sum(len(d) for d in data if isinstance(d, bytes)) <= 32 << 20
    assert data.count(None) == 3


def test_six_thousand_files_give_a_hundred_and_a_note(tmp_path: Path) -> None:
    for number in range(6000):
        os.close(os.open(tmp_path / f"f{number:04}", os.O_CREAT | os.O_WRONLY))
    names, notes, _ = collected(tmp_path)
    assert len(names) == 100
    assert len(notes) == 1


def test_what_cannot_be_read_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "good").write_text("x")
    (tmp_path / "good").chmod(0o644)
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "write-only").write_text("x")
    (tmp_path / "write-only").chmod(0o222)
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    notes: list[str] = []
    try:
        with an_ordinary_user():
            files = collect_files(_entries(directory), notes)
    finally:
        os.close(directory)
    assert [file.name for file in files] == ["good"]
    assert notes[0].startswith("2 ")


def test_a_directory_that_cannot_be_read_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/file").write_text("x")
    (tmp_path / "closed").chmod(0)
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    notes: list[str] = []
    try:
        with an_ordinary_user():
            files = collect_files(_entries(directory), notes)
    finally:
        os.close(directory)
        (tmp_path / "closed").chmod(0o700)
    assert files == ()
    assert notes, "files are missing, and nothing says so"


def test_odd_names_are_left_out_and_harmless_ones_are_not(tmp_path: Path) -> None:
    good = ["-rf", " x", "a b", "é世🙂", "x" * 255, "...", "..a", ".hidden", "'\"", "$(id)", "a:b"]
    bad = [
        b"new\nline",
        b"\x1b[31mred",
        b"\xff\xfe",
        b"back\\slash",
        b"\xe2\x80\xaegpj.exe",  # turns the direction of writing
        b"\x7f",
        b"a\rb",
        b"\xed\xb2\x80",
        b"\xc2\x85",
    ]
    for name in good:
        (tmp_path / name).write_text("x")
    for raw in bad:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + raw)).write_text("x")
    names, notes, _ = collected(tmp_path)
    assert set(names) == set(good)
    assert notes[0].startswith(f"{len(bad)} ")
    json.dumps(names).encode("ascii")


def test_what_lies_in_a_directory_with_an_odd_name_is_left_out_and_that_is_said(
    tmp_path: Path,
) -> None:
    (tmp_path / "odd\nname").mkdir()
    (tmp_path / "odd\nname/file").write_text("x")
    names, notes, _ = collected(tmp_path)
    assert names == {}
    assert notes, "a file is missing, and nothing says so"


def test_a_directory_that_was_removed_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    directory = os.open(tmp_path / "gone", os.O_RDONLY | os.O_DIRECTORY)
    (tmp_path / "gone").rmdir()
    assert collect_files(_entries(directory), []) == ()
    os.close(directory)


# ---- docker's arguments


def docker_options(spec: Spec) -> list[str]:
    argv = docker_argv(spec, "pysbx-name", "/profile.json")
    return argv[: argv.index(spec.policy.docker_image)]


def docker_spec(network: str = "on", env: tuple[tuple[str, str], ...] = ()) -> Spec:
    policy = Policy(backend="docker", network=network, memory=700, max_processes=50)
    binds = (("pysbx-cache", "/pysbx", False),)
    return Spec(policy=policy, binds=binds, env=env)


def test_a_container_is_named_labelled_limited_and_closed() -> None:
    said = " ".join(docker_options(docker_spec("off")))
    for wanted in (
        "--name pysbx-name",
        "--label pysbx=",
        "--network none",
        "--read-only",
        "--cap-drop ALL",
        "no-new-privileges",
        "seccomp=/profile.json",
        "--memory 700m --memory-swap 700m",
        "--pull never",
        "--ipc private",
        "--rm",
    ):
        assert wanted in said
    assert int(re.findall(r"--pids-limit (\d+)", said)[0]) <= 50 + 8
    assert not re.search(r"--user (0|root)\b", said)
    for forbidden in ("--privileged", "host", "docker.sock", " -v ", "--volume", "type=bind"):
        assert forbidden not in said.replace("--hostname", "")


def test_a_container_sees_the_volume_read_only_and_nothing_of_the_host() -> None:
    options = docker_options(docker_spec())
    mounts = [options[at + 1] for at, option in enumerate(options) if option == "--mount"]
    assert mounts == ["type=volume,src=pysbx-cache,dst=/pysbx,readonly"]


def test_a_secret_of_the_operator_is_in_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2")
    said = docker_argv(docker_spec(env=(("API_TOKEN", "hunter2"),)), "name", "/profile.json")
    assert "API_TOKEN" in said
    assert "hunter2" not in " ".join(said)


# ---- uv, and the cache


def test_a_uv_that_is_not_there_is_named_with_the_remedy() -> None:
    with pytest.raises(Unavailable, match="/no/such/uv.*--uv-path"):
        find_uv(Policy(uv_path="/no/such/uv"))


def test_a_uv_on_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uv").write_text("#!/bin/sh\n")
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UV", raising=False)
    assert find_uv(Policy()) == os.path.realpath(tmp_path / "uv")


def test_uv_gets_the_operators_index_and_nothing_else_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(os.environ):
        if name.startswith(("UV_", "PIP_")):
            monkeypatch.delenv(name)
    given = {
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX_CORP_PASSWORD": "secret",
        "HTTPS_PROXY": "http://proxy.example:3128",
    }
    refused_ones = {
        "UV_CACHE_DIR": "/home/user/.cache/uv",
        "UV_CONFIG_FILE": "/home/user/uv.toml",
        "UV_PUBLISH_TOKEN": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "VIRTUAL_ENV": "/home/user/venv",
        "PYTHONPATH": "/home/user",
        "LD_PRELOAD": "/home/user/x.so",
    }
    for name, value in {**given, **refused_ones}.items():
        monkeypatch.setenv(name, value)
    env = uv_environment("/cache")
    assert given.items() <= env.items()
    assert not refused_ones.items() & env.items()
    assert env["UV_CACHE_DIR"].startswith("/cache")
    assert env["UV_NO_CONFIG"] == "1"


def test_the_cache_is_a_directory_of_ours_and_never_that_of_uv(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory(prefix="pysbx-test-") as place:
        os.chmod(place, 0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        monkeypatch.setenv("UV_CACHE_DIR", f"{place}/uv")
        assert cache_dir("native").is_relative_to(f"{place}/pysbx")
        assert cache_dir("native") != cache_dir("docker")
        assert not os.path.exists(f"{place}/uv")


# ---- the argument lists of real runs

RECORD = """#!/bin/sh
if [ "$1" = --args ]; then
    cat "/proc/self/fd/$2" >{log}/$$.options
    printf '%s\\0' "$@" >{log}/$$.words
fi
exec {bwrap} "$@"
"""


class Recorder:
    """A bwrap on PATH that writes down its options and becomes the real one."""

    def __init__(self, place: Path) -> None:
        self.place, self.log = place, place / "log"
        for directory in (place, *(place / n for n in ("bin", "wheels", "log"))):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o755)
        self.log.chmod(0o777)  # bwrap is started under another uid
        (place / "bin/bwrap").write_text(RECORD.format(log=self.log, bwrap=shutil.which("bwrap")))
        (place / "bin/bwrap").chmod(0o755)

    def run(
        self, script: str, *options: str
    ) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
        """Run the command line -> what came out, the options of every sandbox."""
        env = {
            **os.environ,
            "PATH": f"{self.place}/bin:{os.environ['PATH']}",
            "UV_FIND_LINKS": f"{self.place}/wheels",
            "UV_OFFLINE": "1",
            "API_TOKEN": "hunter2-of-a-test",
        }
        argv = [sys.executable, str(ROOT / "pysbx.py"), "--require-sandbox", *options, "-"]
        done = subprocess.run(
            argv, input=script, env=env, capture_output=True, text=True, timeout=60
        )
        assert not any(b"hunter2" in file.read_bytes() for file in self.log.iterdir())
        files = sorted(self.log.glob("*.options"))
        return done, [file.read_text().split("\0")[:-1] for file in files]

    def wheel(self) -> None:
        """Put a package into the directory that uv looks at."""
        info = "recorded-1.0.dist-info"
        files = {
            "recorded.py": "VALUE = 42\n",
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: recorded\nVersion: 1.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
        path = self.place / "wheels/recorded-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in {**files, f"{info}/RECORD": record}.items():
                archive.writestr(name, text)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    if not HAS_BWRAP:
        pytest.skip("bubblewrap is not installed")
    with tempfile.TemporaryDirectory(prefix="pysbx-test-", ignore_cleanup_errors=True) as place:
        yield Recorder(Path(place))


def test_every_sandbox_of_a_run_that_installs_packages_keeps_the_rules(recorder: Recorder) -> None:
    recorder.wheel()
    script = "import os, recorded; print(recorded.VALUE, os.environ['API_TOKEN'][:7])"
    done, lists = recorder.run(script, "--with", "recorded==1.0", "--pass-env", "API_TOKEN")
    assert (done.returncode, done.stdout) == (0, "42 hunter2\n"), done.stderr
    assert len(lists) >= 3, "install, compile and run have a sandbox each"
    for options in lists:
        check_rules(options)
    written = [[step[-1] for step in operations(o) if step[0] == "--bind"] for o in lists]
    assert [] in written, "the script's own sandbox has nothing writable of the host"
    closed = [options for options in lists if "--share-net" not in options]
    assert closed, "packages are compiled without network"


def test_a_run_without_network_has_no_sandbox_with_network(recorder: Recorder) -> None:
    done, lists = recorder.run("print(1)", "--network", "off")
    assert done.returncode == 0, done.stderr
    assert lists
    for options in lists:
        check_rules(options)
        assert "--share-net" not in options
        assert "/etc/resolv.conf" not in options


@pytest.mark.parametrize(
    "mounts",
    [("{0}",), ("{0}:rw",), ("{0}", "{0}"), ("{0}:rw", "{0}/sub"), ("{0}/sub", "{0}"), ("/tmp",)],
    ids=["one", "writable", "twice", "one in a writable one", "the inner one first", "tmp"],
)
def test_mounts_keep_the_rules_or_are_refused_in_one_sentence(
    mounts: tuple[str, ...], recorder: Recorder
) -> None:
    shown = recorder.place / "shown"
    for directory in (shown, shown / "sub"):
        directory.mkdir()
        directory.chmod(0o777)
    options = [word for mount in mounts for word in ("--mount", mount.format(shown))]
    done, lists = recorder.run("import os; os.stat(os.environ['HOME'])", *options)
    if done.returncode == 125:
        assert done.stderr.startswith("pysbx: --mount")
        assert done.stderr.count("\n") == 1
    else:
        assert done.returncode == 0, done.stderr
        assert lists
        for arguments in lists:
            check_rules(arguments)


@pytest.mark.parametrize("program", ["exit 1", "echo ready; exec sleep 30"])
def test_a_systemd_that_gives_no_scope_is_not_believed(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(pysbx_sandbox, "_holder", holders)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "systemd-run").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "systemd-run").chmod(0o755)
    with pytest.raises(OSError, match="systemd left it"):
        pysbx_sandbox._user_scope()
    for holder in holders:
        holder.kill()
        holder.communicate()


def test_dockers_filter_compares_32_bits_as_the_kernel_reads_them() -> None:
    for rule in json.loads(pysbx_sandbox.docker_seccomp())["syscalls"]:
        for test in rule["args"]:
            assert test["op"] == "SCMP_CMP_MASKED_EQ" or test["index"] == 2, rule


@pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed")
def test_hints_for_a_long_script_come_in_time() -> None:
    result = run("print(1)")
    with within(2):
        pysbx.hints("\n" * 200_000, replace(result, stderr="SyntaxError"), 30)


@pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed")
def test_a_link_in_the_target_gets_no_directories_behind_it(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "behind").mkdir()
    (tmp_path / "target/link").symlink_to(tmp_path / "behind")
    result = replace(run("print(1)"), files=(pysbx_sandbox.File("link/a/b.txt", 1, b"x"),))
    (failed,) = pysbx.write_files(result, tmp_path / "target")
    assert "link" in failed and not os.listdir(tmp_path / "behind")
