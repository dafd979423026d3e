"""pysbx: an MCP server and a command line that run Python scripts in a sandbox.

`pysbx` serves MCP on stdio, `pysbx SCRIPT` runs one script, `pysbx --check` tries the sandbox.
What runs a script is in pysbx_sandbox; this file turns calls and words into a Policy and a
Result into text.
"""

import argparse
import asyncio
import base64
import concurrent.futures
import contextlib
import dataclasses
import functools
import gc
import hashlib
import hmac
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import pysbx_sandbox as sandbox
from pysbx_sandbox import Policy, Result, SandboxError, __version__

MAX_IMAGES = 500_000  # bytes of images in a result: Claude Desktop takes 1 MB, base64 included
NOTHING: list[str] = []
MAX_SHOWN = 4000  # bytes of a text file that is shown
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WARM_AFTER = 15.0  # seconds without a run
IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
WARM = """numpy pandas matplotlib scipy scikit-learn requests httpx beautifulsoup4 lxml pillow
    pyyaml python-dateutil openpyxl tabulate rich tqdm""".split()
INSTRUCTIONS = """Run Python with execute_python: a fresh sandbox for every call, nothing is kept
between calls. Declare packages in `dependencies` or in a PEP 723 block; they are installed before
the time limit starts. Print what you want to see; files left in the working directory come back."""


# ---- from a result to text


def clean(text: str) -> str:
    """Return text as a terminal would leave it: redrawn lines once, no escapes, no control codes."""
    text = re.sub(
        r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\|$)|[ -/]*[0-~])", "", text
    )
    lines = []
    for line in text.split("\n"):
        drawn = [part for part in line.split("\r") if part]
        lines.append(
            re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", drawn[-1])
            if drawn
            else ""
        )
    return "\n".join(lines)


# what a script printed: the next step for an agent
HINTS = r"""
ModuleNotFoundError: No module named '(?!pip') : declare the missing package in `dependencies`, by \
its name on PyPI, which may differ from the name that is imported
No module named '?pip\b|externally-managed-environment|pip3?: (command )?not found|No such file or directory: 'pip3?' : there is no \
pip in the sandbox: declare packages in the `dependencies` argument
EOFError: EOF when reading a line : there is no input: put the values into the script
Errno 30\b|Read-only file system : only the working directory, HOME and /tmp can be written
name resolution|Network is unreachable|Name or service not known|nodename nor servname : {network}
""".replace("\\\n", "")


def hints(script: str, result: Result) -> list[str]:
    """Return lines that lead an agent to the next step; package names are never guessed."""
    said, lines = result.stdout[-2000:] + result.stderr[-20_000:], []
    closed = ", network off" in result.isolation
    network = "scripts have no network here" if closed else "the name or the network is not there"
    for line in HINTS.strip().splitlines():
        pattern, _, hint = line.partition(" : ")
        lines += [hint.replace("{network}", network)] if re.search(pattern, said) else []
    if "SyntaxError" in said and script.lstrip().startswith("```"):
        lines.append("the script is in a markdown fence: send bare Python, without the ``` lines")
    if result.limit:
        lines.append(f"the {result.limit} was reached ({result.isolation})")
    printed = result.stdout_bytes + result.stderr_bytes
    if result.status == "exited" and not result.exit_code and not printed and not result.files:
        lines.append("nothing was printed: print() what you want to see")
    return lines


def how_it_ended(result: Result) -> str:
    """Return the first line of a result, which is ours before anything the script printed."""
    name = f" ({result.signal})" if result.signal else ""
    ended = {
        "exited": f"exit code {result.exit_code}{name}",
        "timeout": "timed out",
        "cancelled": "cancelled",
    }
    took = f"{result.seconds:.2f} s" + (
        f", installing {result.install_seconds:.1f} s" if result.install_seconds else ""
    )
    return f"{ended[result.status]} after {took}; Python {result.python}; {result.isolation}"


