# class: kernel
# tries: io_uring, bpf, perf events, userfaultfd, fanotify, file handles: where bugs are found
# network: any
import ctypes
import os
import platform

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *args):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return libc.syscall(x86 if X86 else arm, *words)


room = ctypes.create_string_buffer(256)
perf = ctypes.create_string_buffer(b"\1\0\0\0\x80\0\0\0" + bytes(120), 128)
array = ctypes.create_string_buffer(b"\2\0\0\0\4\0\0\0\4\0\0\0\1\0\0\0" + bytes(112), 128)
got = []
for name, x86, arm, words in (
    ("io_uring_setup", 425, 425, (4, room)),
    ("bpf", 321, 280, (0, array, 128)),
    ("perf_event_open", 298, 241, (perf, 0, -1, -1, 0)),
    ("userfaultfd", 323, 282, (0x800,)),
    ("userfaultfd, user mode", 323, 282, (1,)),
    ("fanotify_init", 300, 262, (0x200, 0)),
):
    fd = call(x86, arm, *words)
    if fd >= 0:
        got.append(name)
        os.close(fd)
handle = ctypes.create_string_buffer(b"\x80\0\0\0" + bytes(140), 144)
root = os.open("/", os.O_RDONLY)
if call(303, 264, root, b"usr", handle, ctypes.byref(ctypes.c_int()), 0) == 0:
    got.append("name_to_handle_at")
handle.raw = b"\x08\0\0\0\1\0\0\0\2\0\0\0" + bytes(132)  # inode 2, as "shocker" did
for place in (root, os.open("/usr", os.O_RDONLY)):
    got += ["open_by_handle_at"] * (call(304, 265, place, handle, 0) >= 0)
print(f"ESCAPED: {got}" if got else "HELD: all are closed")
