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
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import pysbx_sandbox as sandbox
from pysbx_sandbox import Policy, Result, SandboxError, __version__

MAX_IMAGES = 500_000  # bytes of images in a result: Claude Desktop takes 1 MB, base64 included
NOTHING: list[str] = []
MAX_SHOWN = 4000  # bytes of a text file that is shown
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WARM_AFTER = 15.0  # seconds without a run
IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF.{4}WEBP": "webp"}
WARM = """numpy pandas matplotlib scipy scikit-learn requests httpx beautifulsoup4 lxml pillow
    pyyaml python-dateutil openpyxl tabulate rich tqdm""".split()
INSTRUCTIONS = """Run Python with execute_python: a fresh sandbox for every call, nothing is kept
between calls. Declare packages in `dependencies` or in a PEP 723 block; they are installed before
the time limit starts. Print what you want to see; files left in the working directory come back."""


EXECUTE = """Run a Python script in a fresh sandbox; returns exit code, stdout, stderr and files.
Packages: name them in `dependencies` or in a PEP 723 block of the script; they are installed before
the time limit starts. The working directory is empty and private; files left in it come back, images
as images; plt.show() works. Nothing is kept between calls. There is no stdin. Network: {p.network}.
Limits: {p.memory} MB memory, {p.disk} MB disk, {limit} s.{mounts}"""
VALIDATE = """Check a script without running it: metadata, syntax under the Python it would get, and
the versions of its dependencies that would be installed. Nothing is executed."""
CHECK = "Try the sandbox from inside: what confines scripts here, Python, limits, mounts, cache."
Image = tuple[str, bytes]  # format, content


# ---- from a result to text


def clean(text: str) -> str:
    """Return text as a terminal would leave it: redrawn lines once, no escapes, no control codes."""
    text = re.sub(
        r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].{0,500}?(?:\x07|\x1b\\)|[ -/]*[0-~])", "", text
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
    lines, images, room, text_room = [how_it_ended(result)], [], MAX_IMAGES, 10 * MAX_SHOWN
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
        data = file.data or b""
        kind = next((k for magic, k in IMAGES.items() if re.match(magic, data, re.DOTALL)), "")
        what = kind + " image" if kind else "file"
        if kind and len(data) <= room:
            images.append((kind, data))
            room -= len(data)
        elif kind or file.data is None:
            what += ", too large to show"
        lines.append(f"--- {what} {clean(file.name)}, {file.size:,} bytes ---")
        if not kind and 0 < len(data) <= min(MAX_SHOWN, text_room) and b"\0" not in data:
            lines.append(clean(data.decode("utf-8", "replace")).removesuffix("\n"))
            text_room -= len(data)
    return lines, images


# ---- the server


class Runs:
    """The calls of one server: how many at once, on which threads, and how they are cancelled."""

    def __init__(self, at_once: int) -> None:
        self.turn, self.open, self.last = asyncio.Semaphore(at_once), 0, time.monotonic()
        self.pool = concurrent.futures.ThreadPoolExecutor(at_once)
        self.later = concurrent.futures.ThreadPoolExecutor(1)  # for what follows a call

    async def call(self, function: Callable[..., Any], say: Callable[[str], None]) -> Any:
        """Call function(cancel=descriptor) on a thread; our own cancellation ends it at once."""
        if self.turn.locked():
            say("queued: other scripts are running")
        async with self.turn:
            reader, writer = os.pipe()
            self.open += 1
            future = self.pool.submit(functools.partial(function, cancel=reader))
            future.add_done_callback(self.closed)
            try:
                return await asyncio.wrap_future(future)
            except asyncio.CancelledError:
                os.write(writer, b"x")
                raise
            finally:  # the thread may still look at its end
                asyncio.ensure_future(self.free(future, reader, writer))

    async def free(self, future: concurrent.futures.Future[Any], *descriptors: int) -> None:
        """Close descriptors once nobody uses them."""
        while not future.done():
            await asyncio.sleep(0.05)
        for fd in descriptors:
            os.close(fd)

    def closed(self, future: concurrent.futures.Future[Any]) -> None:
        self.open, self.last = self.open - 1, time.monotonic()

    def end(self) -> None:
        """Wait until what was cancelled is gone: clients give a server 0.4 s."""
        until = time.monotonic() + 0.35
        while self.open and time.monotonic() < until:
            time.sleep(0.005)
        sandbox.end_spares()


