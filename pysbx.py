"""pysbx: an MCP server and a command line that run Python scripts in a sandbox.

`pysbx` serves MCP on stdio, `pysbx SCRIPT` runs one script, `pysbx --check` tries the sandbox.
What runs a script is in pysbx_sandbox; this file turns calls and words into a Policy and a
Result into text.
"""

import argparse
import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import hashlib
import hmac
import json
import os
import queue
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import pysbx_sandbox as sandbox
from pysbx_sandbox import InvalidScript, Policy, Result, SandboxError, Unavailable, __version__

MAX_IMAGES = 500_000  # bytes of images in a result: Claude Desktop takes 1 MB, base64 included
MAX_SHOWN = 4000  # bytes of a text file that is shown
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SPARE_AFTER, WARM_AFTER = 1.0, 15.0  # seconds without a run
IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF.{4}WEBP": "webp"}
WARM = """numpy pandas matplotlib scipy scikit-learn requests httpx beautifulsoup4 lxml pillow
    pyyaml python-dateutil openpyxl tabulate rich tqdm""".split()
INSTRUCTIONS = """Run Python with execute_python: a fresh sandbox for every call, nothing is kept
between calls. Declare packages in `dependencies` or in a PEP 723 block; they are installed before
the time limit starts. Print what you want to see; files left in the working directory come back."""


EXECUTE = """Run a Python script {where}; returns exit code, stdout, stderr and files.
Packages: name them in `dependencies` or in a PEP 723 block of the script; they are installed before
the time limit starts. The working directory is empty and private; files left in it come back, images
as images; plt.show() works. Nothing is kept between calls. There is no stdin. Network: {p.network}.
Limits: {p.memory} MB memory, {p.disk} MB disk, {limit} s.{mounts}"""
VALIDATE = """Check a script without running it: metadata, syntax under the Python it would get, and
the versions of its dependencies that would be installed. Nothing is executed."""
CHECK = "Try the sandbox from inside: what confines scripts here, Python, limits, mounts, cache."
META = {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 200_000}
Image = tuple[str, bytes]  # format, content
# in JSON: a backslash or a pair of surrogates as group 1, or half of a pair
LONE = re.compile(rb"""(\\\\|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w)|\\u[dD][89a-fA-F]\w\w""")


# ---- from a result to text

ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|[ -/]*[0-~])"
UP = "\x1b[A"


def clean(text: str) -> str:
    """Return text as a terminal would leave it: redrawn lines once, no escapes, no control codes."""
    text = re.sub(ESCAPES, lambda found: UP if found[0] == UP else "", text)
    if "\x08" in text:
        kept: list[str] = []
        for char in text:
            if char != "\x08":
                kept.append(char)
            elif kept and kept[-1] != "\n":
                kept.pop()
        text = "".join(kept)
    rows, at = [""], 0
    for piece in re.split(r"(\n|\r|\x1b\[A)", text):
        if piece == "\n":
            at += 1
            rows += [""] * (at == len(rows))
        elif piece == UP:  # as several progress bars do
            at = max(0, at - 1)
        elif piece.strip("\r"):
            rows[at] = piece
    text = re.sub("[\u2028\u2029]", "\n", "\n".join(rows))  # some clients end a message there
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}", text)


# what a script printed: the next step for an agent
HINTS = r"""
ModuleNotFoundError: No module named '(?!pip') : declare the missing package in `dependencies`, by \
its name on PyPI, which may differ from the name that is imported
No module named '?pip\b|externally-managed-environment|pip3?: (command )?not found|No such file or directory: 'pip3?' : there is no \
pip in the sandbox: declare packages in the `dependencies` argument
EOFError: EOF when reading a line : there is no input: put the values into the script
FileNotFoundError(?!.*pip) : no files are there but those that the script makes, and the paths of \
the host that check_environment names
Errno 30\b|Read-only file system : only the working directory, HOME and /tmp can be written
name resolution|Network is unreachable|Name or service not known|nodename nor servname : {network}
""".replace("\\\n", "")


