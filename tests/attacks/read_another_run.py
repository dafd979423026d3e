# class: fs-read
# tries: finds the files, the memory and the arguments of a run that goes on at the same time
# network: any
# needs: sibling
import glob
import os

got = []
for place in ("/tmp", "/dev/shm", "/var/tmp", "/work", "/run", "."):
    for directory, _, names in os.walk(place):
        got += [f"{directory}/{name}" for name in names if name == "@MARK@-sibling"]
got += glob.glob("/proc/[0-9]*/cwd/@MARK@-sibling")
print(f"ESCAPED: files of another run: {got[:4]}" if got else "HELD: nothing of the other run")
