# class: kernel
# tries: unshare of every other namespace, setns into those of the first process, also by pidfd
# network: any
import ctypes
import os
import platform

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *args):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return libc.syscall(x86 if X86 else arm, *words)


kinds = {"mnt": 0x20000, "net": 0x40000000, "pid": 0x20000000, "uts": 0x4000000}
kinds |= {"ipc": 0x8000000, "cgroup": 0x2000000, "time": 0x80}
got = []


def in_child(*words):
    if os.fork() == 0:
        os._exit(40 if call(*words) == 0 else 0)
    return os.waitstatus_to_exitcode(os.wait()[1]) == 40


for kind, flag in kinds.items():
    got += [f"unshare {kind}"] * in_child(272, 97, flag)
for kind in (*kinds, "user"):
    try:
        fd = os.open(f"/proc/1/ns/{kind}", os.O_RDONLY)
    except OSError:
        continue
    got += [f"setns {kind}"] * in_child(308, 268, fd, 0)
first = call(434, 434, 1, 0)
got += ["setns by pidfd"] * (first >= 0 and in_child(308, 268, first, 0x20000))
print(f"ESCAPED: {got}" if got else "HELD: it stays in its namespaces")
