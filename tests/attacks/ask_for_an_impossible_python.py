# class: metadata
# tries: requires-python with an option and a path of the host
# network: any
# exit: refused

# /// script
# requires-python = "--python=@DIR@/package/python"
# ///
print("ESCAPED: it ran")
