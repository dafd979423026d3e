# class: artifact
# tries: leaves links to files of the host, hard and symbolic, and directories that are links
# network: any
import os

target = "@DIR@/secret.txt"
links = {"a.txt": target, "b.txt": "../" * 20 + target, "c.txt": "/proc/self/root" + target}
links |= {"d.txt": "/proc/self/environ", "e.txt": "/etc/passwd", "f": "/", "g": "@DIR@", "h": ".."}
links |= {"i.txt": "/proc/1/fd/0", "loop": "loop"}
for name, to in links.items():
    os.symlink(to, name)
for source in ("/etc/passwd", "/usr/bin/env", target):
    try:
        os.link(source, f"hard-{os.path.basename(source)}")
    except OSError:
        pass
with open("plain.txt", "w") as file:
    file.write("plain")
for number in range(50):
    os.link("plain.txt", f"again-{number}")
print("ATTEMPTED: links are left")