def those(texts: dict[str, object]) -> list[str]:
    """Return the texts that hold."""
    return [text for text, holds in texts.items() if holds]


def hints(script: str, result: Result, timeout: float) -> list[str]:
    """Return lines that lead an agent to the next step; package names are never guessed."""
    said = result.stdout[-2000:] + result.stderr[-20_000:]
    late = f"the script's own limit of {timeout:g} s ran out; raise timeout_seconds or do less"
    closed = ", network off" in result.isolation
    network = "scripts have no network here" if closed else "the name or the network is not there"
    table = [line.split(" : ") for line in HINTS.format(network=network).strip().splitlines()]
    fence = "SyntaxError" in said and script.lstrip().startswith("```")
    left = result.stdout_bytes or result.stderr_bytes or result.files or result.exit_code
    found: dict[str, object] = {late: result.status == "timeout"}
    found |= {hint: re.search(pattern, said) for pattern, hint in table}
    found["the script is in a markdown fence: send bare Python, without the ``` lines"] = fence
    magic = "SyntaxError" in said and re.search(r"(?m)^[ \t]*[!%][ \t]*\w", script)
    found["! and % commands of notebooks do not work: declare packages in `dependencies`"] = magic
    found[f"the {result.limit} was reached ({result.isolation})"] = result.limit
    plot = "matplotlib" in script and not result.files and not result.exit_code
    found["no figure came back: plt.savefig('x.png') hands it over"] = plot
    silent = result.status == "exited" and not left
    found["nothing was printed: print() what you want to see"] = silent
    return those(found)


def how_it_ended(result: Result) -> str:
    """Return the first line of a result, which is ours before anything the script printed."""
    name = f" ({result.signal})" if result.signal else ""
    ended = {"exited": f"exit code {result.exit_code}{name}", "timeout": "timed out"}
    how = ended.get(result.status, result.status)
    install = result.install_seconds
    took = f"{result.seconds:.2f} s" + (f", installing {install:.1f} s" if install else "")
    return f"{how} after {took}; Python {result.python}; {result.isolation}"


def blocks(script: str, result: Result, timeout: float) -> tuple[list[str], list[Image]]:
    """Return a result as (lines of text, images); sections carry their length in bytes."""
    lines = [how_it_ended(result), *(f"hint: {hint}" for hint in hints(script, result, timeout))]
    lines += [f"note: {clean(note)}" for note in result.notes]
    for name, text in (("stdout", clean(result.stdout)), ("stderr", clean(result.stderr))):
        if text:
            lines += [f"--- {name}, {len(text.encode()):,} bytes ---", text.removesuffix("\n")]
    images, room, text_room = [], MAX_IMAGES, 10 * MAX_SHOWN
    for file in result.files:
        data = file.data or b""
        kind = next((k for magic, k in IMAGES.items() if re.match(magic, data, re.DOTALL)), "")
        what, large, size = kind + " image" if kind else "file", "", file.size
        if kind and len(data) <= room:
            images.append((kind, data))
            room -= len(data)
        elif kind or file.data is None:
            large = ", too large to show"
        text = ""
        if not kind and 0 < len(data) <= min(MAX_SHOWN, text_room) and b"\0" not in data:
            text = clean(data.decode("utf-8", "replace"))
            text_room -= len(data)
            size = len(text.encode())  # of what is shown: nothing can stand behind it as ours
        lines.append(f"--- {what} {clean(file.name)}, {size:,} bytes{large} ---")
        lines += [text.removesuffix("\n")] if text else []
    return lines, images


def report_lines(report: sandbox.Report) -> list[str]:
    """Return what validate found as text; its first line says whether the script can run."""
    first = "problems were found" if report.problems else "it compiles, what it declares resolves"
    notes = [f"note: {warning}" for warning in report.warnings]
    problems = map(clean, report.problems)
    return [f"{first}; Python {report.python}", *problems, *notes, *report.packages]


