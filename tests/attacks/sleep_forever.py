# class: resource
# tries: never ends
# network: any
# exit: timeout
# timeout: 3
import time

print("ATTEMPTED: sleeping", flush=True)
while True:
    time.sleep(5)
