# class: process
# tries: ptrace, process_vm_readv, pidfd_getfd and kcmp on its parent, and on the first process
# network: any
import ctypes
import os
import platform

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)
one = ctypes.create_string_buffer(16)
iov = (ctypes.c_void_p * 2)(ctypes.addressof(one), 1)


def call(x86, arm, *args):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return libc.syscall(x86 if X86 else arm, *words)


got = []
pids = {os.getppid()} | ({1} if os.readlink("/proc/self/ns/pid") != "@PIDNS@" else set())
for pid in pids:
    if call(101, 117, 0x4206, pid, 0, 0) == 0:  # PTRACE_SEIZE does not stop it
        got.append(f"ptrace of {pid}")
        call(101, 117, 17, pid, 0, 0)
    for line in open(f"/proc/{pid}/maps"):
        area = (ctypes.c_void_p * 2)(int(line.partition("-")[0], 16), 1)
        if call(310, 270, pid, iov, 1, area, 1, 0) == 1:
            got.append(f"process_vm_readv of {pid}")
            break
    fd = call(434, 434, pid, 0)
    if fd >= 0 and call(438, 438, fd, 1, 0) >= 0:
        got.append(f"pidfd_getfd of {pid}")
    if call(312, 272, os.getpid(), pid, 2, 0, 0) >= 0:
        got.append(f"kcmp with {pid}")
print(f"ESCAPED: {got}" if got else f"HELD: {len(pids)} processes cannot be touched")