caught: list[int] = []  # the signal that ends us
warmed = ["waits for an idle moment"]  # how far the warm cache is


class Service:
    """What the tools share: the policy, the options, the calls under way, the user's consent."""

    def __init__(self, policy: Policy, options: argparse.Namespace) -> None:
        self.policy, self.options, self.runs = policy, options, Runs(options.max_concurrent)
        self.limit = options.max_timeout
        self.default = min(options.default_timeout, self.limit)
        self.mounts = f" Paths of the host: {', '.join(policy.mounts)}." if policy.mounts else ""
        self.consent: list[bool] = []

    async def must_ask(self, capabilities: Any) -> str:
        """Return why the user is to be asked before a run, once: no sandbox works; or ""."""
        if capabilities is None or capabilities.elicitation is None or self.consent:
            return ""
        with contextlib.suppress(SandboxError):
            settled, warning = await asyncio.to_thread(sandbox.settle, self.policy)
            return warning if settled.backend == "none" != self.policy.backend else ""
        return ""

    def answer(self, lines: list[str], error: bool = False, images: Sequence[Image] = ()) -> Any:
        from mcp.types import CallToolResult, ContentBlock, ImageContent, TextContent

        content: list[ContentBlock] = [TextContent(text="\n".join(lines))]
        for kind, data in images:
            encoded = base64.b64encode(data).decode()
            content.append(ImageContent(data=encoded, mime_type=f"image/{kind}"))
        return CallToolResult(content=content, is_error=error)

    async def guarded(
        self, ctx: Any, function: Callable[..., Any], shown: Callable[[Any], Any]
    ) -> Any:
        """Call a function of pysbx_sandbox with progress and cancellation; an error is a sentence."""
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
            return shown(await self.runs.call(functools.partial(function, progress=say), say))
        except SandboxError as error:
            return self.answer([f"nothing was run: {error}"], error=True)
        except Exception as error:  # ours; the server lives on
            return self.answer([f"pysbx failed, please report it: {error!r}"], error=True)
        finally:
            beating.cancel()

    async def execute(
        self, ctx: Any, yes: bool, script: str, dependencies: list[str], seconds: int
    ) -> Any:
        def shown(result: Result) -> Any:
            audit(self.options.audit_log, script, result)
            later = functools.partial(
                self.runs.later.submit,
                sandbox.after_run,
                self.policy,
                spare=not self.options.no_spare,
            )
            asyncio.get_running_loop().call_later(0.02, later)  # the answer goes first
            lines, images = blocks(script, result, seconds)
            return self.answer(lines, result.status != "exited", images)

        if not yes:
            no = "nothing was run: the user does not want scripts to run without a sandbox"
            return self.answer([no], error=True)
        if not 1 <= seconds <= self.limit:
            wrong = f"nothing was run: timeout_seconds must be 1 to {self.limit}, not {seconds}"
            return self.answer([wrong], error=True)
        more: dict[str, Any] = {"dependencies": dependencies, "timeout": seconds}
        return await self.guarded(
            ctx, functools.partial(sandbox.run, script, policy=self.policy, **more), shown
        )

    async def validate(self, ctx: Any, script: str, dependencies: list[str]) -> Any:
        def shown(report: sandbox.Report) -> Any:
            first = "problems were found" if report.problems else "the script can run"
            notes = [f"note: {warning}" for warning in report.warnings]
            first = f"{first}; Python {report.python}"
            return self.answer([first, *report.problems, *notes, *report.packages])

        more: dict[str, Any] = {"dependencies": dependencies}
        return await self.guarded(
            ctx, functools.partial(sandbox.validate, script, policy=self.policy, **more), shown
        )

    async def check(self, ctx: Any) -> Any:
        def shown(found: list[sandbox.Finding]) -> Any:
            return self.answer([*report_lines(found), f"warm cache: {warmed[-1]}.{self.mounts}"])

        return await self.guarded(ctx, lambda cancel, progress: sandbox.check(self.policy), shown)


