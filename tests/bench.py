"""Measure pysbx beside the floor of this machine, in one run: `python tests/bench.py`.

    python tests/bench.py [--backend native|docker] [--rounds N] [--only NAME,...] [--full]
                          [--json FILE] [--peer 'name=command line of an MCP server']

Every work is measured in rounds, interleaved with its floor (bare python, the same bwrap list
around python, `docker exec`, `uv venv` + `uv pip install`, an empty server of the same SDK), and
reported as median [quartiles] and as the ratio of the medians, beside the goals of the project.
Answers are checked: a wrong one is a failure and no time. Nothing is asserted.

Traps that it steps around: PYTHONDONTWRITEBYTECODE and PYTHONUNBUFFERED are taken out of the
environment of all servers and floors; servers start as an installed command does, with compiled
modules; each work has one call ahead that does not count. The times of a busy machine move by
half: the load is printed, trust the ratios. Beside other work even these are unfair to pysbx: its
control group has a lower CPU weight than the floors have. Standard library only, plus uv, bwrap or docker.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import platform
import random
import re
import secrets
import select
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pysbx_sandbox as sandbox  # noqa: E402

MB = 1 << 20
# seconds between two calls of an agent that thinks; a spare is made meanwhile
GAP = {"native": 0.15, "docker": 1.0}
DESCRIBE = """import numpy, pandas
frame = pandas.DataFrame({"a": numpy.arange(1000), "b": numpy.arange(1000) ** 2})
print(frame.describe())
print("TOKEN")
"""
NULL_SERVER = """from mcp.server import MCPServer
server = MCPServer("empty", version="1")
def main():
    server.run("stdio")
def with_a_tool():
    @server.tool(structured_output=False)
    async def execute_python(script: str) -> str:
        return script
    server.run("stdio")
"""
Sample = Callable[[], float]


# ---- an MCP client of the least possible weight; soak.py uses it, too


class Gone(Exception):
    """The server closed its stdout."""


class Wrong(Exception):
    """An answer that is not what the script printed."""


def environment(**more: str) -> dict[str, str]:
    """Return our environment without what slows or changes every Python below us."""
    without = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH")
    return {k: v for k, v in os.environ.items() if k not in without} | more


def installed(place: Path, module: str, function: str, *options: str) -> list[str]:
    """Return the argument list that starts a module as an installed command would: compiled."""
    code = f"import sys; sys.path.insert(0, {str(place)!r}); sys.argv[0] = {module!r}; "
    code += f"from {module} import {function}; sys.exit({function}())"
    return [sys.executable, "-c", code, *options]


def pysbx(*options: str) -> list[str]:
    return installed(ROOT, "pysbx", "main", *options)


class Server:
    """An MCP server on stdio, spoken to in JSON-RPC, one message a line."""

    def __init__(
        self, argv: list[str], env: dict[str, str] | None = None, stderr: int | None = None
    ) -> None:
        self.born = time.perf_counter()
        self.process = subprocess.Popen(
            argv,
            env=environment() if env is None else env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if stderr is None else stderr,
        )
        assert self.process.stdin and self.process.stdout
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.pid, self.number, self.scanned = self.process.pid, 0, 0
        self.buffer, self.early = bytearray(), {}  # type: tuple[bytearray, dict[int, dict]]

    def _write(self, **message: object) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self.stdin, data) :]
        except OSError:
            raise Gone from None

    def notify(self, method: str, **params: object) -> None:
        self._write(method=method, params=params)

    def ask(self, method: str, **params: object) -> int:
        """Send a request and return its number."""
        self.number += 1
        self._write(id=self.number, method=method, params=params)
        return self.number

    def receive(self, seconds: float) -> dict | None:
        """Return the next answer from the server, or None if there is none in time."""
        until = time.monotonic() + seconds
        poller = select.poll()
        poller.register(self.stdout, select.POLLIN)
        while True:
            while (end := self.buffer.find(b"\n", self.scanned)) < 0:
                self.scanned = len(self.buffer)
                if not poller.poll(max(0.0, until - time.monotonic()) * 1000):
                    return None
                data = os.read(self.stdout, MB)
                if not data:
                    raise Gone
                self.buffer += data
            line, self.scanned = bytes(self.buffer[:end]), 0
            del self.buffer[: end + 1]
            message = json.loads(line)
            if "method" not in message:
                return message
            if "id" in message:  # it asks us something: we can nothing
                error = {"code": -32601, "message": "not supported"}
                self._write(id=message["id"], error=error)

    def wait(self, number: int, seconds: float = 120.0) -> dict:
        """Return the answer to a request, keeping others for later."""
        until = time.monotonic() + seconds
        while number not in self.early:
            message = self.receive(until - time.monotonic())
            if message is None:
                raise Wrong(f"no answer within {seconds:g} s")
            self.early[message["id"]] = message
        return self.early.pop(number)

    def initialize(self, seconds: float = 60.0) -> Server:
        client = {"name": "pysbx-bench", "version": "1"}
        number = self.ask(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client
        )
        self.wait(number, seconds)
        self.notify("notifications/initialized")
        return self

    def tools(self, seconds: float = 60.0) -> list[dict]:
        return self.wait(self.ask("tools/list"), seconds)["result"]["tools"]

    @functools.cached_property
    def names(self) -> tuple[str, str, bool, str]:
        """The tool that runs Python: (name, parameter of the script, takes dependencies, time)."""
        for tool in self.tools():
            known = tool["inputSchema"].get("properties", {})
            for parameter in ("script", "code", "python_code"):
                if parameter in known:
                    limit = "timeout_seconds" if "timeout_seconds" in known else ""
                    return tool["name"], parameter, "dependencies" in known, limit
        raise Wrong("the server has no tool with a parameter 'script' or 'code'")

    def start(self, script: str, dependencies: tuple[str, ...] = (), timeout: int = 0) -> int:
        """Send a script and return the number of the request."""
        tool, parameter, with_dependencies, limit = self.names
        arguments: dict[str, object] = {parameter: script}
        if with_dependencies and dependencies:
            arguments["dependencies"] = list(dependencies)
        if limit and timeout:
            arguments[limit] = timeout
        return self.ask("tools/call", name=tool, arguments=arguments)

    def run(self, script: str, dependencies: tuple[str, ...] = (), timeout: int = 60) -> str:
        """Run a script with a token of its own in place of TOKEN; return the text of the answer."""
        token = secrets.token_hex(8)
        return self.end(self.start(script.replace("TOKEN", token), dependencies, timeout), token)

    def end(self, number: int, token: str, seconds: float = 600.0) -> str:
        said = text_of(self.wait(number, seconds))
        if token not in said:
            raise Wrong(f"the answer is not the script's: {said[:500]!r}")
        return said

    def close(self, seconds: float = 3.0) -> int | None:
        """Hang up; kill it if it does not leave in time. Return its exit code."""
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def text_of(message: dict) -> str:
    """Return the text of a tool's answer, or of the error in its place."""
    if "error" in message:
        return f"error: {message['error'].get('message')}"
    blocks = message["result"].get("content", [])
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


