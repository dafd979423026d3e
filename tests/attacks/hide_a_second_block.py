# class: metadata
# tries: two blocks, of which a reader may see one and the installer the other
# network: any
# exit: refused

# /// script
# dependencies = []
# ///
TEXT = """
# /// script
# dependencies = ["pysbx-canary-source @ file://@DIR@/package"]
# ///
"""
print("ESCAPED: it ran")
