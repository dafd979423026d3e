# class: fs-read
# tries: reads in /proc/keys which keys the user of this machine holds: tickets, accounts
# network: any
try:
    with open("/proc/keys") as file:
        rows = file.read().splitlines()
except OSError:
    rows = []
got = [row for row in rows if "@NAME@" in row]
print("ESCAPED: a key of the host is listed" if got else f"HELD: {len(rows)} keys, none of them")