def blocks(
    script: str, result: Result, timeout: float
) -> tuple[list[str], list[tuple[str, bytes]]]:
    """Return a result as (text, images as (format, bytes)); sections carry their length in bytes."""
    lines, images, room = [how_it_ended(result)], [], MAX_IMAGES
    if result.status == "timeout":
        lines.append(
            f"hint: the script's own limit of {timeout:g} s ran out; raise timeout_seconds or do less"
        )
    lines += [f"hint: {hint}" for hint in hints(script, result)] + [
        f"note: {note}" for note in result.notes
    ]
    for name, text in (("stdout", clean(result.stdout)), ("stderr", clean(result.stderr))):
        if text:
            lines += [f"--- {name}, {len(text.encode()):,} bytes ---", text.removesuffix("\n")]
    for file in result.files:
        kind = next(
            (k for magic, k in IMAGES.items() if file.data and file.data.startswith(magic)), ""
        )
        what = kind + " image" if kind else "file"
        if kind and file.data and len(file.data) <= room:
            images.append((kind, file.data))
            room -= len(file.data)
        elif kind or file.data is None:
            what += ", too large to show"
        lines.append(f"--- {what} {clean(file.name)}, {file.size:,} bytes ---")
        if not kind and file.data and len(file.data) <= MAX_SHOWN and b"\0" not in file.data:
            lines.append(clean(file.data.decode("utf-8", "replace")).removesuffix("\n"))
    return lines, images


# ---- the server


class Runs:
    """The calls of one server: how many at once, on which threads, and how they are cancelled."""

    def __init__(self, at_once: int) -> None:
        self.turn, self.open, self.last = asyncio.Semaphore(at_once), 0, time.monotonic()
        self.pool = concurrent.futures.ThreadPoolExecutor(at_once + 2)

    async def call(self, function: Callable[..., Any], say: Callable[[str], None]) -> Any:
        """Call function(cancel=descriptor) on a thread; our own cancellation ends it at once."""
        if self.turn.locked():
            say("queued: other scripts are running")
        async with self.turn:
            reader, writer = os.pipe()
            self.open += 1
            future = self.pool.submit(functools.partial(function, cancel=reader))
            future.add_done_callback(lambda _: self.closed(reader, writer))
            try:
                return await asyncio.wrap_future(future)
            except asyncio.CancelledError:
                with contextlib.suppress(OSError):
                    os.write(writer, b"x")
                raise

    def closed(self, *descriptors: int) -> None:
        self.open, self.last = self.open - 1, time.monotonic()
        for fd in descriptors:
            os.close(fd)

    def end(self) -> None:
        """Wait until what was cancelled is gone: clients give a server 0.4 s."""
        until = time.monotonic() + 0.35
        while self.open and time.monotonic() < until:
            time.sleep(0.005)
        sandbox.end_spares()


caught: list[int] = []  # the signal that ends us
warmed = ["not asked for"]  # how far the warm cache is


