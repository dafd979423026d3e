# class: process
# tries: ignores every signal that can be ignored, and works on
# network: any
# exit: timeout
# timeout: 3
import signal
import time

print("ATTEMPTED: ignoring signals", flush=True)
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
end = time.monotonic() + 90
while time.monotonic() < end:
    pass
