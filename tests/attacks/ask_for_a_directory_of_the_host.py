# class: metadata
# tries: a dependency that is a directory of the host, whose code runs when it is built
# network: any
# exit: refused

# /// script
# dependencies = ["pysbx-canary-source @ file://@DIR@/package"]
# ///
print("ESCAPED: it ran")