def create_server(policy: Policy, options: argparse.Namespace) -> Any:
    """Return the MCP server with its three tools; the SDK is imported here, not for the rest."""
    gc.disable()  # while importing: worth 60 ms of 900
    from mcp.server import CacheHint, MCPServer
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.mcpserver import (
        AcceptedElicitation,
        Context,
        Elicit,
        ElicitationResult,
        Resolve,
    )
    from mcp.types import CallToolResult, ContentBlock, ImageContent, TextContent, ToolAnnotations
    from pydantic import AnyHttpUrl, BaseModel, Field

    gc.enable()
    gc.freeze()
    runs, limit = Runs(options.max_concurrent), options.max_timeout
    default = min(options.default_timeout, limit)

    @contextlib.asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[dict[str, object]]:
        try:
            yield {}
        finally:  # running tools have been cancelled here
            if options.transport == "stdio":
                runs.end()
            if caught:
                os._exit(128 + caught[0])  # the SDK's stdin thread cannot be interrupted

    class Token:
        async def verify_token(self, token: str) -> AccessToken | None:
            good = hmac.compare_digest(token.encode(), options.token.encode())
            return AccessToken(token="", client_id="pysbx", scopes=[]) if good else None

    auth: dict[str, Any] = {}
    if options.transport == "http" and options.token:
        url = AnyHttpUrl(f"http://{options.host}:{options.port}")
        auth = {
            "auth": AuthSettings(issuer_url=url, resource_server_url=None),
            "token_verifier": Token(),
        }
    server = MCPServer(
        "pysbx",
        version=__version__,
        instructions=INSTRUCTIONS + options.warning,
        subscriptions=False,
        log_level="WARNING",
        lifespan=lifespan,
        cache_hints={"tools/list": CacheHint(ttl_ms=3_600_000, scope="public")},
        **auth,
    )
    most = {"minimum": 1, "maximum": limit}
    says = "Packages to install, as on PyPI: ['numpy', 'pandas>=2']"
    says_seconds = f"Limit for the script itself, 1 to {limit} seconds, default {default}"
    Script = Annotated[
        str, Field(description="Python source; runs as a file; may have a PEP 723 block")
    ]
    Dependencies = Annotated[list[str], Field(description=says)]
    Seconds = Annotated[int, Field(description=says_seconds, json_schema_extra=most)]

    def annotations(*, quiet: bool) -> ToolAnnotations:
        return ToolAnnotations(
            read_only_hint=quiet,
            idempotent_hint=quiet,
            open_world_hint=not quiet,
            destructive_hint=False,
        )

    class Consent(BaseModel):
        go: bool = Field(description="Run scripts without a sandbox?")

    consent: list[bool] = []

    def ask(ctx: Context) -> Elicit[Consent] | Consent:
        """Before the first run without a sandbox that was not asked for: ask the user, once."""
        with contextlib.suppress(SandboxError):
            settled, warning = sandbox.settle(policy)
            can = ctx.client_capabilities and ctx.client_capabilities.elicitation is not None
            if settled.backend == "none" and warning and can and not consent:
                return Elicit(
                    f"No sandbox works here: {warning}. Run scripts with your rights?", Consent
                )
        return Consent(go=all(consent))

    def answer(
        lines: list[str], *, error: bool = False, images: Sequence[tuple[str, bytes]] = ()
    ) -> CallToolResult:
        content: list[ContentBlock] = [TextContent(text="\n".join(lines))]
        for kind, data in images:
            encoded = base64.b64encode(data).decode()
            content.append(ImageContent(data=encoded, mime_type=f"image/{kind}"))
        return CallToolResult(content=content, is_error=error)

    async def guarded(
        ctx: Context, function: Callable[..., Any], shown: Callable[[Any], CallToolResult]
    ) -> CallToolResult:
        """Call a function of pysbx_sandbox with progress and cancellation; an error is one sentence."""
        loop, began, words = asyncio.get_running_loop(), time.monotonic(), ["starting"]

        def tell() -> None:
            elapsed = time.monotonic() - began
            report = ctx.report_progress(elapsed, None, f"{words[-1]} ({elapsed:.0f} s)")
            asyncio.ensure_future(report)

        def say(text: str) -> None:
            words.append(text)
            loop.call_soon_threadsafe(tell)

        async def beat() -> None:
            while True:
                await asyncio.sleep(5)
                tell()

        beating = asyncio.ensure_future(beat())
        try:
            return shown(await runs.call(functools.partial(function, progress=say), say))
        except SandboxError as error:
            return answer([f"nothing was run: {error}"], error=True)
        finally:
            beating.cancel()

    mounts = f" Paths of the host: {', '.join(policy.mounts)}." if policy.mounts else ""
    meta = {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 200_000}
    loud = f"""Run a Python script in a fresh sandbox; returns exit code, stdout, stderr and files.
Packages: name them in `dependencies` or in a PEP 723 block of the script; they are installed before
the time limit starts. The working directory is empty and private; files left in it come back, images
as images; plt.show() works. Nothing is kept between calls. There is no stdin. Network: {policy.network}.
Limits: {policy.memory} MB memory, {policy.disk} MB disk, {limit} s.{mounts}"""

    @server.tool(
        title="Run Python",
        description=loud,
        annotations=annotations(quiet=False),
        meta=meta,
        structured_output=False,
    )
    async def execute_python(
        script: Script,
        ctx: Context,
        consented: Annotated[ElicitationResult[Consent], Resolve(ask)],
        dependencies: Dependencies = NOTHING,
        timeout_seconds: Seconds = default,
    ) -> CallToolResult:
        if not 1 <= timeout_seconds <= limit:
            return answer(
                [f"nothing was run: timeout_seconds must be 1 to {limit}, not {timeout_seconds}"],
                error=True,
            )
        yes = isinstance(consented, AcceptedElicitation) and consented.data.go
        consent.append(yes)
        if not yes:
            return answer(
                ["nothing was run: the user does not want scripts to run without a sandbox"],
                error=True,
            )

        def shown(result: Result) -> CallToolResult:
            audit(options.audit_log, script, result)
            runs.pool.submit(sandbox.after_run, policy, spare=not options.no_spare)
            lines, images = blocks(script, result, timeout_seconds)
            return answer(lines, error=result.status != "exited", images=images)

        call = functools.partial(
            sandbox.run, script, dependencies=dependencies, timeout=timeout_seconds, policy=policy
        )
        return await guarded(ctx, call, shown)

    @server.tool(
        title="Check a script", annotations=annotations(quiet=True), structured_output=False
    )
    async def validate_script(
        script: Script, ctx: Context, dependencies: Dependencies = NOTHING
    ) -> CallToolResult:
        """Check a script without running it: metadata, syntax, versions of its dependencies."""

        def shown(report: sandbox.Report) -> CallToolResult:
            first = "problems were found" if report.problems else "the script can run"
            notes = [f"note: {warning}" for warning in report.warnings]
            return answer(
                [f"{first}; Python {report.python}", *report.problems, *notes, *report.packages]
            )

        call = functools.partial(
            sandbox.validate, script, dependencies=dependencies, policy=policy
        )
        return await guarded(ctx, call, shown)

    @server.tool(
        title="Check the sandbox", annotations=annotations(quiet=True), structured_output=False
    )
    async def check_environment(ctx: Context) -> CallToolResult:
        """Try the sandbox from inside: what confines scripts here, Python, limits, mounts, cache."""

        def shown(found: list[sandbox.Finding]) -> CallToolResult:
            return answer([*report_lines(found), f"warm cache: {warmed[-1]}.{mounts}"])

        return await guarded(ctx, lambda cancel, progress: sandbox.check(policy), shown)

    threading.Thread(target=warm_up, args=(policy, options, runs), daemon=True).start()
    return server


