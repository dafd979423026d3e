# class: metadata
# tries: a package without a wheel: the code that builds it takes credentials of the operator
# network: on
# needs: index

# /// script
# dependencies = ["pysbx-canary-source==1.0"]
# ///
print("ATTEMPTED: it was built, the listeners know whether it got anything")
