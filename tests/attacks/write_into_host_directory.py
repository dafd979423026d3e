# class: fs-write
# tries: makes files where everybody on the host may write, and by names relative to the caller
# network: any
import os

made = 0
for place in ("@DIR@/writable", "@DIR@/home/.config/autostart", "/var/tmp", "/run", "../.."):
    try:
        os.makedirs(place, exist_ok=True)
        with open(f"{place}/@MARK@", "w") as file:
            made += file.write("x")
    except OSError:
        pass
print(f"ATTEMPTED: {made} files made, if only in the sandbox")