def create_server(policy: Policy, options: argparse.Namespace) -> Any:
    """Return the MCP server with its three tools; the SDK is imported here, not for the rest."""
    gc.disable()  # while importing: worth 60 ms of 900
    from mcp.server import CacheHint, MCPServer
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings
    from pydantic import AnyHttpUrl

    gc.enable()
    gc.freeze()
    service = Service(policy, options)

    @contextlib.asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[dict[str, object]]:
        try:
            yield {}
        finally:  # running tools have been cancelled here
            if options.transport == "stdio":
                service.runs.end()
            if caught:
                os._exit(128 + caught[0])  # the SDK's stdin thread cannot be interrupted

    class Token:
        async def verify_token(self, token: str) -> AccessToken | None:
            good = hmac.compare_digest(token.encode(), options.token.encode())
            return AccessToken(token="", client_id="pysbx", scopes=[]) if good else None

    more: dict[str, Any] = {"subscriptions": False, "log_level": "WARNING", "lifespan": lifespan}
    if options.transport == "http" and options.token:
        host = f"[{options.host}]" if ":" in options.host else options.host
        url = AnyHttpUrl(f"http://{host}:{options.port}")
        more["auth"] = AuthSettings(issuer_url=url, resource_server_url=None)
        more["token_verifier"] = Token()
    more["cache_hints"] = {"tools/list": CacheHint(ttl_ms=3_600_000, scope="public")}
    more["instructions"] = INSTRUCTIONS + options.warning
    server = MCPServer("pysbx", version=__version__, **more)
    add_tools(server, service)
    threading.Thread(target=warm_up, args=(policy, options, service.runs), daemon=True).start()
    return server


def add_tools(server: Any, service: Service) -> None:
    """Register the tools: names, parameters and defaults of the predecessor."""
    from mcp.server.mcpserver import (
        AcceptedElicitation,
        Context,
        Elicit,
        ElicitationResult,
        Resolve,
    )
    from mcp.types import CallToolResult, ToolAnnotations
    from pydantic import BaseModel, Field

    limit, default, policy = service.limit, service.default, service.policy
    says = f"Limit for the script itself, 1 to {limit} seconds, default {default}"
    seconds = Field(description=says, json_schema_extra={"minimum": 1, "maximum": limit})
    says = "Python source; runs as a file; may have a PEP 723 block"
    Script = Annotated[str, Field(description=says)]
    says = "Packages to install, as on PyPI: ['numpy', 'pandas>=2']"
    Packages = Annotated[list[str], Field(description=says)]

    class Consent(BaseModel):
        go: bool = Field(description="Run scripts without a sandbox?")

    async def ask(ctx: Context) -> Elicit[Consent] | Consent:
        if why := await service.must_ask(ctx.client_capabilities):
            return Elicit(f"No sandbox works here: {why}. Run scripts with your rights?", Consent)
        return Consent(go=all(service.consent))

    def tool(title: str, text: str, *, quiet: bool = True, **meta: Any) -> Any:
        kind: dict[str, Any] = {"read_only_hint": quiet, "idempotent_hint": quiet}
        hints = ToolAnnotations(open_world_hint=not quiet, destructive_hint=False, **kind)
        more = {"annotations": hints, "meta": meta or None, "structured_output": False}
        return server.tool(title=title, description=text, **more)

    text = EXECUTE.format(p=policy, limit=limit, mounts=service.mounts)
    meta = {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 200_000}

    @tool("Run Python", text, quiet=False, **meta)  # type: ignore[untyped-decorator]
    async def execute_python(
        script: Script,
        ctx: Context,
        consent: Annotated[ElicitationResult[Consent], Resolve(ask)],
        dependencies: Packages = NOTHING,
        timeout_seconds: Annotated[int, seconds] = default,
    ) -> CallToolResult:
        service.consent.append(isinstance(consent, AcceptedElicitation) and consent.data.go)
        yes = service.consent[-1]
        done = await service.execute(ctx, yes, script, dependencies, timeout_seconds)
        return cast(CallToolResult, done)

    @tool("Check a script", VALIDATE)  # type: ignore[untyped-decorator]
    async def validate_script(
        script: Script, ctx: Context, dependencies: Packages = NOTHING
    ) -> CallToolResult:
        return cast(CallToolResult, await service.validate(ctx, script, dependencies))

    @tool("Check the sandbox", CHECK)  # type: ignore[untyped-decorator]
    async def check_environment(ctx: Context) -> CallToolResult:
        return cast(CallToolResult, await service.check(ctx))