def report_lines(found: list[sandbox.Finding]) -> list[str]:
    return [f"{f.verdict:8}{f.subject}: {f.text}" for f in found]


def audit(path: str, script: str, result: Result) -> None:
    """Append one JSON line about a run: never its text or output; a full disk stops no run."""
    if path:
        entry = dataclasses.asdict(result)
        for name in ("stdout", "stderr", "files", "notes"):
            del entry[name]
        digest = hashlib.sha256(script.encode("utf-8", "surrogatepass")).hexdigest()
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "script": digest,
            **entry,
        }
        try:
            with open(path, "a", encoding="utf-8") as log:
                log.write(json.dumps(entry) + "\n")
        except OSError as error:
            print(
                f"pysbx: the audit log {path} cannot be written: {error.strerror}", file=sys.stderr
            )


def warm_up(policy: Policy, options: argparse.Namespace, runs: Runs) -> None:
    """When nothing has run for a while: install what scripts often ask for, out of the way."""
    while not options.no_warm_cache and warmed[-1] == "not asked for":
        time.sleep(1)
        if not runs.open and time.monotonic() - runs.last > WARM_AFTER:
            warmed.append("being installed")
            warmed.append(sandbox.warm(policy, WARM))


def serve(policy: Policy, options: argparse.Namespace) -> int:
    """Serve MCP on stdio or HTTP until the client is gone or a signal comes."""
    options.token = os.environ.get("PYSBX_TOKEN", "")
    if token_file := os.environ.get("PYSBX_TOKEN_FILE"):
        options.token = Path(token_file).read_text().strip()
    if options.transport == "http" and options.host not in LOOPBACK and not options.token:
        raise sandbox.Unavailable(
            "to serve beyond loopback set PYSBX_TOKEN, or PYSBX_TOKEN_FILE, to a secret"
        )
    options.warning = ""
    probe = threading.Thread(target=first_spare, args=(policy, options))
    probe.start()  # while the SDK is imported
    if policy.require_sandbox or policy.backend == "none":
        probe.join()
    server = create_server(policy, options)
    asyncio.run(
        serve_http(server, options) if options.transport == "http" else serve_stdio(server)
    )
    sandbox.end_spares()
    sys.stdout.flush()
    os._exit(128 + caught[0] if caught else 0)


def first_spare(policy: Policy, options: argparse.Namespace) -> None:
    try:
        _, warning = sandbox.settle(policy)
        options.warning = f"\n{warning}" if warning else ""
    except SandboxError as error:
        options.warning = f"\n{error}"
    if options.warning:
        print(f"pysbx: warning: {options.warning.strip()}", file=sys.stderr)


