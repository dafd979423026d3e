# class: network
# tries: finds the password in the address of the operator's proxy
# network: on
# needs: proxy
import os
import re
import urllib.request

proxies = {**urllib.request.getproxies(), **{k: v for k, v in os.environ.items() if "PROXY" in k}}
got = [name for name, value in proxies.items() if re.search("CANARY-[0-9a-f]{16}", value)]
print(f"ESCAPED: a password is in {got}" if got else f"HELD: {len(proxies)} proxies, no password")
