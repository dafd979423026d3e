# class: privilege
# tries: setuid, setgid, setgroups, programs with the set-id bit, a set-id bit of its own
# network: any
import os
import shutil
import stat
import subprocess

got = []
for what in (os.setuid, os.setgid, os.seteuid, os.setegid):
    if os.getuid() != 0 or what is os.setuid:
        try:
            what(0)
            got.append(what.__name__)
        except OSError:
            pass
try:
    os.setgroups([0, 4])
    got.append("setgroups")
except OSError:
    pass
for place in os.environ["PATH"].split(":") + ["/usr/lib/dbus-1.0", "/usr/lib/openssh"]:
    for name in os.listdir(place) if os.path.isdir(place) else ():
        path = f"{place}/{name}"
        try:
            state = os.stat(path)
            if not state.st_mode & (stat.S_ISUID | stat.S_ISGID):
                continue
            with open("/proc/self/status") as status:
                if "NoNewPrivs:\t1" not in status.read() and not os.statvfs(path).f_flag & 2:
                    got.append(path)
        except OSError:
            pass
try:
    shutil.copy("/usr/bin/id", "own-id")
    os.chmod("own-id", 0o6755)
    said = subprocess.run(["./own-id", "-u"], capture_output=True, text=True).stdout.strip()
    got += ["a set-id program of its own"] * (said == "0")
except OSError:
    pass
print(f"ESCAPED: {got[:5]}" if got else "HELD: it stays who it is")