def check_lines(found: list[sandbox.Finding]) -> list[str]:
    """Return findings as text, a line each."""
    return [f"{f.verdict:8}{f.subject}: {f.text}" for f in found]


# ---- the server


class Service:
    """What the tools share: the policy, the options, the calls under way, the user's consent."""

    def __init__(self, policy: Policy, options: argparse.Namespace) -> None:
        self.policy, self.options, self.last = policy, options, time.monotonic()
        self.pool = concurrent.futures.ThreadPoolExecutor(options.max_concurrent)
        self.later = concurrent.futures.ThreadPoolExecutor(1)  # for what follows a call
        self.upkeep: concurrent.futures.Future[None] | None = None
        self.going: dict[concurrent.futures.Future[Any], socket.socket] = {}
        self.consent: set[bool] = set()
        self.warning = ""  # that the backend is not the one asked for
        self.warmed = "waits for an idle moment"  # how far the warm cache is

    async def call(self, ctx: Any, function: Callable[..., Any], *words: Any, **more: Any) -> Any:
        """Call a function of pysbx_sandbox on a thread, with progress; our cancellation ends it."""
        loop, began, steps = asyncio.get_running_loop(), time.monotonic(), ["starting"]

        def tell(*step: str) -> None:
            steps.extend(step)
            elapsed = time.monotonic() - began
            report = ctx.report_progress(elapsed, None, f"{steps[-1]} ({elapsed:.0f} s)")
            asyncio.ensure_future(report)

        def ended(future: concurrent.futures.Future[Any]) -> None:
            theirs.close()  # not before: the thread looks at it
            self.going.pop(future)
            self.last = time.monotonic()

        if len(self.going) >= self.options.max_concurrent:
            tell("queued: other scripts are running")
        ours, theirs = socket.socketpair()  # when ours is closed, theirs can be read: that cancels
        more |= {"policy": self.policy, "cancel": theirs.fileno()}
        more["progress"] = functools.partial(loop.call_soon_threadsafe, tell)
        running = self.pool.submit(function, *words, **more)
        self.going[running] = ours
        running.add_done_callback(ended)
        future = asyncio.wrap_future(running)
        try:
            while not (await asyncio.wait([future], timeout=5))[0]:
                tell()
            return future.result()
        finally:
            future.cancel()  # if it has not begun
            ours.close()

    def after_run(self) -> None:
        """Look after the sandboxes that wait; one that has not begun serves all runs before it."""
        if not self.upkeep or self.upkeep.running() or self.upkeep.done():
            spare = not self.options.no_spare
            self.upkeep = self.later.submit(sandbox.after_run, self.policy, spare=spare)

    def end(self, code: int = 0) -> NoReturn:
        """End this process when what is cancelled is gone, or now: clients give a server 0.4 s."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        for ours in list(self.going.values()):
            ours.close()
        concurrent.futures.wait(list(self.going), timeout=0.35)
        sandbox.end_spares()
        os._exit(code)  # the SDK's stdin thread cannot be interrupted

    def first_spare(self) -> None:
        """Settle on a backend, start the first spare, say at once if it is not as asked for."""
        try:
            self.warning = sandbox.settle(self.policy)[1]
        except SandboxError as error:
            self.warning = str(error)
        if self.warning:
            log(f"warning: {self.warning}")

    def warm_up(self) -> None:
        """Have an interpreter wait for the first script; after a while install what many ask for."""
        while self.going or time.monotonic() - self.last < SPARE_AFTER:
            time.sleep(0.1)
        if not self.options.no_spare:
            sandbox.warm(self.policy, [])
            self.after_run()
        while self.going or time.monotonic() - self.last < WARM_AFTER:
            time.sleep(1)
        self.warmed = "being installed"
        self.warmed = sandbox.warm(self.policy, WARM)


def create_server(service: Service) -> Any:
    """Return the MCP server with its three tools; the SDK is imported here, not for the rest."""
    gc.disable()  # while importing: worth 60 ms of 900
    from mcp.server import CacheHint, MCPServer
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from pydantic import AnyHttpUrl, ValidationError

    gc.enable()
    gc.freeze()

    class Token:
        async def verify_token(self, token: str) -> AccessToken | None:
            good = hmac.compare_digest(token.encode(), service.options.token.encode())
            return AccessToken(token="", client_id="pysbx", scopes=[]) if good else None

    class Server(MCPServer[Any]):
        async def call_tool(self, *words: Any, **more: Any) -> Any:
            try:
                return await super().call_tool(*words, **more)
            except ToolError as error:  # what a tool raised becomes a sentence
                if isinstance(why := error.__cause__, SandboxError):
                    text = f"nothing was run: {why}"
                elif isinstance(error, UnexpectedToolError):  # ours; the server lives on
                    text = f"pysbx failed, please report it: {why!r}"
                elif isinstance(why, ValidationError):  # the SDK would send a page of it
                    wrong = "; ".join(f"{e['loc'][0]}: {e['msg']}" for e in why.errors())
                    takes = "It takes script, dependencies (['requests']) and timeout_seconds"
                    text = f"nothing was run, the arguments are wrong: {wrong}. {takes}"
                else:
                    raise
                return answer([text], error=True)

    more: dict[str, Any] = {"subscriptions": False, "log_level": "WARNING"}
    if service.options.transport == "http" and service.options.token:
        url = AnyHttpUrl("http://127.0.0.1")  # must be there, is never shown
        more["auth"] = AuthSettings(issuer_url=url, resource_server_url=None)
        more["token_verifier"] = Token()
    more["cache_hints"] = {"tools/list": CacheHint(ttl_ms=3_600_000, scope="public")}
    more["instructions"] = f"{INSTRUCTIONS}\n{service.warning}".strip()
    server = Server("pysbx", version=__version__, **more)
    add_tools(server, service)
    return server


def answer(lines: list[str], error: bool = False, images: Sequence[Image] = ()) -> Any:
    """Return the result of a tool: one text, and the images after it."""
    from mcp.server import mcpserver as sdk
    from mcp.types import CallToolResult, TextContent

    shown = [sdk.Image(data=data, format=kind).to_image_content() for kind, data in images]
    return CallToolResult(content=[TextContent(text="\n".join(lines)), *shown], is_error=error)


def describe(policy: Policy, limit: int) -> tuple[str, str, bool]:
    """Return what an agent reads: files of the host, the tool, and whether it can do harm."""
    bare = policy.backend == "none"
    where = "on this machine WITHOUT A SANDBOX" if bare else "in a fresh sandbox"
    binds = [] if bare else sandbox.mounts(policy)
    shown = [f"{path} ({'writable' if writable else 'read-only'})" for path, _, writable in binds]
    mounts = f" Paths of the host: {', '.join(shown)}." if shown else ""
    text = EXECUTE.format(p=policy, limit=limit, mounts=mounts, where=where)
    return mounts, text, bare or any(writable for _, _, writable in binds)


def or_else(default: object) -> Any:
    """Return a validator that takes null, which some models send for what they leave out."""
    from pydantic import BeforeValidator

    return BeforeValidator(lambda given: default if given is None else given)


def add_tools(server: Any, service: Service) -> None:
    """Register the tools: names, parameters and defaults of the predecessor."""
    from mcp.server import mcpserver as sdk
    from pydantic import BaseModel, Field

    policy, limit = service.policy, service.options.max_timeout
    default = service.options.default_timeout
    mounts, text, harmful = describe(policy, limit)
    says = "Python source; runs as a file; may have a PEP 723 block"
    Code = Annotated[str, Field(description=says)]
    says = "Packages to install, as on PyPI: ['numpy', 'pandas>=2']"
    Names = Annotated[list[str], Field(description=says, default=[]), or_else([])]
    says = f"Limit for the script itself, 1 to {limit} seconds, default {default}"
    field = Field(description=says, default=default, ge=1, le=limit)
    Seconds = Annotated[int, field, or_else(default)]

    quiet = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": True}
    quiet["destructiveHint"] = False
    runs = {**quiet, "readOnlyHint": False, "idempotentHint": False, "destructiveHint": harmful}
    tool = functools.partial(server.tool, annotations=quiet, structured_output=False)

    class Consent(BaseModel):
        go: bool = Field(description="Run scripts without a sandbox?")

    async def ask(ctx: sdk.Context) -> sdk.Elicit[Consent] | Consent:
        can = ctx.client_capabilities
        if can and can.elicitation and not service.consent:  # once, if no sandbox works
            with contextlib.suppress(SandboxError):
                settled, why = await asyncio.to_thread(sandbox.settle, policy)
                if settled.backend == "none" != policy.backend:
                    question = f"No sandbox works here: {why}. Run scripts with your rights?"
                    return sdk.Elicit(question, Consent)
        return Consent(go=all(service.consent))

    Asked = Annotated[sdk.ElicitationResult[Consent], sdk.Resolve(ask)]

    @tool(title="Run Python", description=text, annotations=runs, meta=META)  # type: ignore[untyped-decorator]
    async def execute_python(
        script: Code, ctx: sdk.Context, said: Asked, dependencies: Names, timeout_seconds: Seconds
    ) -> Any:
        yes = isinstance(said, sdk.AcceptedElicitation) and said.data.go
        service.consent.add(yes)
        if not yes:
            raise SandboxError("the user does not want scripts to run without a sandbox")
        more = {"dependencies": dependencies, "timeout": timeout_seconds}
        result = await service.call(ctx, run_audited, service.options.audit_log, script, **more)
        asyncio.get_running_loop().call_later(0.02, service.after_run)  # the answer goes first
        lines, images = blocks(script, result, timeout_seconds)
        return answer(lines, result.status != "exited", images)

    @tool(title="Check a script", description=VALIDATE)  # type: ignore[untyped-decorator]
    async def validate_script(script: Code, ctx: sdk.Context, dependencies: Names) -> Any:
        report = await service.call(ctx, sandbox.validate, script, dependencies=dependencies)
        return answer(report_lines(report))

    @tool(title="Check the sandbox", description=CHECK)  # type: ignore[untyped-decorator]
    async def check_environment(ctx: sdk.Context) -> Any:
        found = await service.call(ctx, lambda policy, **more: sandbox.check(policy))
        return answer([*check_lines(found), f"warm cache: {service.warmed}.{mounts}"])


def log(text: str) -> None:
    """Print a line of ours; on a terminal in place of what say() has drawn."""
    drawn = "\r\x1b[K" * sys.stderr.isatty()
    print(f"{drawn}pysbx: {clean(text)}", file=sys.stderr)


def run_audited(path: str, script: str, **more: Any) -> Result:
    """Run a script and append one JSON line about it to the log, whether or not somebody waits.

    The line never has its text or output; a full disk stops no run.
    """
    result = sandbox.run(script, **more)
    if not path:
        return result
    hidden = ("stdout", "stderr", "files", "notes")
    entry = {name: value for name, value in vars(result).items() if name not in hidden}
    digest = hashlib.sha256(script.encode("utf-8", "surrogatepass")).hexdigest()
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"time": when, "script": digest, **entry}) + "\n")
    except OSError as error:
        log(f"the audit log {path} cannot be written: {error.strerror}")
    return result


def serve(policy: Policy, options: argparse.Namespace) -> NoReturn:
    """Serve MCP on stdio or HTTP until the client is gone or a signal comes."""
    options.token = os.environ.get("PYSBX_TOKEN", "").strip()
    if token_file := os.environ.get("PYSBX_TOKEN_FILE"):
        options.token = Path(token_file).read_text().strip()
    if not options.token.isascii():
        raise Unavailable("the token of PYSBX_TOKEN must be ASCII: no header can carry another")
    http = options.transport == "http"
    if http and options.host not in LOOPBACK and not options.token:
        raise Unavailable("beyond loopback set PYSBX_TOKEN, or PYSBX_TOKEN_FILE, to a secret")
    if not http and sys.stdin.isatty():
        log("serving MCP on stdin, as a client wants it; 'pysbx SCRIPT' runs one, Ctrl-C ends")
    service = Service(policy, options)
    probe = threading.Thread(target=service.first_spare)
    probe.start()  # while the SDK is imported
    if policy.require_sandbox or policy.backend == "none":
        probe.join()
    server = create_server(service)
    if not options.no_warm_cache:
        threading.Thread(target=service.warm_up, daemon=True).start()
    asyncio.run(serve_http(server, policy, options) if http else serve_stdio(server, service))
    service.end()


def mend_input(service: Service) -> None:
    """Replace lone surrogates on stdin: the SDK drops a message with one, and nobody is told."""
    reader, writer = os.pipe()
    source = os.fdopen(os.dup(0), "rb")
    os.dup2(reader, 0)

    def copy() -> None:
        with contextlib.suppress(BrokenPipeError), source, os.fdopen(writer, "wb") as target:
            for line in source:
                target.write(LONE.sub(lambda found: found[1] or rb"\ufffd", line))
                target.flush()
        time.sleep(2)  # by now the SDK has ended, unless nobody reads what it writes
        service.end()

    threading.Thread(target=copy, daemon=True).start()


async def serve_stdio(server: Any, service: Service) -> None:
    """Serve on stdio until the client hangs up or a signal comes."""
    mend_input(service)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, service.end, 128 + number)
    try:
        await server.run_stdio_async()
    except* BrokenPipeError:  # the client is gone
        pass


def heeding_hang_up(app: Any) -> Any:
    """Wrap an ASGI application: a client that hangs up before the answer cancels its request."""
    from starlette.responses import JSONResponse

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)  # type: ignore[no-any-return]
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

    return wrapped


async def serve_http(server: Any, policy: Policy, options: argparse.Namespace) -> None:
    """Stateless streamable HTTP: any replica answers any call; SIGTERM ends it within 5 s."""
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    @server.custom_route("/health", methods=["GET"])  # type: ignore[untyped-decorator]
    async def health(request: Request) -> JSONResponse:
        try:  # a balancer must not send calls to a replica that refuses them all
            await asyncio.to_thread(sandbox.settle, policy)
        except SandboxError as error:
            return JSONResponse({"status": "failing", "why": str(error)}, status_code=503)
        return JSONResponse({"status": "ok", "version": __version__})

    host, port = options.host, options.port
    # the SDK checks the names on loopback; those a balancer uses are unknown: there the token guards
    app = server.streamable_http_app(stateless_http=True, json_response=True, host=host)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            remedy = "choose another --host or --port"
            raise Unavailable(f"{host}:{port}: {error.strerror}; {remedy}") from None
    log(f"serving http://{host}:{port}/mcp")
    more: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": 2}
    config = uvicorn.Config(heeding_hang_up(app), host=host, port=port, **more)
    await uvicorn.Server(config).serve()


# ---- the command line


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence and exit with 125: nothing was run."""

    def error(self, message: str) -> NoReturn:
        log(f"{message}; see 'pysbx --help'")
        raise SystemExit(125)