def report_lines(found: list[sandbox.Finding]) -> list[str]:
    """Return findings as text, a line each."""
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
    while not options.no_warm_cache and warmed[-1] == "waits for an idle moment":
        time.sleep(1)
        if not runs.open and time.monotonic() - runs.last > WARM_AFTER:
            warmed.append("being installed")
            warmed.append(sandbox.warm(policy, WARM))


def serve(policy: Policy, options: argparse.Namespace) -> int:
    """Serve MCP on stdio or HTTP until the client is gone or a signal comes."""
    options.token = os.environ.get("PYSBX_TOKEN", "").strip()
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
        serve_http(server, policy, options) if options.transport == "http" else serve_stdio(server)
    )
    sandbox.end_spares()
    sys.stdout.flush()
    os._exit(128 + caught[0] if caught else 0)


def first_spare(policy: Policy, options: argparse.Namespace) -> None:
    """Settle on a backend, start the first spare, and say at once if it is not the one asked for."""
    try:
        _, warning = sandbox.settle(policy)
        options.warning = f"\n{warning}" if warning else ""
    except SandboxError as error:
        options.warning = f"\n{error}"
    if options.warning:
        print(f"pysbx: warning: {options.warning.strip()}", file=sys.stderr)


async def serve_stdio(server: Any) -> None:
    """Serve on stdio until the client hangs up or a signal comes."""
    task = asyncio.ensure_future(server.run_stdio_async())

    def stop(number: int) -> None:
        caught.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def heeding_hang_up(app: Any) -> Any:
    """Wrap an ASGI application: a client that hangs up before the answer cancels its request."""
    from starlette.responses import JSONResponse

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        inbox: asyncio.Queue[Any] = asyncio.Queue(1)  # small: the body waits until it is wanted
        began: list[bool] = []

        async def watch() -> None:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect" and not began:
                    task.cancel()
                await inbox.put(message)

        async def tell(message: Any) -> None:
            began.append(True)
            await send(message)

        task = asyncio.ensure_future(app(scope, inbox.get, tell))
        watching = asyncio.ensure_future(watch())
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task], timeout=1)
            if not began:  # nobody reads it, or this server is asked to end
                stopping = JSONResponse({"error": "the server is stopping: call again"}, 503)
                await stopping(scope, receive, send)
        finally:
            watching.cancel()

    async def choose(scope: Any, receive: Any, send: Any) -> None:
        await (wrapped if scope["type"] == "http" else app)(scope, receive, send)

    return choose


async def serve_http(server: Any, policy: Policy, options: argparse.Namespace) -> None:
    """Stateless streamable HTTP: any replica answers any call; SIGTERM ends it within 5 s."""
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    @server.custom_route("/health", methods=["GET"])  # type: ignore[untyped-decorator]
    async def health(request: Request) -> JSONResponse:
        try:  # a balancer must not send calls to a replica that refuses them all
            await asyncio.to_thread(sandbox.settle, policy)
        except SandboxError as error:
            return JSONResponse({"status": "failing", "why": str(error)}, status_code=503)
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
    with socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((options.host, options.port))  # an address in use is one sentence
    print(f"pysbx: serving http://{options.host}:{options.port}/mcp", file=sys.stderr)
    more: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": 2}
    config = uvicorn.Config(heeding_hang_up(app), host=options.host, port=options.port, **more)
    await uvicorn.Server(config).serve()


