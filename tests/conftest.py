"""What the tests share: the command, a place for the cache, a package index on loopback, a raw MCP client."""

import base64
import contextlib
import hashlib
import http.server
import io
import json
import os
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PYSBX = [sys.executable, str(ROOT / "pysbx.py")]
CACHE = Path(f"/var/tmp/pysbx-tests-{os.geteuid()}")
CACHE.mkdir(mode=0o755, exist_ok=True)
os.environ["XDG_CACHE_HOME"] = str(CACHE)
HAS_DOCKER = (
    bool(shutil.which("docker"))
    and not subprocess.run(["docker", "info"], capture_output=True).returncode
)
HAS_BWRAP = bool(shutil.which("bwrap"))


class Done:
    """A finished command: exit code, streams, lines of pysbx, seconds."""

    def __init__(self, argv, script, env, timeout):
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="pysbx-test-") as place:
            if script is not None:
                data = (
                    script
                    if isinstance(script, bytes)
                    else script.encode("utf-8", "surrogatepass")
                )
                Path(place, "program.py").write_bytes(data)
                argv = [*argv, str(Path(place, "program.py"))]
            done = subprocess.run(
                argv,
                env=env,
                cwd=place,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
            )
        self.code, self.seconds = done.returncode, time.monotonic() - began
        self.out, self.err = (
            done.stdout.decode("utf-8", "replace"),
            done.stderr.decode("utf-8", "replace"),
        )
        self.said = [line for line in self.err.splitlines() if line.startswith("pysbx: ")]

    def __repr__(self):
        return f"exit {self.code} after {self.seconds:.1f} s\n--- stdout\n{self.out[-2000:]}\n--- stderr\n{self.err[-3000:]}"


@pytest.fixture
def pysbx():
    """Run the command with a script: pysbx('--network', 'off', script='print(1)', env={…})."""

    def call(*options, script=None, env=None, timeout=150):
        return Done([*PYSBX, *options], script, {**os.environ, **(env or {})}, timeout)

    return call


def alive(mark):
    """The pids whose command line holds the mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                mark.encode() in (entry / "cmdline").read_bytes()
                and int(entry.name) != os.getpid()
            ):
                found.append(int(entry.name))
    return found


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(condition())


@pytest.fixture
def mark():
    text = "mark" + secrets.token_hex(8)
    yield text
    for pid in alive(text):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


# ---- a package index


def wheel(name, version="1.0", files=None, requires=()):
    info = f"{name}-{version}.dist-info"
    content = dict(files or {f"{name}.py": f"NAME = {name!r}\nVERSION = {version!r}\n"})
    needs = "".join(f"Requires-Dist: {r}\n" for r in requires)
    content[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    )
    content[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    content[f"{info}/RECORD"] = "".join(f"{n},,\n" for n in content) + f"{info}/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)
    return f"{name}-{version}-py3-none-any.whl", out.getvalue()


def sdist(name, setup, version="1.0"):
    """A source distribution with a build backend of its own, so that nothing else is fetched."""
    toml = f'[project]\nname = "{name}"\nversion = "{version}"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        for path, text in {"PKG-INFO": info, "pyproject.toml": toml, "backend.py": setup}.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return f"{name}-{version}.tar.gz", out.getvalue()


BACKEND = """
import os, zipfile
{hostile}
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "{name}-1.0-py3-none-any.whl"; info = "{name}-1.0.dist-info/"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as archive:
        archive.writestr("{name}.py", "BUILT = True\\n")
        archive.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n")
        archive.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(info + "RECORD", "{name}.py,,\\n" + info + "METADATA,,\\n" + info + "WHEEL,,\\n" + info + "RECORD,,\\n")
    return name
