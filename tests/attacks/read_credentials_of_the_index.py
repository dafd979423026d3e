# class: fs-read
# tries: the netrc and the pip, uv, docker and cloud settings by which the operator logs in
# network: any
import os
import pwd

homes = {os.path.expanduser("~"), "/root", "@DIR@", pwd.getpwuid(os.getuid()).pw_dir}
names = ".netrc .pypirc .config/uv/uv.toml .config/pip/pip.conf .docker/config.json".split()
names += [".aws/credentials", ".git-credentials", "netrc"]
paths = ["/etc/netrc", "/etc/uv/uv.toml", os.environ.get("NETRC") or "/nowhere"]
got = []
for path in [*paths, *(f"{home}/{name}" for home in homes for name in names)]:
    try:
        with open(path) as file:
            got += [path] * bool(file.read(1))
    except OSError:
        pass
print(f"ESCAPED: credentials in {got}" if got else "HELD: no credentials")
