# class: fs-write
# tries: writes their present values back into kernel settings; opens switches of control groups
# network: any
import glob
import os

got = []
for name in "core_pattern modprobe hostname domainname ns_last_pid randomize_va_space".split():
    path = f"/proc/sys/kernel/{name}"
    try:
        with open(path) as file:
            value = file.read()
        with open(path, "w") as file:
            file.write(value)
        got.append(path)
    except OSError:
        pass
switches = ["/proc/sysrq-trigger", "/sys/power/state", "/sys/kernel/uevent_helper"]
for kind in ("release_agent", "cgroup.procs", "memory.max", "*/memory.limit_in_bytes"):
    switches += glob.glob(f"/sys/fs/cgroup/{kind}") + glob.glob(f"/sys/fs/cgroup/*/{kind}")
for path in [*switches, "/proc/sys/vm/drop_caches", "/proc/sys/kernel/sysrq"]:
    try:
        os.close(os.open(path, os.O_WRONLY))  # nothing is written
        got.append(path)
    except OSError:
        pass
print(f"ESCAPED: can be written: {got[:5]}" if got else "HELD: kernel settings are read-only")
