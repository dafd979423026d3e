# class: output
# tries: reads what is meant for the server: its stdin, by descriptor and by path
# network: any
import os
import select

got = []
for path in ("", "/dev/stdin", "/proc/self/fd/0", f"/proc/{os.getppid()}/fd/0", "/proc/1/fd/0"):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if path else 0
        if select.select([fd], [], [], 0.2)[0] and (data := os.read(fd, 4096)):
            got.append((path, len(data)))
    except OSError:
        pass
print(f"ESCAPED: read {got}" if got else "HELD: its input is empty")
