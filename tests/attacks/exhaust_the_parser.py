# class: metadata
# tries: a marker that is a deep pile of parentheses and a version that makes patterns slow
# network: any
# exit: refused
# timeout: 3

# /// script
# dependencies = [
#   "six ; ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((python_version > '3')",
#   "six == 1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1!",
# ]
# ///
print("ESCAPED: it ran")