def number(low: int, high: int, text: str) -> int:
    """Parse a whole number within bounds."""
    if text.isascii() and text.isdigit() and low <= int(text) <= high:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")


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
        more: dict[str, Any] = {"default": default, "metavar": kind}
        if kind == "flag":
            more = {"action": "store_true"}
        elif kind.startswith("list"):
            more = {"action": "append", "default": [], "metavar": kind[5:]}
        elif "," in kind:
            more = {"choices": kind.split(","), "default": default}
        elif ".." in kind:
            low, high = kind.split("..")
            more |= {"type": functools.partial(number, int(low), int(high)), "metavar": "N"}
        p.add_argument(name, help=text, **more)
    return p


def contradiction(o: argparse.Namespace) -> str:
    """Return what is wrong with options that are right one by one, or ""."""
    backend, http = o.sandbox_backend, o.transport == "http"
    none, docker = backend == "none", backend == "docker"
    once, opens, packages = o.script or o.check, o.network == "on", vars(o)["with"]
    version = re.fullmatch(r"(3\.\d{1,2}(\.\d{1,2})?)?", o.python_version)
    wrong: dict[str, object] = {
        f"--python-version {o.python_version!r} is not one such as 3.13 or 3.13.1": not version,
        "--default-timeout is more than --max-timeout": o.default_timeout > o.max_timeout,
        "--pass-env takes the name of a variable, not NAME=VALUE": "=" in "".join(o.pass_env),
        "--sandbox-backend none contradicts --require-sandbox": none and o.require_sandbox,
        "--files-out and --with need a SCRIPT": (o.files_out or packages) and not o.script,
        "--transport http serves: it takes neither SCRIPT nor --check": http and once,
        "--check takes no SCRIPT": o.check and o.script,
        "--docker-runtime needs --sandbox-backend docker": o.docker_runtime and not docker,
        "--sandbox-backend none cannot close the network: leave --network out": none and not opens,
    }
    return next(iter(those(wrong)), "")


