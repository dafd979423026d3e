# class: output
# tries: invalid UTF-8, control characters, NUL, surrogates, sequences for the terminal, half lines
# network: any
# exit: 7
import os
import sys

print("ATTEMPTED: bytes of all kinds", flush=True)
for fd in (1, 2):
    os.write(fd, bytes(range(256)) * 20)
    os.write(fd, b"\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf\xe2\x82\x1b]52;c;eA==\7\x1b[2J\x1bP\x1b\\")
    os.write(fd, "\u202e\ufeff\U000e0001".encode() + b"\r" * 1000)
sys.exit(7)
