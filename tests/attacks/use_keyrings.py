# class: kernel
# tries: kernel keyrings, which are in no namespace: reads the session's, adds a key, lists keys
# network: any
import ctypes
import platform

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *args):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return libc.syscall(x86 if X86 else arm, *words)


got = []
for ring in (-3, -4, -5):
    if call(250, 219, 0, ring, 0) > 0:
        got.append(f"keyctl finds keyring {ring}")
key = call(248, 217, b"user", b"@MARK@", b"x", 1, -2)  # in its own process keyring
got += ["add_key"] * (key > 0)
got += ["request_key"] * (call(249, 218, b"user", b"@MARK@", None, -2) > 0)
print(f"ESCAPED: {got}" if got else "HELD: no keyring")
