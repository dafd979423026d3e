# class: process
# tries: ignores every signal and works on for ever, beside children that have stopped themselves
# network: any
# exit: timeout
# timeout: 3
import os
import signal
import time

print("ATTEMPTED: it can only be killed", flush=True)
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
end = time.monotonic() + 90
while time.monotonic() < end:
    pass