async def serve_stdio(server: Any) -> None:
    task = asyncio.ensure_future(server.run_stdio_async())

    def stop(number: int) -> None:
        caught.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def serve_http(server: Any, options: argparse.Namespace) -> None:
    """Stateless streamable HTTP: any replica answers any call; SIGTERM ends it within 5 s."""
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    @server.custom_route("/health", methods=["GET"])  # type: ignore[untyped-decorator]
    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "version": __version__})

    # beyond loopback the names a balancer uses are unknown here; the token guards
    security = (
        None
        if options.host in LOOPBACK
        else TransportSecuritySettings(enable_dns_rebinding_protection=False)
    )
    app = server.streamable_http_app(
        stateless_http=True, json_response=True, transport_security=security, host=options.host
    )
    config = uvicorn.Config(
        app, host=options.host, port=options.port, log_level="warning", timeout_graceful_shutdown=2
    )
    await uvicorn.Server(config).serve()


# ---- the command line


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence and exit with 125: nothing was run."""

    def error(self, message: str) -> NoReturn:
        print(f"pysbx: {message}; see 'pysbx --help'", file=sys.stderr)
        raise SystemExit(125)


def number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {low} to {high}"
            )
        return int(text)

    return parse


def version(text: str) -> str:
    if text and not re.fullmatch(r"3\.\d{1,2}(\.\d{1,2})?", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a Python version such as 3.13 or 3.13.1"
        )
    return text


def parser() -> Parser:
    p, cores = (
        Parser(
            prog="pysbx",
            description="Run Python scripts in a sandbox: serve MCP, or run SCRIPT.",
            allow_abbrev=False,
        ),
        os.cpu_count() or 2,
    )
    add, mb, seconds = p.add_argument, number(16, 1 << 20), number(1, 86_400)
    add(
        "script",
        nargs="?",
        metavar="SCRIPT",
        help="run this file once ('-': stdin); without it, serve MCP on stdio",
    )
    add(
        "--check",
        action="store_true",
        help="try the sandbox from inside and say what is well and what is not",
    )
    add(
        "--python-version",
        type=version,
        default="",
        metavar="3.N",
        help="Python for scripts (default: 3.13, or what there is)",
    )
    add(
        "--sandbox-backend",
        choices=("native", "docker", "none"),
        default=Policy().backend,
        help="native: bubblewrap on Linux; docker; none: no sandbox",
    )
    add(
        "--require-sandbox",
        action="store_true",
        help="refuse to run scripts where no sandbox works",
    )
    add(
        "--network",
        choices=("on", "off", "public"),
        default="on",
        help="what scripts reach (default: on)",
    )
    add(
        "--default-timeout",
        type=seconds,
        default=30,
        metavar="S",
        help="seconds a script has if the call says nothing (default: 30)",
    )
    add(
        "--max-timeout",
        type=seconds,
        default=300,
        metavar="S",
        help="most that a call may ask for (default: 300)",
    )
    add(
        "--install-timeout",
        type=seconds,
        default=300,
        metavar="S",
        help="seconds for installing packages (default: 300)",
    )
    add(
        "--max-output-bytes",
        type=number(100, 100 << 20),
        default=102_400,
        metavar="N",
        help="output kept of a run (default: 102400)",
    )
    add("--memory", type=mb, default=2048, metavar="MB", help="memory of a run (default: 2048)")
    add(
        "--disk",
        type=mb,
        default=512,
        metavar="MB",
        help="size of the working directory (default: 512)",
    )
    add(
        "--max-processes",
        type=number(8, 32_000),
        default=256,
        metavar="N",
        help="processes and threads of a run (default: 256)",
    )
    add(
        "--max-concurrent",
        type=number(1, 1000),
        default=max(2, cores),
        metavar="N",
        help="scripts at once (default: the cores)",
    )
    add(
        "--mount",
        action="append",
        default=[],
        metavar="HOST[:rw]",
        help="show a file or directory to scripts, read-only unless :rw",
    )
    add(
        "--pass-env",
        action="append",
        default=[],
        metavar="NAME",
        help="hand this environment variable to scripts",
    )
    add(
        "--with",
        action="append",
        default=[],
        dest="requirements",
        metavar="REQ",
        help="install this package for SCRIPT, too",
    )
    add("--files-out", metavar="DIR", help="write the files that SCRIPT leaves to DIR")
    add("--no-build", action="store_true", help="never build packages from source")
    add(
        "--no-warm-cache",
        action="store_true",
        help="do not download common packages when the server starts",
    )
    add("--no-spare", action="store_true", help="do not keep a sandbox waiting for the next call")
    add(
        "--cache-size",
        type=mb,
        default=8192,
        metavar="MB",
        help="most that the package cache may hold (default: 8192)",
    )
    add("--audit-log", default="", metavar="FILE", help="append one JSON line a run")
    add("--uv-path", default="", metavar="P", help="the uv to use")
    add("--docker-path", default="docker", metavar="P", help="docker, or podman")
    add(
        "--docker-image",
        default=sandbox.IMAGE,
        metavar="I",
        help="image of the docker backend; needs sh and uv",
    )
    add("--docker-runtime", default="", metavar="R", help="runtime of the engine, such as runsc")
    add(
        "--transport",
        choices=("stdio", "http"),
        default="stdio",
        help="how to serve (default: stdio)",
    )
    add("--host", default="127.0.0.1", help="address to serve HTTP on")
    add(
        "--port",
        type=number(1, 65_535),
        default=8000,
        metavar="N",
        help="port to serve HTTP on (default: 8000)",
    )
    add("--version", action="version", version=f"pysbx {__version__}")
    return p


def run_once(policy: Policy, options: argparse.Namespace) -> int:
    """Run SCRIPT with its streams and exit code as ours; our own lines go to stderr as 'pysbx: …'."""
    reader, writer = os.pipe()
    stopped: list[int] = []

    def stop(number: int, frame: object) -> None:
        stopped.append(number)
        os.write(writer, b"x")

    for number_ in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number_, stop)
    raw = sys.stdin.buffer.read() if options.script == "-" else Path(options.script).read_bytes()

    def echo(number: int, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(number + 1, data) :]

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise sandbox.InvalidScript(
            f"the script is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from None
    result = sandbox.run(
        text,
        dependencies=options.requirements,
        timeout=options.default_timeout,
        policy=policy,
        cancel=reader,
        echo=echo,
    )
    notes = list(result.notes)
    if options.files_out:
        write_files(result, Path(options.files_out), notes)
    ended = (
        f"the script was ended by signal {result.exit_code - 128} ({result.signal})"
        if result.signal
        else ""
    )
    ended = (
        f"the script's time limit of {options.default_timeout} s ran out: timed out"
        if result.status == "timeout"
        else ended
    )
    for line in filter(None, [ended, result.limit and f"the {result.limit} was reached", *notes]):
        print(f"pysbx: {line}", file=sys.stderr)
    audit(options.audit_log, text, result)
    sandbox.after_run(policy, spare=False)  # compiles what was installed, once
    return 124 if result.status == "timeout" else 128 + stopped[0] if stopped else result.exit_code


def write_files(result: Result, target: Path, notes: list[str]) -> None:
    """Write what the script left below target, as 0644, never through a link."""
    for file in result.files:
        path = target / file.name
        try:
            if file.data is None:
                raise OSError(27, f"too large to hand on ({file.size:,} bytes)")
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.resolve() != target.resolve() / Path(file.name).parent:
                raise OSError(40, "a link is in the way")
            with open(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644), "wb"
            ) as out:
                out.write(file.data)
        except OSError as error:
            notes.append(f"the file {file.name!r} was not written: {error.strerror}")


def main() -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # some launchers ignore it, and we inherit that
    words = parser()
    options = words.parse_args()
    for wrong, why in (
        (
            options.default_timeout > options.max_timeout,
            "--default-timeout is more than --max-timeout",
        ),
        (
            options.require_sandbox and options.sandbox_backend == "none",
            "--sandbox-backend none contradicts --require-sandbox",
        ),
        (
            not options.script and (options.files_out or options.requirements),
            "--files-out and --with need a SCRIPT",
        ),
        (
            options.script and options.transport == "http",
            "--transport http serves: it takes no SCRIPT",
        ),
        (options.script and options.check, "--check takes no SCRIPT"),
    ):
        words.error(why) if wrong else None
    given = {f: getattr(options, f) for f in Policy.__dataclass_fields__ if hasattr(options, f)}
    lists = {"mounts": tuple(options.mount), "pass_env": tuple(options.pass_env)}
    policy = Policy(
        **{**given, **lists, "backend": options.sandbox_backend, "build": not options.no_build}
    )
    try:
        if options.check:
            found = sandbox.check(policy)
            print("\n".join(report_lines(found)))
            return int(any(f.verdict == "FAIL" for f in found))
        return run_once(policy, options) if options.script else serve(policy, options)
    except (SandboxError, OSError) as error:
        print(f"pysbx: {error}", file=sys.stderr)
        return 125
    finally:
        sandbox.end_spares()


if __name__ == "__main__":
    sys.exit(main())
