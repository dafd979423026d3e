# class: kernel
# tries: calls for administrators with arguments that do nothing: reboot, clock, modules, swap
# network: any
import ctypes
import platform

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *args):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return libc.syscall(x86 if X86 else arm, *words)


room = ctypes.create_string_buffer(256)
got = []
EPERM, ENOSYS = 1, 38
for name, x86, arm, words, done in (
    ("reboot", 169, 142, (0, 0, 0, 0), (22,)),  # not the magic number: EINVAL where it is allowed
    ("settimeofday", 164, 170, (None, None), (0,)),
    ("clock_adjtime", 305, 266, (0, room), (0,)),
    ("syslog", 103, 116, (10, None, 0), (0,)),
    ("swapon", 167, 224, (b"/nowhere", 0), (2,)),
    ("acct", 163, 89, (b"/nowhere",), (2,)),
    ("init_module", 175, 105, (None, 0, b""), (8, 14, 22)),
    ("delete_module", 176, 106, (b"nowhere", 0x800), (2,)),
    ("kexec_load", 246, 104, (0, 17, None, 0), (22,)),
    ("quotactl", 179, 60, (0x800001 << 8, None, 0, None), (0,)),
    ("iopl", 172, -1, (3,), (0,)),
    ("ioperm", 173, -1, (0x80, 1, 1), (0,)),
    ("modify_ldt", 154, -1, (0, room, 16), (0,)),
    ("personality", 135, 92, (0x0400000,), (0,)),  # READ_IMPLIES_EXEC
    ("move_pages", 279, 239, (1, 0, None, None, None, 0), (0,)),
    ("lookup_dcookie", 212, 18, (0, room, 256), (22,)),
):
    if not X86 and arm < 0:
        continue
    ctypes.set_errno(0)
    answer = call(x86, arm, *words)
    error = ctypes.get_errno() if answer < 0 else 0
    got += [name] * (error in done)
print(f"ESCAPED: allowed: {got}" if got else "HELD: none is allowed")
