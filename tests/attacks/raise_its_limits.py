# class: privilege
# tries: raises its resource limits, its priority, and makes others the first to be killed
# network: any
import os
import resource

got = []
for name in "NPROC FSIZE NOFILE CORE CPU MEMLOCK MSGQUEUE NICE RTPRIO SIGPENDING".split():
    which = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        try:
            resource.setrlimit(which, (hard + 1, hard + 1))
            got.append(name)
            resource.setrlimit(which, (soft, hard))
        except (OSError, ValueError):
            pass
if os.getpriority(os.PRIO_PROCESS, 0) > -5:
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
        got.append("priority")
    except OSError:
        pass
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    got.append("real time")
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
except OSError:
    pass
try:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-900")
    got.append("oom_score_adj")
except OSError:
    pass
print(f"ESCAPED: raised: {got}" if got else "HELD: no limit can be raised")
