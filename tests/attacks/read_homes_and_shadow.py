# class: fs-read
# tries: lists the homes of people, opens password hashes, tokens and keys of the system
# network: any
import glob
import os

got = [home for home in ("/root", *glob.glob("/home/*"), *glob.glob("/Users/*"))]
got = [home for home in got if os.access(home, os.R_OK) and os.listdir(home)]
for pattern in (
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssh/*_key",
    "/etc/ssl/private/*",
    "/var/lib/docker/*",
    "/var/run/secrets/*",
    "/run/secrets/*",
    "/etc/machine-id",
):
    for path in glob.glob(pattern):
        try:
            if os.path.isdir(path) and os.listdir(path) or open(path, "rb").read(1):
                got.append(path)
        except OSError:
            pass
print(f"ESCAPED: can be read: {got[:6]}" if got else "HELD: no home, hash or key can be read")
