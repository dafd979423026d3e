# class: fs-read
# tries: the homes of people, password hashes, keys, and the settings by which the operator logs in
# network: any
import glob
import os
import pwd

homes = ["/root", *glob.glob("/home/*"), *glob.glob("/Users/*")]
got = [home for home in homes if os.access(home, os.R_OK) and os.listdir(home)]
paths = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/netrc", "/etc/uv/uv.toml"]
paths += [os.environ.get("NETRC") or "/nowhere", "/etc/machine-id"]
for pattern in ("/etc/ssh/*_key", "/etc/ssl/private/*", "/var/lib/docker/*", "/run/secrets/*"):
    paths += glob.glob(pattern)
names = ".netrc .pypirc .config/uv/uv.toml .config/pip/pip.conf .docker/config.json netrc".split()
names += [".aws/credentials", ".git-credentials", ".ssh/id_ed25519", ".ssh/id_canary"]
for home in {*homes, os.path.expanduser("~"), "@DIR@", pwd.getpwuid(os.getuid()).pw_dir}:
    paths += [f"{home}/{name}" for name in names]
for path in paths:
    try:
        if os.path.isdir(path) and os.listdir(path) or open(path, "rb").read(1):
            got.append(path)
    except OSError:
        pass
print(f"ESCAPED: can be read: {got[:6]}" if got else "HELD: no home, hash, key or credential")
