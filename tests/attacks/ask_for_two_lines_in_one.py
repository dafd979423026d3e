# class: metadata
# tries: line ends and quotes in a dependency, which become lines of a file for uv
# network: any
# exit: refused

# /// script
# dependencies = ["six\n--index-url http://127.0.0.1:@PORT@/simple", "six\"]\n[tool.uv]\n#"]
# ///
print("ESCAPED: it ran")
