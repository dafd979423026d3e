# class: kernel
# tries: a user namespace of its own, by unshare, clone and clone3: the door to most kernel bugs
# network: any
import ctypes
import os
import platform
import struct

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *args):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return libc.syscall(x86 if X86 else arm, *words)


USER = 0x10000000
got = []
if os.fork() == 0:
    os._exit(40 if call(272, 97, USER) == 0 else 0)
got += ["unshare"] * (os.waitstatus_to_exitcode(os.wait()[1]) == 40)
for flags in (USER, USER | 0x20000, USER | 0x40000000):
    child = call(56, 220, flags | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
        got.append(f"clone {flags:#x}")
    for size in (64, 88):
        arguments = struct.pack("11Q", flags, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)[:size]
        child = call(435, 435, arguments, size)
        if child == 0:
            os._exit(0)
        if child > 0:
            os.waitpid(child, 0)
            got.append(f"clone3 {flags:#x}")
print(f"ESCAPED: {got}" if got else "HELD: no user namespace")
