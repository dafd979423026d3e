# class: metadata
# tries: a dependency that names a file of the host; the error message would quote its lines
# network: any
# exit: refused

# /// script
# dependencies = ["-r @DIR@/secret.txt"]
# ///
print("ESCAPED: it ran")