def memory(pid: int, field_: str = "VmRSS") -> float:
    """Return the resident memory of a process (VmHWM: its peak) in MB; 0 where it cannot be had."""
    with contextlib.suppress(OSError):
        found = re.search(rf"{field_}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0
    return 0.0


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below one, as {pid: start time}; a pid and its start time are unique."""
    parents, states = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            words = entry.read_text().rpartition(")")[2].split()
            parents[int(entry.parent.name)] = int(words[1])
            states[int(entry.parent.name)] = words[19]
    found: dict[int, str] = {}
    layer = {pid}
    while layer:
        layer = {child for child, parent in parents.items() if parent in layer}
        found |= {child: states[child] for child in layer}
    return found


# ---- samples, series, rows


@dataclass
class Series:
    """The samples of one work, in seconds (or in another unit, see `unit`), and what went wrong."""

    samples: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    unit: str = "ms"

    @property
    def median(self) -> float:
        return statistics.median(self.samples) if self.samples else float("nan")

    def quartiles(self) -> tuple[float, float]:
        if len(self.samples) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return low, high

    def __str__(self) -> str:
        if not self.samples:
            return f"failed: {self.failures[-1][:60]}" if self.failures else "-"
        scale = 1000 if self.unit == "ms" else 1
        numbers = [f"{v * scale:.{digits(v * scale)}f}" for v in (self.median, *self.quartiles())]
        failed = f", {len(self.failures)} FAILED" if self.failures else ""
        return "{} [{} {}] {}".format(*numbers, self.unit) + failed


def digits(value: float) -> int:
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2


@dataclass
class Row:
    """One line of the table. A goal is the largest good ratio, or value of `mine`."""

    work: str
    mine: Series
    floor_name: str = ""
    floor: Series | None = None
    goal: float | None = None
    goal_is: str = "ratio"  # "ratio", "value"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        if not self.floor or not self.floor.samples or not self.mine.samples:
            return None
        return self.mine.median / self.floor.median

    def verdict(self) -> str:
        if self.goal is None:
            return ""
        value = self.ratio if self.goal_is == "ratio" else self.mine.median
        if self.mine.failures and not self.mine.samples or value is None or value != value:
            return "NOT measured"
        if value <= self.goal and not self.mine.failures:
            return "met"
        over = f"NOT met, {100 * (value / self.goal - 1):+.0f} %" if value > self.goal else ""
        failed = f"{len(self.mine.failures)} failed" if self.mine.failures else ""
        return ", ".join(filter(None, (over, failed)))

    def cells(self) -> list[str]:
        unit = "x" if self.goal_is == "ratio" else f" {self.mine.unit}"
        scale = 1000 if self.goal_is == "value" and self.mine.unit == "ms" else 1
        goal = "" if self.goal is None else f"<= {self.goal * scale:g}{unit}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        floor = f"{self.floor_name}: {self.floor}" if self.floor else self.floor_name
        cells = [self.work, str(self.mine), floor, ratio, goal, self.verdict()]
        return [*cells[:-1], ", ".join(filter(None, (cells[-1], self.note)))]


def interleave(series: dict[str, Sample], rounds: int, ahead: bool = True) -> dict[str, Series]:
    """Take one sample of each in every round, so that all see the same machine."""
    taken = {name: Series() for name in series}
    for number in range(-ahead, rounds):
        for name, sample in series.items():
            try:
                value = sample()
                if number >= 0:
                    taken[name].samples.append(value)
            except (Wrong, Gone, OSError, subprocess.SubprocessError) as error:
                taken[name].failures.append(f"{type(error).__name__}: {error}")
    return taken


# ---- what is measured against: floors


class Bench:
    """The options, the servers and the floors of one run; leaves nothing when it is closed."""

    def __init__(self, options: argparse.Namespace, stack: contextlib.ExitStack) -> None:
        self.options, self.backend, self.rounds = options, options.backend, options.rounds
        self.gap = GAP[self.backend]
        self.stack, self.rows, self.all = stack, [], {}  # type: ignore[var-annotated]
        self.place = Path(tempfile.mkdtemp(prefix="pysbx-bench-", dir="/var/tmp"))
        self.place.chmod(0o755)  # the uid of the sandbox must get in
        stack.callback(shutil.rmtree, self.place, ignore_errors=True)
        (self.place / "empty_server.py").write_text(NULL_SERVER)
        self.policy = sandbox.Policy(backend=self.backend)
        self.uv = sandbox.find_uv(self.policy)
        self.base = ["--sandbox-backend", self.backend, "--require-sandbox", "--no-warm-cache"]

    def server(self, *options: str, **env: str) -> Server:
        """Start pysbx, and wait until it has run something."""
        server = Server(pysbx(*self.base, *options), environment(**env))
        self.stack.callback(server.close)
        server.initialize().run("print('TOKEN')")
        return server

    @functools.cached_property
    def plain(self) -> Server:
        """pysbx as it comes."""
        return self.server()

    @functools.cached_property
    def peers(self) -> dict[str, Server]:
        found = {}
        for peer in self.options.peer:
            name, _, command = peer.partition("=")
            try:
                server = Server(shlex.split(command), environment())
                self.stack.callback(server.close)
                server.initialize().run("print('TOKEN')")
                found[name] = server
            except (Wrong, Gone, OSError) as error:
                print(f"the peer {name} cannot be measured: {error}", file=sys.stderr)
        return found

    @functools.cached_property
    def inside(self) -> tuple[str, str]:
        """Ask the tool: (interpreter of a script without packages, the one it is made from)."""
        code = "import sys; print('TOKEN', sys.executable, sys._base_executable, 'end')"
        own, base = self.plain.run(code).partition(" ")[2].rpartition(" end")[0].split()[-2:]
        return own, base

    @functools.cached_property
    def python(self) -> str:
        """A copy of the same interpreter: the floors write byte code, which pysbx must not find."""
        path, pythons = self.inside[1], Path(sandbox.cache_dir("native"), "pythons")
        if not path.startswith("/python/"):
            return path
        name, _, rest = path.removeprefix("/python/").partition("/")
        shutil.copytree(pythons / name, self.place / "python", symlinks=True)
        for cache in list((self.place / "python").rglob("__pycache__")):
            shutil.rmtree(cache)
        return str(self.place / "python" / rest)

    def call(self, server: Server, script: str, *dependencies: str, gap: float = -1) -> Sample:
        def sample() -> float:
            time.sleep(self.gap if gap < 0 else gap)
            began = time.perf_counter()
            server.run(script, dependencies)
            return time.perf_counter() - began

        return sample

    def process(self, argv: list[str]) -> Sample:
        """Return a sample of starting a process and reading all that it says."""

        def sample() -> float:
            began = time.perf_counter()
            done = subprocess.run(argv, capture_output=True, env=environment(), cwd=self.place)
            took = time.perf_counter() - began
            if done.returncode or b"TOKEN" not in done.stdout:
                raise Wrong(done.stderr.decode(errors="replace")[-300:])
            return took

        return sample

    def file(self, script: str) -> str:
        """Return the path of a file with the script."""
        path = self.place / f"script-{abs(hash(script)):x}.py"
        path.write_text(script)
        return str(path)

    def venv(self, *packages: str) -> str:
        """Return the python of a plain, byte-compiled venv with the packages."""
        place = self.place / ("venv-" + "-".join(packages))
        if not place.exists():
            env = environment(UV_CACHE_DIR=str(self.place / "uv-cache"))
            for words in (
                ["venv", "-q", "--no-project", "-p", self.python, str(place)],
                ["pip", "install", "-q", "--compile-bytecode", "-p", str(place), *packages],
            ):
                subprocess.run([self.uv, *words], env=env, check=True, cwd=self.place)
        return str(place / "bin/python")

    @functools.cached_property
    def container(self) -> str:
        """The name of a container like those of pysbx, in which `docker exec` is the floor."""
        name = f"pysbx-bench-{secrets.token_hex(8)}"
        profile = self.place / "seccomp.json"
        profile.write_text(sandbox.docker_seccomp())
        spec = sandbox.replace(
            sandbox.run_spec(self.policy), program=("-c", "echo ready; exec sleep 7200")
        )
        argv = ["docker", *sandbox.docker_argv(spec, name, str(profile))]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.read(6)

        def end() -> None:
            subprocess.run(["docker", "rm", "-f", name], capture_output=True)
            process.wait(20)

        self.stack.callback(end)
        return name

    def floor(self, script: str, *packages: str) -> tuple[str, Sample]:
        """Return the floor of a script: (its name, its sample)."""
        if self.backend == "docker":
            ask = "import sys; print('TOKEN', sys.executable, 'end')"
            said = self.plain.run(ask, packages, 300)
            exe = said.rpartition(" end")[0].split()[-1]
            return "docker exec python", self.process(
                ["docker", "exec", self.container, exe, "-c", script]
            )
        python = self.venv(*packages) if packages else self.python
        return "python in a venv" if packages else "bare python", self.process(
            [python, self.file(script)]
        )

    def bwrap(self, script: str) -> Sample:
        """Return a sample of the same bwrap list around python, without gate, cgroup and MCP."""
        spec, (program, help_text) = sandbox.run_spec(self.policy, self.prefix), sandbox._bwrap()
        python = self.inside[0]

        def sample() -> float:
            with contextlib.ExitStack() as opened:

                def memfd(content: bytes) -> int:
                    fd = os.memfd_create("bench")
                    opened.callback(os.close, fd)
                    os.write(fd, content)
                    os.lseek(fd, 0, os.SEEK_SET)
                    return fd

                files = {**sandbox.etc_files(spec.policy.network), **dict(spec.files)}
                data = {name: memfd(content) for name, content in files.items()}
                rules = sandbox.seccomp_filter(platform.machine(), memory_is_limited=True)
                source, code = memfd(script.encode()), memfd(rules)
                options = sandbox.bwrap_options(spec, data, help_text)
                options += ["--seccomp", str(code)]
                options += ["--ro-bind-data", str(source), "/work/script.py"]
                args = memfd("".join(option + "\0" for option in options).encode())
                argv = [program, "--args", str(args), "--", python, "/work/script.py"]
                began = time.perf_counter()
                done = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    env=dict(spec.env),
                    cwd="/",
                    pass_fds=[*data.values(), source, code, args],
                    **sandbox._drop(),
                )
                took = time.perf_counter() - began
            if b"TOKEN" not in done.stdout:
                raise Wrong(done.stderr.decode(errors="replace")[-300:])
            return took

        return sample

    @functools.cached_property
    def prefix(self) -> str:
        return sandbox.choose_python(sandbox.Call(self.policy), None).prefix

    def add(self, case: str, taken: dict[str, Series], *rows: Row) -> None:
        """Put rows into the table, and the peers' series below the first of them."""
        self.all.setdefault(case, {}).update(taken)
        self.rows += rows
        first = rows[0]
        for name, series in taken.items():
            if name.startswith("peer "):
                work = f"  {name}: {first.work}"
                self.rows.append(Row(work, series, first.floor_name, first.floor))
        for row in self.rows[-len(rows) :]:
            print(f"  {' | '.join(filter(None, row.cells()))}", file=sys.stderr, flush=True)


# ---- the works

CASES: dict[str, Callable[[Bench], None]] = {}


def case(function: Callable[[Bench], None]) -> Callable[[Bench], None]:
    CASES[function.__name__] = function
    return function


def with_peers(bench: Bench, script: str, *packages: str) -> dict[str, Sample]:
    return {
        f"peer {name}": bench.call(server, script, *packages)
        for name, server in bench.peers.items()
    }


@case
def hello(bench: Bench) -> None:
    """Hello through MCP with a spare sandbox ready, a gap between calls."""
    script = "print('hello TOKEN')\n"
    name, floor = bench.floor(script)
    empty = Server(installed(bench.place, "empty_server", "with_a_tool")).initialize()
    bench.stack.callback(empty.close)
    series = {"pysbx": bench.call(bench.plain, script), name: floor}
    series["an empty tool"] = bench.call(empty, script)
    if bench.backend == "native":
        series["bwrap + python"] = bench.bwrap(script)
    taken = interleave(series | with_peers(bench, script), bench.rounds)
    mine, goal = taken["pysbx"], 1.25 if bench.backend == "native" else 1.5
    sdk = Series(
        [a + b for a, b in zip(taken[name].samples, taken["an empty tool"].samples, strict=False)]
    )
    rows = [
        Row("hello, spare ready", mine, name, taken[name], goal),
        Row("  the same", mine, f"{name} + an empty MCP tool", sdk),
    ]
    if bench.backend == "native":
        rows.append(Row("  the same", mine, "bwrap + python", taken["bwrap + python"]))
    bench.add("hello", taken, *rows)
    empty.close()


@case
def nospare(bench: Bench) -> None:
    """Hello through MCP with --no-spare."""
    if bench.backend != "native":
        return cold_container(bench)
    script, server, note = "print('hello TOKEN')\n", bench.server("--no-spare"), ""
    time.sleep(0.5)
    if descendants(server.pid):
        note = "the server keeps a spare in spite of --no-spare: see the library's row"
    policy, token = bench.policy, "TOKEN"

    def library() -> float:
        time.sleep(bench.gap)
        began = time.perf_counter()
        if token not in sandbox.run(script, policy=policy).stdout:
            raise Wrong("the library's answer")
        return time.perf_counter() - began

    library()
    sandbox.end_spares()
    series = {"pysbx": bench.call(server, script), "bwrap + python": bench.bwrap(script)}
    taken = interleave(series | {"library": library}, bench.rounds)
    floor = taken["bwrap + python"]
    bench.add(
        "nospare",
        taken,
        Row("hello, --no-spare", taken["pysbx"], "bwrap + python", floor, 1.3, note=note),
        Row("  pysbx_sandbox.run(), no spare", taken["library"], "bwrap + python", floor),
    )
    server.close()


def cold_container(bench: Bench) -> None:
    script, server = "print('hello TOKEN')\n", bench.server("--no-spare")
    spec = sandbox.run_spec(bench.policy)
    base = ["docker", "run", "--rm", "--entrypoint", bench.inside[1], "--network", "bridge"]
    base += ["--mount", f"type=volume,src={sandbox.VOLUME},dst=/pysbx,readonly"]
    floor = bench.process([*base, spec.policy.docker_image, "-c", script])
    taken = interleave({"pysbx": bench.call(server, script), "docker run": floor}, bench.rounds)
    note = "" if not descendants(server.pid) else "the server keeps a spare"
    bench.add(
        "nospare",
        taken,
        Row("hello, --no-spare", taken["pysbx"], "docker run", taken["docker run"], note=note),
    )
    server.close()


def imports(bench: Bench, name: str, script: str, packages: tuple[str, ...], goal: float) -> None:
    floor_name, floor = bench.floor(script, *packages)
    bench.plain.run(script, packages, 300)
    time.sleep(bench.gap)
    bench.plain.run(script, packages, 300)
    for _ in range(100):  # it compiles the environment off the path: wait for that, up to 20 s
        busy = [p for p in descendants(bench.plain.pid) if b"compileall" in command_line(p)]
        if not busy:
            break
        time.sleep(0.2)
    series = {"pysbx": bench.call(bench.plain, script, *packages), floor_name: floor}
    taken = interleave(series | with_peers(bench, script, *packages), bench.rounds)
    bench.add(
        name, taken, Row(f"{name}, warm", taken["pysbx"], floor_name, taken[floor_name], goal)
    )


def command_line(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@case
def requests(bench: Bench) -> None:
    """`import requests` in a known environment."""
    script = "import requests\nprint(requests.__version__, 'TOKEN')\n"
    imports(bench, "import requests", script, ("requests",), 1.15)


@case
def pandas(bench: Bench) -> None:
    """numpy+pandas describe in a known environment."""
    imports(bench, "numpy+pandas describe", DESCRIBE, ("numpy", "pandas"), 1.15)


@case
def cold(bench: Bench) -> None:
    """The first numpy+pandas with an empty cache."""
    if bench.backend != "native":
        return print("  cold: the docker backend's volume has a fixed name and is yours: left out")
    packages, counter = ("numpy", "pandas"), itertools.count()

    def mine(script: str) -> Sample:
        def sample() -> float:
            home = bench.place / f"xdg-{next(counter)}"
            home.mkdir(mode=0o755)
            server = bench.server(XDG_CACHE_HOME=str(home))
            try:
                return bench.call(server, script, *packages, gap=0.5)()
            finally:
                server.close()
                shutil.rmtree(home, ignore_errors=True)

        return sample

    def floor(script: str) -> Sample:
        def sample() -> float:
            place, cache = (bench.place / f"{n}-{next(counter)}" for n in ("venv", "cache"))
            env = environment(UV_CACHE_DIR=str(cache))
            lists = [
                [bench.uv, "venv", "-q", "--no-project", "-p", bench.python, str(place)],
                [bench.uv, "pip", "install", "-q", "-p", str(place), *packages],
            ]
            lists += [[str(place / "bin/python"), bench.file(script)]] if script else []
            began = time.perf_counter()
            for argv in lists:
                subprocess.run(argv, env=env, check=True, capture_output=True, cwd=bench.place)
            took = time.perf_counter() - began
            for path in (place, cache):
                shutil.rmtree(path)
            return took

        return sample

    series = {
        "pysbx, packages ready": mine("print('TOKEN')"),
        "uv venv + uv pip install": floor(""),
        "pysbx, described": mine(DESCRIBE),
        "uv venv + uv pip install + python": floor(DESCRIBE),
    }
    taken = interleave(series, min(bench.rounds, 5), ahead=False)
    names = list(taken)
    bench.add(
        "cold",
        taken,
        Row(
            "first numpy+pandas, empty cache: ready",
            taken[names[0]],
            names[1],
            taken[names[1]],
            1.2,
        ),
        Row("  the same: described", taken[names[2]], names[3], taken[names[3]], 1.2),
    )


@case
def sleep8(bench: Bench) -> None:
    """Eight sleeps of 0.2 s at once."""

    def at_once(server: Server) -> Sample:
        def sample() -> float:
            time.sleep(bench.gap)
            began, running = time.perf_counter(), {}
            for _ in range(8):
                token = secrets.token_hex(8)
                script = f"import time; time.sleep(0.2); print({token!r})"
                running[server.start(script)] = token
            for number, token in running.items():
                server.end(number, token)
            return time.perf_counter() - began

        return sample

    server = bench.server("--max-concurrent", "8")
    path = bench.file("import time; time.sleep(0.2); print('TOKEN')")

    def floor() -> float:
        began = time.perf_counter()
        options = {"stdout": subprocess.PIPE, "env": environment()}
        running = [subprocess.Popen([bench.python, path], **options) for _ in range(8)]  # type: ignore[call-overload]
        if not all(b"TOKEN" in process.communicate()[0] for process in running):
            raise Wrong("bare python")
        return time.perf_counter() - began

    series = {"pysbx": at_once(server)}
    if bench.backend == "native":
        series["8 x bare python"] = floor
    series |= {f"peer {name}": at_once(peer) for name, peer in bench.peers.items()}
    taken = interleave(series, bench.rounds)
    goal = 0.3 if bench.backend == "native" else None
    row = Row("8 x sleep 0.2 s at once", taken["pysbx"], goal=goal, goal_is="value")
    if "8 x bare python" in taken:
        row.floor_name, row.floor = "8 x bare python", taken["8 x bare python"]
    bench.add("sleep8", taken, row)
    server.close()


@case
def output(bench: Bench) -> None:
    """Output of 1 KiB to 2 GB: time, and the server's peak memory over idle."""
    sizes = {"1 KiB": 1 << 10, "1 MiB": MB, "100 MiB": 100 * MB, "2 GB": 2000 * MB}
    for label, size in sizes.items():
        script = f"""import os
print("TOKEN", flush=True)  # at both ends: some servers keep only the first part
block, left = b"x" * 1023 + b"\\n", {size}
block *= min(64, left // 1024)
while left > 0:
    left -= os.write(1, block)
print("TOKEN")
"""
        path, rounds = bench.file(script), {"100 MiB": 5, "2 GB": 2}.get(label, bench.rounds)

        def floor(path: str = path) -> float:
            began = time.perf_counter()
            argv, last = [bench.python, path], b""
            with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment()) as process:
                assert process.stdout
                while data := os.read(process.stdout.fileno(), 1 << 16):
                    last = data
            if b"TOKEN" not in last:
                raise Wrong("bare python")
            return time.perf_counter() - began

        peaks: dict[str, Series] = {}

        def mine(
            name: str, server: Server, script: str = script, peaks: dict[str, Series] = peaks
        ) -> Sample:
            pids = [server.pid, *descendants(server.pid)]
            pid = max(pids, key=memory)  # a peer may be started by a launcher
            peaks[name] = Series(unit="MB")

            def sample() -> float:
                time.sleep(bench.gap)
                idle = memory(pid)
                with contextlib.suppress(OSError):
                    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak starts anew
                took = bench.call(server, script, gap=0)()
                peaks[name].samples.append(memory(pid, "VmHWM") - idle)
                return took

            return sample

        series = {"pysbx": mine("pysbx", bench.plain)}
        if bench.backend == "native":
            series["bare python, read and dropped"] = floor
        if size <= 100 * MB or bench.options.full:
            series |= {f"peer {n}": mine(f"peer {n}", p) for n, p in bench.peers.items()}
        taken = interleave(series, min(rounds, bench.rounds), ahead=size < 100 * MB)
        bare = taken.get("bare python, read and dropped")
        name = "bare python, read and dropped" if bare else ""
        bench.add(f"output {label}", taken, Row(f"output {label}", taken["pysbx"], name, bare))
        goal = 16.0 if label == "2 GB" else None
        bench.add(
            f"output {label}, peak",
            peaks,
            Row("  server's peak over idle", peaks["pysbx"], goal=goal, goal_is="value"),
        )


@case
def start(bench: Bench) -> None:
    """From spawn to the tools listed."""

    def spawn(argv: list[str]) -> Sample:
        def sample() -> float:
            server = Server(argv)
            try:
                server.initialize().tools()
                return time.perf_counter() - server.born
            finally:
                server.close()

        return sample

    series = {
        "pysbx": spawn(pysbx(*bench.base)),
        "an empty server": spawn(installed(bench.place, "empty_server", "main")),
        "python pysbx.py": spawn([sys.executable, str(ROOT / "pysbx.py"), *bench.base]),
    }
    for peer in bench.options.peer:
        name, _, command = peer.partition("=")
        series[f"peer {name}"] = spawn(shlex.split(command))
    taken = interleave(series, bench.rounds)
    floor = taken["an empty server"]
    bench.add(
        "start",
        taken,
        Row("spawn to tools listed", taken["pysbx"], "an empty server", floor, 1.05),
        Row("  `python pysbx.py`", taken["python pysbx.py"], "an empty server", floor),
    )


@case
def many(bench: Bench) -> None:
    """1 to 64 hellos at once: the time for 64, and failures."""
    total = 64 if bench.backend == "native" else 16

    def at_once(server: Server, k: int) -> Sample:
        def sample() -> float:
            time.sleep(2 * bench.gap)
            began, failed = time.perf_counter(), 0
            for _ in range(max(1, total // k)):
                tokens = [secrets.token_hex(8) for _ in range(k)]
                running = {server.start(f"print({token!r})"): token for token in tokens}
                for number, token in running.items():
                    try:
                        server.end(number, token)
                    except Wrong:
                        failed += 1
            if failed:
                raise Wrong(f"{failed} of {total} failed")
            took = time.perf_counter() - began
            return took / (k * max(1, total // k))

        return sample

    levels = [k for k in (1, 4, 16, 64) if k <= max(total, 16)]
    series = {f"{k} at once": at_once(bench.plain, k) for k in levels}
    for name, peer in bench.peers.items():
        series |= {f"peer {name}, {k} at once": at_once(peer, k) for k in levels}
    taken = interleave(series, min(bench.rounds, 5))
    best = min((taken[f"{k} at once"] for k in levels), key=lambda s: s.median)
    for k in levels:
        mine = taken[f"{k} at once"]
        rate = f"{1 / mine.median:.0f} runs a second"
        goal = 1.25 if k == levels[-1] else None  # 1 / 0.8
        row = Row(f"hello, {k} at once, per run", mine, "the best of these", best, goal, note=rate)
        bench.add("many", {f"{k} at once": mine}, row)
    bench.all["many"] = taken
    for name, mine in taken.items():
        if name.startswith("peer "):
            bench.rows.append(Row(f"  {name}, per run", mine, "the best of pysbx", best))


def make_wheels(place: Path, number: int) -> list[str]:
    """Write wheels of one line each; return requirements that name them exactly."""
    place.mkdir(mode=0o755)
    for index in range(number):
        name, tags = f"pysbxbench{index}", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
        with zipfile.ZipFile(place / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            info = f"{name}-1.0.dist-info"
            wheel.writestr(f"{name}.py", f"number = {index}\n")
            wheel.writestr(f"{info}/WHEEL", tags + "Tag: py3-none-any\n")
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
            )
            files = (f"{name}.py", f"{info}/WHEEL", f"{info}/METADATA", f"{info}/RECORD")
            wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in files))
    return [f"pysbxbench{index}==1.0" for index in range(number)]


@case
def sets(bench: Bench) -> None:
    """Looking up an environment among 10, 100 (and with --full 1000) dependency sets."""
    if bench.backend != "native":
        return print("  sets: the docker backend's volume is yours and not filled: left out")
    names = make_wheels(bench.place / "wheels", 10)
    subsets = [s for n in range(1, 11) for s in itertools.combinations(names, n)]
    series: dict[str, Sample] = {"bare python": bench.floor("print('TOKEN')\n")[1]}
    making: dict[str, Series] = {}
    for count in (10, 100, 1000)[: 3 if bench.options.full else 2]:
        home = bench.place / f"xdg-sets-{count}"
        home.mkdir(mode=0o755)
        server = bench.server(
            "--max-concurrent",
            "4",
            XDG_CACHE_HOME=str(home),
            UV_FIND_LINKS=str(bench.place / "wheels"),
        )
        began, known = time.perf_counter(), subsets[:count]
        waiting = [server.start("print('ready')", s, 60) for s in known]
        failed = [t for n in waiting if "ready" not in (t := text_of(server.wait(n, 900)))]
        making[f"making one of {count}"] = Series([(time.perf_counter() - began) / count], failed)
        until = time.monotonic() + 300  # the server compiles them when it has answered
        while len(list(home.rglob("*.compiled"))) < count and time.monotonic() < until:
            time.sleep(0.5)
        print(f"  {count} sets made, {disk_of(home)}", file=sys.stderr, flush=True)

        def sample(server: Server = server, known: list[tuple[str, ...]] = known) -> float:
            return bench.call(server, "print('TOKEN')", *random.choice(known))()

        series[f"{count} sets"] = sample
    taken = interleave(series, bench.rounds)
    rows = [
        Row(f"look-up among {n}, hello", taken[n], "among 10 sets", taken["10 sets"], 1.25)
        for n in taken
        if n not in ("bare python", "10 sets")
    ]
    first = Row(
        "look-up among 10 sets, hello", taken["10 sets"], "bare python", taken["bare python"]
    )
    made = [Row(f"  {name}, 4 at once", s) for name, s in making.items()]
    bench.add("sets", taken | making, first, *rows, *made)


def disk_of(place: Path) -> str:
    """Return how much a directory holds."""
    files, size, seen = 0, 0, set()
    for directory, _, names in os.walk(place):
        for name in names:
            state = os.lstat(os.path.join(directory, name))
            files += 1
            size += state.st_blocks * 512 * (state.st_ino not in seen)
            seen.add(state.st_ino)
    return f"{files} files, {size / MB:.0f} MB"


@case
def size(bench: Bench) -> None:
    """Scripts of 1 KB to 5 MB, all comments: what pysbx does with the text."""
    line = "# " + "a comment " * 9 + "\n"
    for label, wanted in {"1 KB": 1000, "100 KB": 100_000, "1 MB": MB, "5 MB": 5 * MB}.items():
        script = line * (wanted // len(line)) + "print('TOKEN')\n"
        path = bench.file(script)
        series = {"pysbx": bench.call(bench.plain, script)}
        if bench.backend == "native":
            series["bare python"] = bench.process([bench.python, path])
        taken = interleave(series, min(bench.rounds, 9))
        name = "bare python" if "bare python" in taken else ""
        bench.add(
            f"size {label}",
            taken,
            Row(f"script of {label}", taken["pysbx"], name, taken.get(name)),
        )


@case
def stages(bench: Bench) -> None:
    """Where the time of a hello goes in the library, in this process, with and without a spare."""
    if bench.backend != "native":
        return None
    script = "print('hello')\n"
    watched = {
        "read_metadata": "read metadata",
        "settle": "settle the backend",
        "choose_python": "choose the interpreter",
        "prepare": "look the environment up",
        "run_spec": "describe the sandbox",
        "_sandbox": "take the spare or start a sandbox",
        "_make_cgroup": "(of that: make the cgroup)",
        "run_capped": "let the script run to its end",
        "collect_files": "collect files",
        "_remove_cgroup": "(of the end: remove the cgroup)",
    }
    spent: dict[str, float] = {}

    def timed(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **kwargs: object) -> object:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[name] = spent.get(name, 0.0) + time.perf_counter() - began

        return wrapper

    originals = {name: getattr(sandbox, name) for name in watched if hasattr(sandbox, name)}
    originals_close = sandbox.Sandbox.close
    taken: dict[str, Series] = {}
    try:
        for name, function in originals.items():
            setattr(sandbox, name, timed(name, function))
        sandbox.Sandbox.close = timed("close", originals_close)  # type: ignore[method-assign]
        for number, spare in itertools.product(range(-1, bench.rounds), (True, False)):
            if spare:
                sandbox.after_run(bench.policy)
            else:
                sandbox.end_spares()
            time.sleep(bench.gap)
            spent.clear()
            began = time.perf_counter()
            sandbox.run(script, policy=bench.policy)
            spent["in all"] = time.perf_counter() - began
            for name, seconds in spent.items() if number >= 0 else ():
                key = f"{name}, {'spare' if spare else 'no spare'}"
                taken.setdefault(key, Series()).samples.append(seconds)
    finally:
        for name, function in originals.items():
            setattr(sandbox, name, function)
        sandbox.Sandbox.close = originals_close  # type: ignore[method-assign]
        sandbox.end_spares()
    rows = []
    for name, what in {
        **watched,
        "close": "end it, free what it held",
        "in all": "in all",
    }.items():
        spare_row, other = taken.get(f"{name}, spare"), taken.get(f"{name}, no spare")
        if spare_row or other:
            rows.append(Row(f"run(): {what}", spare_row or Series(), "no spare", other))
    bench.all["stages"] = taken
    bench.rows += rows


# ---- the run


def machine() -> dict[str, object]:
    """Return what the numbers depend on."""

    def ask(*argv: str) -> str:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
            return done.stdout.strip().splitlines()[0] if done.stdout.strip() else "none"
        return "none"

    cpu = (
        re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        if sys.platform == "linux"
        else None
    )
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "system": platform.platform(),
        "cpu": f"{cpu[1] if cpu else platform.processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "pysbx": sandbox.__version__,
        "commit": ask("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
        "mcp": ask(
            sys.executable, "-c", "from importlib.metadata import version as v; print(v('mcp'))"
        ),
        "uv": ask("uv", "--version"),
        "bwrap": ask("bwrap", "--version"),
        "docker": ask("docker", "version", "--format", "{{.Server.Version}}"),
    }


def table(rows: list[Row]) -> str:
    """Return the rows as a table that is Markdown, too."""
    head = ["work", "median [quartiles]", "floor in the same run", "ratio", "goal", "verdict"]
    cells = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def as_json(rows: list[Row], everything: dict[str, dict[str, Series]]) -> dict[str, object]:
    def numbers(series: Series | None) -> dict[str, object] | None:
        if not series or not series.samples:
            return None
        low, high = series.quartiles()
        return {"median": series.median, "q1": low, "q3": high, "min": min(series.samples),
                "n": len(series.samples), "failures": series.failures}  # fmt: skip

    table_ = [
        {"work": row.work.strip(), "unit": row.mine.unit, "pysbx": numbers(row.mine),
         "floor": row.floor_name, "floor_numbers": numbers(row.floor), "ratio": row.ratio,
         "goal": row.goal, "goal_is": row.goal_is, "verdict": row.verdict(), "note": row.note}
        for row in rows
    ]  # fmt: skip
    series = {
        case_: {name: {"samples": s.samples, "failures": s.failures} for name, s in taken.items()}
        for case_, taken in everything.items()
    }
    return {"rows": table_, "series": series}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    p.add_argument("--backend", choices=("native", "docker"), default="native")
    p.add_argument("--rounds", type=int, default=15, help="samples of each work (default: 15)")
    p.add_argument("--only", default="", help=f"some of {','.join(CASES)}")
    p.add_argument("--full", action="store_true", help="1000 dependency sets; 2 GB for peers, too")
    p.add_argument("--json", default="", metavar="FILE", help="write samples and rows to it")
    p.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND",
                   help="another MCP server to measure beside it; may be repeated")  # fmt: skip
    options = p.parse_args()
    chosen = [name for name in options.only.split(",") if name] or list(CASES)
    if unknown := set(chosen) - CASES.keys():
        p.error(f"--only {','.join(sorted(unknown))}: choose from {','.join(CASES)}")
    facts, before = machine(), os.getloadavg()
    with contextlib.ExitStack() as stack:
        bench = Bench(options, stack)
        for name in chosen:
            print(f"{name}: {CASES[name].__doc__}", file=sys.stderr, flush=True)
            try:
                CASES[name](bench)
            except (Wrong, Gone, OSError, subprocess.SubprocessError, sandbox.SandboxError) as e:
                failed = Series(failures=[f"{type(e).__name__}: {e}"])
                bench.rows.append(Row(name, failed))
                print(f"  failed: {e!r}"[:2000], file=sys.stderr, flush=True)
    after = os.getloadavg()
    facts |= {
        "backend": options.backend,
        "rounds": options.rounds,
        "command": shlex.join(sys.argv),
    }
    facts["load"] = f"{before[0]:.1f} before, {after[0]:.1f} after"
    print("\n".join(f"{key}: {value}" for key, value in facts.items()), end="\n\n")
    print(table(bench.rows))
    if options.json:
        result = {"machine": facts, **as_json(bench.rows, bench.all)}
        text = re.sub(r"\bNaN\b", "null", json.dumps(result, indent=1))
        Path(options.json).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