"""


class Index(http.server.ThreadingHTTPServer):
    """A simple index on loopback; `asked` lists the paths; with a login it wants basic auth."""

    daemon_threads = True

    def __init__(self, packages, login=""):
        super().__init__(("127.0.0.1", 0), Handler)
        self.packages, self.login, self.asked = dict(packages), login, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return (
            f"http://{self.login + '@' if self.login else ''}127.0.0.1:{self.server_port}/simple"
        )

    @property
    def env(self):
        return {"UV_DEFAULT_INDEX": self.url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        login = base64.b64encode(self.server.login.encode()).decode()
        if self.server.login and self.headers.get("Authorization") != f"Basic {login}":
            return self.answer(401, b"", {"WWW-Authenticate": 'Basic realm="test"'})
        self.server.asked.append(self.path)
        name = self.path.rstrip("/").rpartition("/")[2]
        if name in self.server.packages:
            return self.answer(200, self.server.packages[name], {})
        norm = name.replace("-", "_").lower()
        links = [n for n in self.server.packages if n.lower().startswith(norm + "-")]
        if not links:
            return self.answer(404, b"", {})

        def digest(n):
            return hashlib.sha256(self.server.packages[n]).hexdigest()

        page = "".join(f'<a href="/files/{n}#sha256={digest(n)}">{n}</a>' for n in links)
        return self.answer(200, page.encode(), {})

    do_HEAD = do_GET

    def answer(self, code, body, headers):
        self.send_response(code)
        ours = {"Content-Length": str(len(body)), "Content-Type": "text/html"}
        for key, value in {**ours, **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def index():
    """Make an index: index(wheel('a'), sdist(…), login='user:password')."""
    made = []

    def make(*packages, login=""):
        made.append(Index(packages, login))
        return made[-1]

    yield make
    for one in made:
        one.shutdown()
        one.server_close()


@pytest.fixture
def fresh(tmp_path_factory):
    """A cache of its own that the sandbox's uid can enter."""
    place = tempfile.mkdtemp(prefix="pysbx-cache-", dir="/var/tmp")
    os.chmod(place, 0o755)
    pythons = CACHE / "pysbx/native/pythons"  # each download costs seconds: found, not fetched
    yield {"XDG_CACHE_HOME": place, "UV_PYTHON_INSTALL_DIR": str(pythons)}
    subprocess.run(["chmod", "-R", "u+rwx", place], stderr=-3)
    shutil.rmtree(place, ignore_errors=True)


# ---- a raw MCP client


class Client:
    """A server on stdio and one JSON-RPC message a line: for what a well-behaved client hides."""

    def __init__(self, *options, env=None, argv=None):
        self.last, self.inbox, self.answers, self.progress, self.junk = (
            0,
            queue.Queue(),
            {},
            [],
            [],
        )
        self.log = tempfile.TemporaryFile()
        argv = argv or [*PYSBX, "--no-warm-cache", *options]
        self.process = subprocess.Popen(
            argv,
            stdin=-1,
            stdout=-1,
            stderr=self.log,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        threading.Thread(target=self.read, daemon=True).start()
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "0"},
        }
        self.ask("initialize", hello)
        self.send({"method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                self.junk.append(line)
                continue
            if message.get("method") == "notifications/progress":
                self.progress.append(message["params"].get("message"))
            elif "id" in message:
                self.inbox.put(message)
        self.inbox.put(None)

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def start(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        return self.last

    def wait(self, call, seconds=90):
        end = time.monotonic() + seconds
        while call not in self.answers:
            message = self.inbox.get(timeout=max(0.01, end - time.monotonic()))
            assert message is not None, "the server ended: " + self.said()
            self.answers[message["id"]] = message
        return self.answers[call]

    def ask(self, method, params, seconds=90):
        return self.wait(self.start(method, params), seconds)

    def run(self, script, **arguments):
        """Start a call of execute_python; give it to result()."""
        call = {"name": "execute_python", "arguments": {"script": script, **arguments}}
        return self.start("tools/call", {**call, "_meta": {"progressToken": f"p{self.last}"}})

    def result(self, call, seconds=90):
        result = self.wait(call, seconds)["result"]
        return "\n".join(b["text"] for b in result["content"] if b["type"] == "text"), result.get(
            "isError", False
        )

    def said(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")[-2000:]

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.wait()


@pytest.fixture
def client():
    """Start servers: client('--network', 'off')."""
    made = []

    def make(*options, **more):
        made.append(Client(*options, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server with the default options, for tests that only call it."""
    one = Client()
    yield one
    one.close()
