# class: artifact
# tries: names with control characters, line ends, invalid bytes, dots, dashes; hidden settings
# network: any
import os

names = [b"new\nline", b"esc\x1b[31m", b"\xff\xfe", "\u202egnp.exe".encode(), b"-rf", b"--help"]
names += [b"a\\..\\b", b"... ", b"x" * 255, b"~", b"$(touch x)", b"con", b"COM1.txt", b" "]
names += [b".git/hooks/pre-commit", b".vscode/tasks.json", b".envrc", b".claude/settings.json"]
names += [b"conftest.py", b"sitecustomize.py", b".ssh/authorized_keys", b"script.py/x"]
for name in names:
    try:
        os.makedirs(os.path.dirname(name) or b".", exist_ok=True)
        with open(name, "wb") as file:
            file.write(b"x")
    except OSError:
        pass
print("ATTEMPTED: hostile names are left")
