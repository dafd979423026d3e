# class: resource
# tries: threads without end, then dead children that nobody waits for
# network: any
# bomb: yes
# with: --max-processes 64
# timeout: 20
import os
import threading

HOST = "@PIDNS@"  # filled in by attack_suite.py
if not HOST.startswith("pid:") or os.readlink("/proc/self/ns/pid") == HOST:
    raise SystemExit("a bomb starts only in a pid namespace of its own")
print("ATTEMPTED: threads and zombies", flush=True)
over, threads, zombies = threading.Event(), [], 0
try:
    while len(threads) < 300:
        thread = threading.Thread(target=over.wait, daemon=True)
        thread.start()
        threads.append(thread)
except RuntimeError:
    pass
over.set()
for thread in threads:
    thread.join()
try:
    while zombies < 300:
        if os.fork() == 0:
            os._exit(0)
        zombies += 1
except OSError:
    pass
said = f"{len(threads)} threads, {zombies} zombies"
print(f"ESCAPED: {said}" if max(len(threads), zombies) > 100 else f"HELD: {said}")
os._exit(0)
