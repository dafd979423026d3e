# class: metadata
# tries: a dependency that is an option, so that uv would ask another index
# network: any
# exit: refused

# /// script
# dependencies = ["--index-url=http://127.0.0.1:@PORT@/simple"]
# ///
print("ESCAPED: it ran")
