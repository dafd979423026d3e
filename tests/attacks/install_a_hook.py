# class: metadata
# tries: a wheel with a .pth file, which runs whenever the interpreter of its environment starts
# network: on
# exit: 0
# needs: index

# /// script
# dependencies = ["pysbx-canary-wheel==1.0"]
# ///
import sys

print("ATTEMPTED: the hook ran inside, nothing may be found outside", sys.version_info[:2])