def say(text: str) -> None:
    """Tell how far a run is: on a terminal in one line, drawn anew, and gone when the script runs."""
    if text.startswith("warning"):  # before anything runs
        log(text)
    elif sys.stderr.isatty():
        words = f"pysbx: {text} ..." if text != "running" else ""
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def run_once(policy: Policy, options: argparse.Namespace) -> int:
    """Run SCRIPT with its streams and exit code as ours; our own lines go to stderr as 'pysbx: …'."""
    reader, writer = os.pipe()
    stopped: list[int] = []

    def stop(number: int, frame: object = None) -> None:
        stopped.append(number)
        os.write(writer, b"x")

    def write() -> None:
        try:
            for fd, data in iter(pieces.get, (0, b"")):
                while data:
                    data = data[os.write(fd, data) :]
        except OSError as error:  # nobody reads any more, or it cannot be written
            if not isinstance(error, BrokenPipeError):
                log(f"the script was ended: its output cannot be written: {error.strerror}")
            stop(signal.SIGPIPE)

    script = read_script(options.script)
    # on a thread: a reader that stops does not hold the script past its limits
    pieces: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    target, limit = Path(options.files_out), options.default_timeout
    if options.files_out:
        with contextlib.suppress(OSError):  # the next line says what is wrong
            target.mkdir(parents=True, exist_ok=True)
        if not target.is_dir() or not os.access(target, os.W_OK):
            raise Unavailable(f"--files-out {target} is not a directory that can be written")
    more: dict[str, Any] = {"cancel": reader, "progress": say, "policy": policy, "timeout": limit}
    more["echo"] = lambda stream, data: pieces.put((stream + 1, data))
    more["dependencies"] = vars(options)["with"]
    result = run_audited(options.audit_log, script, **more)
    pieces.put((0, b""))
    while writing.is_alive() and not stopped:
        writing.join(0.1)
    lines = ending(result, limit, policy.max_output_bytes, stopped)
    lines += [note for note in result.notes if not note.startswith("warning")]
    if options.files_out and result.files:
        failed = list(write_files(result, target))
        lines += [*failed, f"{len(result.files) - len(failed)} files written to {target}"]
    elif result.files:
        lines.append(f"files left by the script: {len(result.files)}; --files-out DIR keeps them")
    for line in lines:
        log(line)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # nothing is lost from here on
    if not stopped:
        sandbox.after_run(policy, spare=False)  # compiles what was installed, once
    return 124 if result.status == "timeout" else 128 + stopped[0] if stopped else result.exit_code


