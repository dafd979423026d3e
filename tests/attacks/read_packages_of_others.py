# class: fs-read
# tries: lists what others installed: environments, the package cache, wheels of private packages
# network: any
import os
import sys

own = os.path.realpath(sys.prefix)
envs = os.path.dirname(own) if os.path.exists(f"{own}/pyvenv.cfg") else "/pysbx/envs"
store = os.path.dirname(envs)
got = []
for place in (
    envs,
    store,
    f"{store}/cache",
    "/pysbx/cache",
    f"{store}/new",
    os.path.expanduser("~/.cache/uv"),
):
    try:
        names = set(os.listdir(place)) - {os.path.basename(own), "envs", "ca.pem", "pythons"}
        names -= {"cache", "new", "id"}  # these are looked into below, the id cannot be read
        got += [f"{place}/{name}" for name in names]
    except OSError:
        pass
print(f"ESCAPED: visible: {sorted(got)[:4]}" if got else "HELD: only its own environment")
