# class: resource
# tries: a file that says it has a tebibyte
# network: any
import os

grown = []
for place in (".", "/tmp", "/dev/shm"):
    path = f"{place}/@MARK@-sparse"
    try:
        with open(path, "wb") as file:
            os.truncate(file.fileno(), 1 << 40)
            grown.append(place)
        os.unlink(path)
    except OSError:
        pass
print(f"ESCAPED: in {grown}" if grown else "HELD: the size of a file is limited")