def read_script(name: str) -> str:
    """Return the text of the file, or of stdin for '-'; raise InvalidScript if it is not UTF-8."""
    raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        why = f"{error.reason} at byte {error.start}"
        raise InvalidScript(f"the script is not UTF-8 text: {why}") from None


def ending(result: Result, limit: int, most: int, stopped: list[int]) -> list[str]:
    """Return lines on how a script ended, where its own exit code does not say it all."""
    lost = result.stdout_bytes + result.stderr_bytes - most
    late, number = result.status == "timeout", result.exit_code - 128
    by_signal = f"the script was ended by signal {number} ({result.signal})"
    raises = {"memory": "--memory", "disk": "--disk"}.get(result.limit[:-6], "--max-processes")
    texts: dict[str, object] = {
        "interrupted": stopped and stopped[0] != signal.SIGPIPE,
        f"timed out after {limit} s: --default-timeout gives it more": late and not stopped,
        by_signal: result.signal and not late and not stopped,
        "--with NAME installs a package of PyPI; modules of yours need --mount and PYTHONPATH": (
            re.search("No module named|externally-managed", result.stdout + result.stderr)
        ),
        "it sees files of yours only where --mount shows them, by their absolute paths": (
            "No such file" in result.stderr
        ),
        "there is no input: put the values into the script": "EOF when read" in result.stderr,
        f"{lost:,} bytes of output were left out: --max-output-bytes keeps more": lost > 0,
        f"the {result.limit} was reached: {raises} gives it more": result.limit,
    }
    return those(texts)


