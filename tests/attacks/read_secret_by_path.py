# class: fs-read
# tries: opens files of the host that everybody may read, by their absolute paths
# network: any
PATHS = ("@DIR@/secret.txt", "@DIR@/home/.ssh/id_canary", "/var/tmp/@NAME@", "/dev/shm/@NAME@")
got = []
for path in PATHS:
    try:
        with open(path) as file:
            got.append((path, len(file.read())))
    except OSError:
        pass
print(f"ESCAPED: read {got}" if got else "HELD: none of the paths exists")