# ---- the command line


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence and exit with 125: nothing was run."""

    def error(self, message: str) -> NoReturn:
        print(f"pysbx: {message}; see 'pysbx --help'", file=sys.stderr)
        raise SystemExit(125)


def number(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of whole numbers within bounds."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {low} to {high}"
            )
        return int(text)

    return parse


def python_version(text: str) -> str:
    """Parse 3.N or 3.N.P."""
    if text and not re.fullmatch(r"3\.\d{1,2}(\.\d{1,2})?", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a Python version such as 3.13 or 3.13.1"
        )
    return text


# option | what follows: a flag, choices, LOW..HIGH, "list" or text | default | help
OPTIONS = """
--check | flag | | try the sandbox from inside and say what is well and what is not
--python-version | 3.N | | Python for scripts (default: 3.13, or what there is)
--sandbox-backend | native,docker,none | {backend} | native: bubblewrap on Linux; none: no sandbox
--require-sandbox | flag | | refuse to run scripts where no sandbox works
--network | on,off,public | on | what scripts reach; public: the internet, not this host (default: on)
--default-timeout | 1..86400 | 30 | seconds a script has if the call says nothing (default: 30)
--max-timeout | 1..86400 | 300 | most seconds that a call may ask for (default: 300)
--install-timeout | 1..86400 | 300 | seconds for installing packages (default: 300)
--max-output-bytes | 100..104857600 | 102400 | output kept of a run (default: 102400)
--memory | 16..1048576 | 2048 | MB of memory of a run (default: 2048)
--disk | 16..1048576 | 512 | MB of the working directory (default: 512)
--max-processes | 8..32000 | 256 | processes and threads of a run (default: 256)
--max-concurrent | 1..1000 | {cores} | scripts at once (default: the cores)
--mount | list HOST[:rw] | | show a file or directory to scripts, read-only unless :rw
--pass-env | list NAME | | hand this environment variable to scripts
--with | list REQ | | install this package for SCRIPT, too
--files-out | DIR | | write the files that SCRIPT leaves to DIR
--no-build | flag | | never build packages from source
--no-warm-cache | flag | | do not install common packages while the server idles
--no-spare | flag | | do not keep a sandbox waiting for the next call
--cache-size | 16..1048576 | 8192 | MB that the package cache may hold (default: 8192)
--audit-log | FILE | | append one JSON line a run
--uv-path | P | | the uv to use
--docker-path | P | docker | docker, or podman
--docker-image | I | {image} | image of the docker backend; needs sh, tar and uv
--docker-runtime | R | | runtime of the engine, such as runsc
--transport | stdio,http | stdio | how to serve (default: stdio)
--host | ADDRESS | 127.0.0.1 | address to serve HTTP on
--port | 1..65535 | 8000 | port to serve HTTP on (default: 8000)
"""


def parser() -> Parser:
    """Return the parser of the command line; OPTIONS is its table."""
    says = "Run Python scripts in a sandbox: serve MCP, or run SCRIPT."
    p = Parser(prog="pysbx", description=says, allow_abbrev=False)
    p.add_argument("script", nargs="?", metavar="SCRIPT", help="run this file once ('-': stdin)")
    p.add_argument("--version", action="version", version=f"pysbx {__version__}")
    cores, image = max(2, os.cpu_count() or 2), sandbox.IMAGE
    table = OPTIONS.format(backend=Policy().backend, cores=cores, image=image)
    for line in table.strip().splitlines():
        name, kind, default, text = (part.strip() for part in line.split("|"))
        low, dots, high = kind.partition("..")
        if kind == "flag":
            p.add_argument(name, action="store_true", help=text)
        elif dots:
            check, value = number(int(low), int(high)), int(default)
            p.add_argument(name, type=check, default=value, metavar="N", help=text)
        elif kind.startswith("list"):
            p.add_argument(name, action="append", default=[], metavar=kind[5:], help=text)
        elif "," in kind:
            p.add_argument(name, choices=kind.split(","), default=default, help=text)
        else:
            check_text = python_version if kind == "3.N" else str
            p.add_argument(name, type=check_text, default=default, metavar=kind, help=text)
    return p


def contradiction(options: argparse.Namespace) -> str:
    """Return what is wrong with options that are right one by one, or ""."""
    script, serves = options.script, not options.script and not options.check
    none = options.sandbox_backend == "none"
    wrong = {
        "--default-timeout is more than --max-timeout": options.default_timeout
        > options.max_timeout,
        "--sandbox-backend none contradicts --require-sandbox": none and options.require_sandbox,
        "--files-out and --with need a SCRIPT": not script
        and (options.files_out or getattr(options, "with")),
        "--transport http serves: it takes neither SCRIPT nor --check": options.transport == "http"
        and not serves,
        "--check takes no SCRIPT": options.check and script,
        "--docker-runtime needs --sandbox-backend docker": options.docker_runtime
        and options.sandbox_backend != "docker",
        "--sandbox-backend none cannot close the network: leave --network out": none
        and options.network != "on",
    }
    return next((text for text, holds in wrong.items() if holds), "")


def run_once(policy: Policy, options: argparse.Namespace) -> int:
    """Run SCRIPT with its streams and exit code as ours; our own lines go to stderr as 'pysbx: …'."""
    reader, writer = os.pipe()
    stopped: list[int] = []

    def stop(number: int, frame: object) -> None:
        stopped.append(number)
        os.write(writer, b"x")

    def echo(stream: int, data: bytes) -> None:
        try:
            while data and not stopped:
                data = data[os.write(stream + 1, data) :]
        except BrokenPipeError:  # nobody reads any more
            stop(signal.SIGPIPE, None)

    def say(text: str) -> None:
        if text.startswith("warning"):  # before anything runs
            print(f"pysbx: {text}", file=sys.stderr)
        elif sys.stderr.isatty():  # one line, drawn anew, and gone when the script runs
            words = f"pysbx: {text} ..." if text != "running" else ""
            print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    target = Path(options.files_out) if options.files_out else None
    if target:
        target.mkdir(parents=True, exist_ok=True)
    if target and not os.access(target, os.W_OK):
        raise sandbox.Unavailable(f"--files-out {target} cannot be written")
    more: dict[str, Any] = {
        "dependencies": getattr(options, "with"),
        "timeout": options.default_timeout,
    }
    calls: dict[str, Any] = {"cancel": reader, "echo": echo, "progress": say}
    text = read_script(options.script)
    result = sandbox.run(text, policy=policy, **more, **calls)
    notes = [note for note in result.notes if not note.startswith("warning")]
    if target:
        write_files(result, target, notes)
    elif result.files:
        notes.append(f"files left by the script: {len(result.files)}; --files-out DIR keeps them")
    for line in [*ending(result, options.default_timeout, stopped), *notes]:
        print(f"pysbx: {line}", file=sys.stderr)
    audit(options.audit_log, text, result)
    sandbox.after_run(policy, spare=False)  # compiles what was installed, once
    return 124 if result.status == "timeout" else 128 + stopped[0] if stopped else result.exit_code


def read_script(name: str) -> str:
    """Return the text of the file, or of stdin for '-'; raise InvalidScript if it is not UTF-8."""
    raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        why = f"{error.reason} at byte {error.start}"
        raise sandbox.InvalidScript(f"the script is not UTF-8 text: {why}") from None


def ending(result: Result, limit: int, stopped: list[int]) -> list[str]:
    """Return lines on how a script ended, where its own exit code does not say it all."""
    lines = []
    if stopped:
        lines.append("interrupted")
    elif result.status == "timeout":
        lines.append(f"the script's time limit of {limit} s ran out: timed out")
    elif result.signal:
        number = result.exit_code - 128
        lines.append(f"the script was ended by signal {number} ({result.signal})")
    if "No module named" in result.stderr:
        lines.append("--with NAME installs a package")
    return lines + ([f"the {result.limit} was reached"] if result.limit else [])


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
    """Run the command line; return the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # some launchers ignore it, and we inherit that
    words = parser()
    options = words.parse_args()
    if wrong := contradiction(options):
        words.error(wrong)
    given = {f: getattr(options, f) for f in Policy.__dataclass_fields__ if hasattr(options, f)}
    lists = {"mounts": tuple(options.mount), "pass_env": tuple(options.pass_env)}
    backend = (
        options.sandbox_backend
    )  # over HTTP nobody can be asked, and one may not speak for all
    serves_all = options.transport == "http" and backend != "none"
    given |= {"backend": backend, "build": not options.no_build, **lists}
    given["require_sandbox"] = options.require_sandbox or serves_all
    policy = Policy(**given)
    try:
        if options.check:
            found = sandbox.check(policy)
            print("\n".join(report_lines(found)))
            return int(any(f.verdict == "FAIL" for f in found))
        return run_once(policy, options) if options.script else serve(policy, options)
    except Exception as error:
        known = isinstance(error, SandboxError | OSError)
        drawn = "\r\x1b[K" * sys.stderr.isatty()
        text = error if known else f"pysbx failed, please report it: {error!r}"
        print(f"{drawn}pysbx: {text}", file=sys.stderr)
        return 125
    finally:
        sandbox.end_spares()


if __name__ == "__main__":
    sys.exit(main())