def write_files(result: Result, target: Path) -> Iterator[str]:
    """Write what the script left below target, as new files of 0644; yield what failed."""
    for file in result.files:
        path = target / file.name
        try:
            if file.data is None:
                raise OSError(27, f"too large to hand on ({file.size:,} bytes)")
            if path.parent.resolve() != target.resolve() / Path(file.name).parent:
                raise OSError(40, "a link is in the way")
            if "/." in f"/{file.name}":  # .git/config, .envrc: programs obey them
                raise OSError(1, "hidden files are not written")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # it may be a link, a pipe, or executable
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as out:
                out.write(file.data)
        except OSError as error:
            yield f"the file {file.name!r} was not written: {error.strerror}"


def main() -> int:
    """Run the command line; return the exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by a launcher: no file of ours may take its place
            setattr(sys, name, open(os.devnull, mode))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # some launchers ignore it, and we inherit that
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # without a traceback
    words = parser()
    options = words.parse_args()
    if options.default_timeout == int(words.get_default("default_timeout")):  # it follows
        options.default_timeout = min(options.default_timeout, options.max_timeout)
    if wrong := contradiction(options):
        words.error(wrong)
    # over HTTP nobody can be asked, and one may not speak for all
    options.require_sandbox |= options.transport == "http" and options.sandbox_backend != "none"
    options.mounts, options.pass_env = tuple(options.mount), tuple(options.pass_env)
    for name in filter(lambda name: name not in os.environ, options.pass_env):
        log(f"warning: --pass-env {name}: there is no such variable")
    given = {"backend": options.sandbox_backend, "build": not options.no_build, **vars(options)}
    policy = Policy(**{field: given[field] for field in Policy.__dataclass_fields__})
    try:
        if options.audit_log:  # not to be missed later
            open(options.audit_log, "a").close()
        if options.check:
            found = sandbox.check(policy)
            print("\n".join(check_lines(found)))
            return int(any(f.verdict == "FAIL" for f in found))
        return run_once(policy, options) if options.script else serve(policy, options)
    except Exception as error:
        text = f"pysbx failed, please report it: {error!r}"
        if isinstance(error, OSError):
            text = f"{error.filename or 'failed'}: {error.strerror}"
        log(str(error) if isinstance(error, SandboxError) else text)
        return 125
    finally:
        sandbox.end_spares()


if __name__ == "__main__":
    sys.exit(main())
