# class: metadata
# tries: dependencies by URL and from git: requests to services that only this machine reaches
# network: any
# exit: refused

# /// script
# dependencies = [
#   "first @ http://127.0.0.1:@PORT@/first-1.0-py3-none-any.whl",
#   "second @ git+http://127.0.0.1:@PORT@/second",
# ]
# ///
print("ESCAPED: it ran")
