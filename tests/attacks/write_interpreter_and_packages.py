# class: fs-write
# tries: changes the interpreter, the standard library, its package environment, or their caches
# network: any
import os
import sys
import sysconfig

own = os.path.realpath(sys.prefix)
places = [own, os.path.dirname(own), sys.base_prefix, os.path.dirname(os.__file__), "/pysbx"]
places += [
    sysconfig.get_path("purelib"),
    f"{own}/bin",
    "/pysbx/cache",
    "/python",
    "/pysbx/pythons",
]
files = [os.__file__, f"{own}/pyvenv.cfg", sysconfig.__file__, sys.executable]
got = []
for path in files:
    try:
        os.close(os.open(path, os.O_WRONLY))
        got.append(path)
    except OSError:
        pass
for place in places:
    try:
        os.chmod(place, os.stat(place).st_mode)
        got.append(f"mode of {place}")
    except OSError:
        pass
    try:
        with open(f"{place}/@MARK@.pth", "w") as file:
            file.write("# would run in every later script\n")
        got.append(place)
        os.unlink(f"{place}/@MARK@.pth")
    except OSError:
        pass
print(f"ESCAPED: can be changed: {got[:5]}" if got else "HELD: interpreter and packages stay")
