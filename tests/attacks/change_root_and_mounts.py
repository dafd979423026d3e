# class: privilege
# tries: chroot, pivot_root, mount, remount and umount, with the old system calls and the new
# network: any
import ctypes
import os
import platform

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *args):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return libc.syscall(x86 if X86 else arm, *words)


os.makedirs("new/old", exist_ok=True)
got = []
if os.fork() == 0:
    os._exit(40 if call(161, 51, b"new") == 0 else 0)
got += ["chroot"] * (os.waitstatus_to_exitcode(os.wait()[1]) == 40)
if call(155, 41, b"new", b"new/old") == 0:
    got.append("pivot_root")
for words in (
    (b"none", b"new", b"tmpfs", 0, None),
    (b"proc", b"new", b"proc", 0, None),
    (b"new/old", b"new", None, 0x1000, None),
):
    if call(165, 40, *words) == 0:
        got.append(f"mount of {words[0].decode()}")
        call(166, 39, b"new", 2)
for place in (b"/usr", b"/proc", b"/dev"):  # writable again; a refusal changes nothing
    if (
        os.readlink("/proc/self/ns/pid") != "@PIDNS@"
        and call(165, 40, None, place, None, 4128, 0) == 0
    ):
        got.append(f"remount of {place.decode()}")
for name, numbers, words in (
    ("open_tree", 428, (-100, b"new", 1)),
    ("fsopen", 430, (b"tmpfs", 0)),
    ("mount_setattr", 442, (-100, b"new", 0, ctypes.create_string_buffer(32), 32)),
):
    if call(numbers, numbers, *words) >= 0:
        got.append(name)
print(f"ESCAPED: {got}" if got else "HELD: neither root nor mounts can be changed")
