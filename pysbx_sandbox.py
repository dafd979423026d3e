"""Run Python scripts that you do not trust, in a sandbox, with the packages they ask for.

One file, standard library only: copy it into a project, or use it as `python pysbx_sandbox.py SCRIPT`.

    from pysbx_sandbox import Policy, run
    result = run("print(6 * 7)", timeout=5, policy=Policy(network="off"))
    print(result.stdout)

What it promises: the script sees the system's programs and libraries read-only, its packages
read-only, and an empty working directory that vanishes with it; it gets no file, variable,
process or credential of yours; it is bounded in time, memory, processes, disk and output; when
`run` returns, no process of it is left. Limits of the promise: it shares the host's kernel, so a
kernel bug can break it; with network "on" it reaches whatever this machine reaches; the backend
"none" is no sandbox at all. `bwrap` (Linux) or `docker`, and `uv`, must be installed.

The text of the script is data until Python reads it: it is never rewritten, and uv never sees it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import functools
import glob
import hashlib
import itertools
import json
import os
import pwd
import re
import resource
import secrets
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, cast, get_args

__version__ = "1.0.0"
__all__ = """Policy Metadata Result Report Finding File SandboxError InvalidScript Unavailable run
    validate check read_metadata""".split()

PYTHON = "3.13"  # what a script gets unless it, or the operator, asks for another
IMAGE = "astral/uv:0.13.9-python3.13-trixie-slim"  # public, no account needed; amd64 and arm64
VOLUME = "pysbx-cache"
MB = 1 << 20
SHM_MB = 256  # /dev/shm: multiprocessing needs it, docker's default of 64 MB is too small
OPEN_FILES = 1024
SOCKET_BUFFERS = 8 * MB  # of one socket, where sysctls allow much
MAX_INODES = 200_000  # per sandbox without a memory cgroup: a tmpfs bounds bytes, not inodes
MAX_TABLES = 64 * MB  # of page tables: of 32 GB in use; the kernel walks them in some 15 ms
MAX_STORE_INODES = 500_000  # that one step may use of the cache's disk
MAX_SCRIPT, MAX_REQUIREMENTS, MAX_ENVIRONMENTS = 10 * MB, 200, 1000
MAX_PYTHONS = 20  # of some 100 MB: scripts can ask for each that was ever released
MAX_BLOCK, MAX_DOTS = MB, 300  # characters, dots in a line: tomllib is quadratic in dotted keys
MAX_FILES, MAX_FILE, MAX_FILES_TOTAL = 100, 10 * MB, 32 * MB  # what comes back from a run
MAX_ENTRIES, MAX_DEPTH = 5000, 8  # what is looked at to find it
MAX_MOUNTED = 20_000  # what is looked at of a --mount to find sockets, in some 0.1 s
START_LIMIT = 20.0  # seconds for a sandbox to reach its gate
GRACE = 1.0  # seconds for the pipes to reach their end once everything is killed
SLOW_END = 7  # looks: who has ended for so long may hold memory that no status tells of
TICK = 0.03  # seconds between two looks at the memory of a sandbox that has no cgroup
SPARE_AGE = 300.0  # seconds that a spare sandbox may wait
SANDBOX_UID = 59873  # when root starts us; no service uses it (systemd's ranges begin at 60001)
NOBODY = 65534  # in containers: Debian, Alpine and Fedora all have a passwd entry for it
HOME = "/tmp/home"
CA_FILE = "/etc/ssl/certs/ca-certificates.crt"  # where a sandbox has its CA bundle
# of Debian, Fedora, openSUSE (two), NixOS, Alpine
CA_BUNDLES = f"""{CA_FILE} /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem
    /var/lib/ca-certificates/ca-bundle.pem /etc/ssl/certs/ca-bundle.crt
    /etc/ssl/cert.pem""".split()
PROXIES = "http_proxy https_proxy all_proxy no_proxy ftp_proxy".split()
PROXIES += map(str.upper, list(PROXIES))
NOT_PUBLIC = """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12
    192.0.0.0/24 192.168.0.0/16 198.18.0.0/15 224.0.0.0/4 240.0.0.0/4""".split()  # RFC 6890
# the operator's settings that reach uv, and only uv
UV_SETTINGS = r"""UV_DEFAULT_INDEX UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS NETRC
    UV_INDEX_STRATEGY UV_INSECURE_HOST UV_NATIVE_TLS UV_SYSTEM_CERTS UV_HTTP_TIMEOUT UV_OFFLINE
    UV_PYTHON_INSTALL_MIRROR UV_PYTHON_DOWNLOADS_JSON_URL SSL_CERT_FILE
    UV_INDEX_\w+_(?:USERNAME|PASSWORD)""".split()
# Unbuffered: what was printed before a timeout is in the result. The fault handler names the line
# of a crash. The plot backend is written by PREPARE; without matplotlib nobody reads the variable.
# A BLAS pool as wide as a big host would meet the process limit.
_ENV = f"""HOME={HOME} USER=sandbox LOGNAME=sandbox TMPDIR=/tmp LANG=C.UTF-8 PYTHONUTF8=1
    PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1
    PYTHONDONTWRITEBYTECODE=1 MPLBACKEND=module://_pysbx_plots
    OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2 MKL_NUM_THREADS=2"""
SCRIPT_ENV = dict(pair.split("=") for pair in _ENV.split())

# The gate of a native sandbox: set limits, wait for an interpreter, become it. No fork, no file of
# ours. Arguments: blocks of 512 bytes a file may have, processes (dash has -p for it, bash -u).
# After a "w" the interpreter is to wait: script.py is a named pipe until the script is there, and
# Python opens it when it has started (see Sandbox.start_python).
GATE = r"""{ ulimit -n 1024; ulimit -l 64; [ -z "$1" ] || ulimit -f "$1"
[ -z "$2" ] || ulimit -u "$2" || ulimit -p "$2"; } 2>/dev/null
: >script.py; echo ready; read -r limit python || exit 0; ulimit -t "${limit#w}" 2>/dev/null
[ "$limit" = "${limit#w}" ] || { mv script.py .script.py && mkfifo script.py; }
PATH="${python%/*}:$PATH"; exec "$python" "$PWD/script.py" </dev/null"""
# The gate of a container. The script follows its length on stdin, which stays open: its end means
# that the server is gone, and kills everything. What the script leaves running is killed too;
# then a last line on both streams, with a word that the script never saw, tells how it ended.
DOCKER_GATE = r"""exec 3<&0; echo ready
read -r limit length word python <&3 || exit 0
(mkdir -p "$HOME"; head -c "$length" <&3 >script.py
(read -r _ <&3; kill -9 -1) &
exec 3<&-; PATH="${python%/*}:$PATH"
exec timeout -s KILL "$limit" "$python" "$PWD/script.py" </dev/null); code=$?
exec 4>&2 2>/dev/null; kill -9 -1
left=0; for f in * .[!.]*; do [ -e "$f" ] && [ "$f" != script.py ] && left=1 && break; done
count() { while read -r name n; do [ "$name" = "$1" ] && echo "$n"; done; }
memory=$(cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control | count oom_kill)
processes=$(cat /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events | count max)
full=$(df -P . /tmp | while read -r _ _ _ n _; do [ "$n" = 0 ] && echo 1; done | sort -u)
for stream in 1 4; do printf '\0%s %s %s %s %s %s\n' "$word" $code $left "${memory:-0}" \
"${processes:-0}" "${full:-0}" >&$stream; done; read -r _ <&3"""
# One environment, from nothing: uv gets a stub with the requirements, never the script.
# stdin: the stub. Arguments: uv, environment, its final name, uv's options.
# The hook that uv puts in for its own sake goes: every start of an interpreter would pay for it.
PREPARE = r"""uv=$1 env=$2 final=$3; shift 3
trap '[ $? = 0 ] || { chmod -R u+rwX "$env"; rm -rf "$env"; } 2>/dev/null' EXIT
mkdir -p "$HOME"; cd "$HOME" && cat >stub.py || exit 3
if [ -d "$final" ]; then env=$final; else
"$uv" venv -q --no-project --relocatable -p "$python" "$env" || exit 3
rm -f "$env"/lib/python*/site-packages/_virtualenv.p*
[ "$(wc -l <stub.py)" -le 2 ] || "$uv" pip install -p "$env" "$@" -r stub.py || exit 4
site=$(echo "$env"/lib/python*/site-packages)
[ ! -d "$site/matplotlib" ] || printf %s "$PLOTS" >"$site/_pysbx_plots.py"
[ -z "$final" ] || { mv -T "$env" "$final" 2>/dev/null || [ -d "$final" ] || exit 5; env=$final; }
fi; for d in "$env"/lib/python*/site-packages/*.dist-info; do [ ! -d "$d" ] || echo "${d##*/}"; done"""
RESOLVE = r"""uv=$1; shift; mkdir -p "$HOME"; cd "$HOME" && cat >stub.py || exit 3
exec "$uv" pip compile -q --no-header --no-annotate -p "$python" "$@" stub.py"""
COMPILE = r"""exec "$python" -I -S -m compileall -q -j 2 -x '[\\/]tests?[\\/]' "$1" """
PLOTS = """# A matplotlib backend without a display: show() saves the open figures as files.
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
class FigureManager(FigureManagerBase):
    show = lambda self: show()
class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager
def show(*args, **kwargs):
    import itertools, os, matplotlib.pyplot as plt
    for number in plt.get_fignums():
        names = (f"figure-{n}.png" for n in itertools.count(1))
        plt.figure(number).savefig(next(name for name in names if not os.path.exists(name)))
    plt.close("all")
"""


class SandboxError(Exception):
    """Nothing was run; the message says what was tried, why it failed and what to do."""


class InvalidScript(SandboxError):
    """The script, its metadata or its dependencies cannot be used: nothing will run."""


class Unavailable(SandboxError):
    """The sandbox, uv, an interpreter or the network is missing: nothing can run here."""


Bind = tuple[str, str, bool]  # on the host, inside, writable
Env = dict[str, str] | None  # None: that of this process
Fd = int | None  # a descriptor
Backend = Literal["native", "docker", "none"]
Say = Callable[[str], None]
Echo = Callable[[int, bytes], None]


@dataclass(frozen=True)
class Policy:
    """What a script may use. Sizes are in MB (2**20 bytes), times in seconds."""

    backend: Backend = "native" if sys.platform == "linux" else "docker"
    require_sandbox: bool = True  # refuse rather than fall back to "none"
    network: Literal["on", "off", "public"] = "on"
    python_version: str = ""  # "3.12", "3.12.1"; "" prefers PYTHON and takes what there is
    memory: int = 2048
    disk: int = 512  # of the working directory; /tmp gets as much again
    max_processes: int = 256  # threads count
    max_output_bytes: int = 102_400  # over both streams, first and last part kept
    install_timeout: float = 300.0
    build: bool = True  # build from source, in a sandbox, where no wheel exists
    cache_size: int = 8192
    mounts: tuple[str, ...] = ()  # "HOST" or "HOST:rw"
    pass_env: tuple[str, ...] = ()
    uv_path: str = ""
    docker_path: str = "docker"
    docker_image: str = IMAGE
    docker_runtime: str = ""

    def __post_init__(self) -> None:
        numbers = (self.memory, self.disk, self.max_processes, self.install_timeout)
        tuples = isinstance(self.mounts, tuple) and isinstance(self.pass_env, tuple)
        rules = {
            "backend must be 'native', 'docker' or 'none'": self.backend in get_args(Backend),
            "network must be 'on', 'off' or 'public'": self.network in ("on", "off", "public"),
            "memory, disk, max_processes and install_timeout must be over 0": min(numbers) > 0,
            "max_output_bytes must be 2 or more": self.max_output_bytes >= 2,
            "mounts and pass_env must be tuples of text": tuples,
        }
        for rule in (rule for rule, holds in rules.items() if not holds):
            raise ValueError(f"Policy: {rule}")


@dataclass(frozen=True)
class Metadata:
    """The PEP 723 block of a script; see read_metadata."""

    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None
    warnings: tuple[str, ...] = ()
    exclude_newer: str = ""  # the one setting of [tool.uv] that is obeyed


@dataclass(frozen=True)
class Interpreter:
    """A Python; `path` is as the sandbox sees it, `prefix` must be bound there unless ""."""

    path: str
    version: str
    prefix: str = ""
    note: str = ""  # why it is not the one that was asked for


@dataclass(frozen=True)
class Environment:
    """Installed packages ("name==version") and the interpreter that sees them."""

    python: str
    packages: tuple[str, ...] = ()
    seconds: float = 0.0  # spent on making it

    @property
    def key(self) -> str:
        """The name of its directory, and of its record."""
        return self.python.split("/")[-3]


@dataclass(frozen=True)
class File:
    """A file that the script left: path below its working directory, size in bytes."""

    name: str
    size: int
    data: bytes | None  # None: larger than MAX_FILE, or over MAX_FILES_TOTAL


@dataclass(frozen=True)
class Result:
    """What a script did. Output is text: undecodable bytes replaced, the middle left out if long."""

    status: Literal["exited", "timeout", "cancelled"]
    exit_code: int  # 128 + N when signal N ended it
    limit: str  # "memory limit", "process limit", "disk limit", or ""
    stdout: str
    stderr: str
    stdout_bytes: int  # written by the script, kept or not
    stderr_bytes: int
    seconds: float  # the script's own time
    install_seconds: float
    isolation: str  # one line: what confined it, and what enforced the limits
    python: str
    packages: tuple[str, ...]
    notes: tuple[str, ...]  # warnings about metadata, interpreter, files
    files: tuple[File, ...]

    @property
    def signal(self) -> str:
        """Name of the signal that ended the script ("SIGSEGV"), or ""."""
        with contextlib.suppress(ValueError):
            return signal.Signals(self.exit_code - 128).name
        return ""


@dataclass(frozen=True)
class Report:
    """What validate found; `problems` is empty when the script could run."""

    python: str
    packages: tuple[str, ...]
    warnings: tuple[str, ...]
    problems: tuple[str, ...]


Verdict = Literal["PASS", "CAUTION", "FAIL"]


@dataclass(frozen=True)
class Finding:
    """One line of check(): what was looked at, how it is, and the remedy if it is not well."""

    verdict: Verdict
    subject: str
    text: str


# ---- the script's metadata (https://packaging.python.org/en/latest/specifications/inline-script-metadata/)

_OPENING = re.compile(r"# /// ([a-zA-Z0-9-]+)")
_NEARLY = re.compile(r"(\s*)#+\s*/{2,4}\s*(?i:script|pyproject)(?:\W*|\W+#.*)")
# of TOML, on one line; closed or not: else every quote would be tried to the line's end
_STRING = re.compile(r"""(?m)"(?:\\.|[^"\\\n])*(?:"|\\?$)|'[^'\n]*(?:'|$)""")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_RELEASE = r"v?(?:\d+!)?\d+(?:\.\d+)*"
_V = (
    rf"{_RELEASE}(?:[-_.]?(?:alpha|beta|preview|pre|rc|a|b|c)[-_.]?\d*)?"
    r"(?:-\d+|[-_.]?(?:post|rev|r)[-_.]?\d*)?(?:[-_.]?dev[-_.]?\d*)?"
)
_CLAUSE = (
    rf"(?:[!=]= *{_RELEASE}\.\*|(?:===?|!=) *{_V}(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?"
    rf"|(?:~= *(?=[^.,]*\.\d)|[<>]=? *){_V})"
)
_SPECIFIERS = re.compile(rf"(?i: *{_CLAUSE} *(?:, *{_CLAUSE} *)*,? *)")
_REQUIREMENT = re.compile(
    rf"(?i:{_NAME} *(?:\[ *(?:{_NAME} *(?:, *{_NAME} *)*)?\] *)?"
    rf"(?:\({_SPECIFIERS.pattern}\)|{_SPECIFIERS.pattern}|@ *(?P<url>[^ ;]+(?= |$)|[^ ]+$))? *)"
    r"(?:;(?P<marker>[^;]*))?"
)
# no addresses, no names of this host: uv would ask them
_HOST = r"(?:[A-Za-z0-9-]+\.)+(?!(?i:localhost)\b)[A-Za-z][A-Za-z0-9-]*"
_WHEEL_URL = re.compile(rf"(?a)https://{_HOST}(?::\d+)?/[\w.~%+/=&!-]*\.whl(?:#[\w.=&-]*)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]{5,18}(?:Z|[+-]\d\d:\d\d)?)?")
_VARIABLES = """python_version python_full_version os_name sys_platform platform_release
    platform_system platform_version platform_machine platform_python_implementation
    implementation_name implementation_version extra""".split()
_OPERAND = rf"""(?:(?:{"|".join(_VARIABLES)})\b|'[^'"$\\]*'|"[^'"$\\]*")"""
_MARKER = re.compile(rf" *{_OPERAND} *(?:[<>]=?|===?|!=|~=|\bin\b|\bnot +in\b) *{_OPERAND} *")


def read_metadata(script: str) -> Metadata:
    """Read the `# /// script` block; raise InvalidScript where it breaks the specification.

    Lines end at CR LF, CR or LF only; a byte order mark is skipped; takes linear time. What the
    specification says to ignore but an author hardly meant is in `warnings`.
    """
    if "///" not in script:
        return Metadata()
    blocks, warnings = _find_blocks(re.split(r"\r\n|\r|\n", script.removeprefix("\ufeff")))
    if len(warnings) > 10:
        warnings[10:] = [f"and {len(warnings) - 10} more of this kind"]
    if len(blocks) > 1:
        where = ", ".join(str(line) for line, _ in blocks[:5])
        many = f"{len(blocks)} metadata blocks of type 'script' (lines {where})"
        raise InvalidScript(f"the script has {many}, PEP 723 allows one: merge them")
    if not blocks:
        return Metadata(warnings=tuple(warnings))
    line, content = blocks[0]
    text = "\n".join(content)
    small = len(text) <= MAX_BLOCK
    bare = text if not small or re.search("\"{3}|'{3}", text) else _STRING.sub("", text)
    dotted = bare.count(".") > 10 * MAX_DOTS
    if not small or dotted or any(row.count(".") > MAX_DOTS for row in bare.split("\n")):
        most = f"{MAX_BLOCK:,} characters, {MAX_DOTS} dots in a line or {10 * MAX_DOTS} in all"
        raise InvalidScript(f"the metadata block at line {line} has more than {most}")
    try:  # the blank lines make the reader's line numbers those of the script
        data = tomllib.loads("\n" * line + text)
    except (ValueError, RecursionError) as error:
        why = _printable(f"{error or 'nested too deeply'}", 300)
        raise InvalidScript(f"the metadata block at line {line} is not TOML: {why}") from None
    return _check_metadata(data, line, warnings)


def _find_blocks(lines: list[str]) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """Return the blocks of type script as (line number of the opening, content), and warnings."""
    blocks, warnings, at = [], [], 0
    while at < len(lines):
        opening = _OPENING.fullmatch(lines[at])
        kind = opening[1] if opening else ""
        if nearly := not kind.islower() and _NEARLY.fullmatch(lines[at]):
            why = "is indented" if nearly[1] else "is not exactly '# /// script'"
            warnings.append(f"line {at + 1} looks like a metadata block but {why}: ignored")
        end = at + 1
        while opening and end < len(lines) and (lines[end] == "#" or lines[end][:2] == "# "):
            end += 1
        content = [text[2:] for text in lines[at + 1 : end]]
        if kind == "pyproject":
            warnings.append(f"line {at + 1}: blocks of type 'pyproject' are ignored, use 'script'")
        elif kind == "script" and "///" in content:
            close = len(content) - 1 - content[::-1].index("///")
            blocks.append((at + 1, content[:close]))
            end = at + close + 2  # below it may stand the next
        elif kind == "script":
            warnings.append(f"the metadata block at line {at + 1} has no closing '# ///': ignored")
        at = end  # behind its last closing line a run holds no other: this keeps the scan linear
    return blocks, warnings


def _check_metadata(data: dict[str, object], line: int, warnings: list[str]) -> Metadata:
    requirements = data.get("dependencies", [])
    requires, tool = data.get("requires-python"), data.get("tool", {})
    where = f"the metadata block at line {line}: "
    if not isinstance(requirements, list) or any(not isinstance(r, str) for r in requirements):
        raise InvalidScript(where + "'dependencies' must be a list of strings")
    if requires is not None and not isinstance(requires, str):
        raise InvalidScript(where + "'requires-python' must be a string such as '>=3.11'")
    if not isinstance(tool, dict):
        raise InvalidScript(where + "'tool' must be a table")
    if requires and requires.strip(" \t") and not _SPECIFIERS.fullmatch(_plain(requires) or "?"):
        why = f"'requires-python' is {_shown(requires)}, not a version range such as '>=3.11'"
        raise InvalidScript(where + why)
    if unknown := [k for k in data if k not in ("dependencies", "requires-python", "tool")]:
        names = ", ".join(map(_shown, unknown[:10]))
        warnings.append(f"unknown keys in the metadata block are ignored: {names}")
    ours = {"dependencies", "requires-python"}
    tables = [*data.items(), *((f"tool.{name}", table) for name, table in tool.items())]
    if lost := [name for name, table in tables if isinstance(table, dict) and ours & table.keys()]:
        names = ", ".join(map(_shown, lost[:10]))
        warnings.append(f"'dependencies' and 'requires-python' must stand before {names}: ignored")
    uv = tool.get("uv", {})
    given = uv.pop("exclude-newer", "") if isinstance(uv, dict) else ""
    newer = str(given) if isinstance(given, str) or hasattr(given, "isoformat") else "?"
    if uv:
        warnings.append("[tool.uv] settings in the script are not obeyed (but exclude-newer is)")
    if newer and not _DATE.fullmatch(newer):
        raise InvalidScript(where + "'exclude-newer' is not a date")
    checked = check_requirements(requirements)
    return Metadata(checked, requires, tuple(warnings), newer.replace(" ", "T"))


def check_requirements(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements; raise InvalidScript unless each is a plain PEP 508 requirement.

    An accept-list: no options, paths, variables or line ends; of URLs only `https://….whl`.
    """
    checked = tuple(requirements)
    if isinstance(requirements, str) or any(not isinstance(r, str) for r in checked):
        raise InvalidScript("dependencies must be a list of strings")
    for requirement in checked:
        found = _REQUIREMENT.fullmatch(_plain(requirement))
        holds = found and (found["marker"] is None or _marker_holds(found["marker"]))
        if found and holds and (not found["url"] or _WHEEL_URL.fullmatch(found["url"])):
            continue
        hint = "'name', 'name>=1.2' or 'name[extra]'"
        if found and found["url"] or re.search(r"git\+|://", requirement[:1000]):
            hint = "'name>=1.2' or 'name @ https://….whl' (no git, http, file or source URLs)"
        why = f"{_shown(requirement)} is not a requirement to use here"
        raise InvalidScript(f"{why}: write {hint}")
    return checked


def _plain(text: str) -> str:
    """Return printable ASCII on one line, blanks folded; "" for other text and for too much of it."""
    text = re.sub("[ \t]+", " ", text).strip(" ")
    return text if text.isascii() and text.isprintable() and len(text) <= 1000 else ""


def _marker_holds(marker: str) -> bool:
    """Tell whether an environment marker is well formed, by folding it until nothing is left."""
    text, before = _MARKER.sub("\0", marker), ""
    while text != before and len(text) < 200:
        before, text = text, re.sub(r" *\0 *(?:and|or) *\0 *| *\( *\0 *\) *", "\0", text)
    return text.strip() == "\0"


def _printable(text: str, most: int) -> str:
    """Return untrusted text for a message: on one line, printable, cut."""
    text = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _shown(text: str) -> str:
    return f"'{_printable(text, 80)}'"


# ---- what a sandbox is made of: pure

# name, number on x86-64, on aarch64 ("-": none), from the kernel's headers
_DENIED = """ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272,
process_madvise 440 440, pidfd_getfd 438 438, add_key 248 217, request_key 249 218, keyctl 250 219,
bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, io_uring_setup 425 425,
io_uring_enter 426 426, io_uring_register 427 427, unshare 272 97, setns 308 268, mount 165 40,
umount2 166 39, pivot_root 155 41, chroot 161 51, open_tree 428 428, move_mount 429 429,
fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442,
statmount 457 457, listmount 458 458, open_tree_attr 467 467, name_to_handle_at 303 264,
open_by_handle_at 304 265, fanotify_init 300 262, quotactl 179 60, quotactl_fd 443 443,
lookup_dcookie 212 18, init_module 175 105, finit_module 313 273, delete_module 176 106,
kexec_load 246 104, kexec_file_load 320 294, reboot 169 142, swapon 167 224, swapoff 168 225,
acct 163 89, syslog 103 116, settimeofday 164 170, clock_settime 227 112, clock_adjtime 305 266,
adjtimex 159 171, sethostname 170 161, setdomainname 171 162, vhangup 153 58, personality 135 92,
move_pages 279 239, migrate_pages 256 238, nfsservctl 180 42, iopl 172 -, ioperm 173 -,
modify_ldt 154 -, uselib 134 -, _sysctl 156 -, ustat 136 -, sysfs 139 -, create_module 174 -,
vserver 236 -, io_setup 206 0"""
# memory that neither an rlimit nor a look at /proc sees
_UNSEEN = """, vmsplice 278 75, memfd_create 319 279, memfd_secret 447 447, shmget 29 194, msgget 68 186,
semget 64 190"""
# load OFFSET | compare K, where to if so, where to if not: "." is on, "+N" skips N. clone3 hides
# its flags behind a pointer; without it libc falls back to clone. ioctl's request is compared in
# 32 bits, as the kernel reads it (TIOCSTI, TIOCLINUX). Core dumps stay off. Socket families: unix, inet, inet6, and
# netlink with protocol 0, which getaddrinfo needs. 0x7E020000: every CLONE_NEW* that clone knows.
_FILTER = """ld 4 | jeq {arch} . kill | ld 0 | {x32} {denied} jeq 435 enosys . |
jeq {clone} . +2 | ld 16 | jset 0x7E020000 eperm allow |
jeq {setrlimit} . +2 | ld 16 | jeq 4 eperm allow |
jeq {prlimit} . +6 | ld 24 | jeq 4 . allow | ld 32 | jeq 0 . eperm | ld 36 | jeq 0 allow eperm |
jeq {ioctl} . +3 | ld 24 | jeq 0x5412 eperm . | jeq 0x541C eperm allow |
jeq {socket} +1 . | jeq {socketpair} . allow | ld 16 | jeq 1 allow . | jeq 2 allow . |
jeq 10 allow . | jeq 16 . family | ld 32 | jeq 0 allow family"""
_OWN = """arch 0xC000003E 0xC00000B7, clone 56 220, ioctl 16 29, socket 41 198, socketpair 53 199,
setrlimit 160 164, prlimit 302 261"""
_ANSWERS = {"allow": 0x7FFF0000, "eperm": 0x50001, "enosys": 0x50026, "family": 0x50061}
_ANSWERS["kill"] = 0x80000000


@functools.cache
def seccomp_filter(machine: str, *, memory_is_limited: bool) -> bytes:
    """Return the BPF program for bwrap's --seccomp; raise Unavailable for other machines.

    It denies by list and allows the rest: an allow-list breaks numpy-class programs.
    """
    column = {"x86_64": 1, "aarch64": 2}.get(machine, 0)
    if not column:
        raise Unavailable(f"there is no system call filter for {machine}: use docker")
    rows = [row.split() for row in (_DENIED + _UNSEEN * (not memory_is_limited)).split(",")]
    denied = "".join(f"jeq {row[column]} eperm . | " for row in rows if row[column] != "-")
    own = {row[0]: row[column] for row in map(str.split, _OWN.split(","))}
    own["x32"] = "jset 0x40000000 kill . |" if machine == "x86_64" else ""
    code = [step.split() for step in _FILTER.format(denied=denied, **own).split("|")]
    ends = {name: len(code) + i for i, name in enumerate(_ANSWERS)}
    program = b""
    for at, (op, k, *targets) in enumerate(code):
        jumps = [ends[t] - at - 1 if t in ends else int(t.strip("+.") or 0) for t in targets]
        number = {"ld": 0x20, "jeq": 0x15, "jset": 0x45}[op]
        program += struct.pack("<HBBI", number, *(jumps or (0, 0)), int(k, 0))
    return program + b"".join(struct.pack("<HBBI", 6, 0, 0, a) for a in _ANSWERS.values())


def docker_seccomp() -> str:
    """Return the same filter as a profile for docker, in its format."""
    rules: list[dict[str, object]] = []

    def deny(names: list[str], *tests: tuple[int, str, int, int], answer: str = "eperm") -> None:
        args = [dict(zip(keys, test, strict=True)) for test in tests]
        code = _ANSWERS[answer] & 0xFFFF  # of Linux, where the engine is; macOS has other numbers
        rules.append({"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": code, "args": args})

    keys, sockets = ("index", "op", "value", "valueTwo"), ["socket", "socketpair"]
    other, masked = "SCMP_CMP_NE", "SCMP_CMP_MASKED_EQ"
    deny([row.split()[0] for row in _DENIED.split(",")])
    deny(["clone3"], answer="enosys")
    for flag in (1 << bit for bit in range(32) if 0x7E020000 >> bit & 1):
        deny(["clone"], (0, masked, flag, flag))
    deny(["setrlimit"], (0, masked, 0xFFFFFFFF, 4))  # the kernel reads 32 bits
    deny(["prlimit64"], (1, masked, 0xFFFFFFFF, 4), (2, other, 0, 0))
    for request in (0x5412, 0x541C):
        deny(["ioctl"], (1, masked, 0xFFFFFFFF, request))
    for family in set(range(64)) - {1, 2, 10, 16}:
        deny(sockets, (0, masked, 0xFFFFFFFF, family), answer="family")
    deny(sockets, (0, masked, 0xFFFFFFFF, 16), (2, other, 0, 0), answer="family")
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


@dataclass(frozen=True)
class Spec:
    """What one sandbox is made of; two equal ones are interchangeable until they are used."""

    policy: Policy
    binds: tuple[Bind, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()  # below /etc
    env: tuple[tuple[str, str], ...] = ()
    program: tuple[str, ...] = (GATE,)  # for sh -c


@functools.cache
def host_shape(root: Path = Path("/")) -> list[str]:
    """Return bwrap options that show the system's programs as this host lays them out.

    `root` is a parameter so that a directory can stand for a host in a test.
    """
    options: list[str] = []
    for name in "usr bin sbin lib lib32 lib64 libx32 nix/store gnu/store".split():
        entry = root / name
        if entry.is_symlink():  # the host's own text: an absolute one would be resolved too early
            options += ["--symlink", os.readlink(entry), f"/{name}"]
        elif entry.is_dir():
            options += ["--ro-bind", str(entry), f"/{name}"]
    for name in "ld.so.cache alternatives localtime fonts services protocols".split():
        if os.path.exists(real := os.path.realpath(root / "etc" / name)):
            options += ["--ro-bind", real, f"/etc/{name}"]
    return options


def etc_files(network: str, root: Path = Path("/")) -> dict[str, bytes]:
    """Return the /etc of a sandbox; resolv.conf is read here, as it is often a link into /run."""
    files = {"hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n"}
    files["group"] = "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"
    files["passwd"] = f"root:x:0:0::/:/bin/sh\nsandbox:x:1000:1000:sandbox:{HOME}:/bin/sh\n"
    files["passwd"] += "nobody:x:65534:65534::/:/bin/false\n"  # the owner of what is the host's
    files["nsswitch.conf"] = "passwd: files\ngroup: files\nhosts: files dns\n"
    if network == "public":
        files["resolv.conf"] = "nameserver 10.0.2.3\n"  # slirp4netns, which asks the host's
    elif network == "on":
        with contextlib.suppress(OSError):
            files["resolv.conf"] = (root / "etc/resolv.conf").read_text(errors="replace")
    return {name: text.encode() for name, text in files.items()}


def bwrap_options(spec: Spec, data: dict[str, int], help_text: str) -> list[str]:
    """Return bwrap's options; `data` has the descriptors of the files below /etc.

    Every destination is ours and lies on a tmpfs that no earlier run could write, which makes
    CVE-2026-87766 (links followed while mounts are set up) harmless with an old bwrap. The order
    matters: tmpfs, then what lies on them, then read-only.
    """
    disk, shm = spec.policy.disk * MB, SHM_MB * MB
    options = f"""--unshare-all --unshare-user {"--share-net" if spec.policy.network == "on" else ""}
        {"--disable-userns" if "--disable-userns" in help_text else ""} --uid 1000 --gid 1000
        --hostname sandbox --cap-drop ALL --new-session --die-with-parent""".split()
    options += host_shape()
    options += f"""--proc /proc --dev /dev --perms 1777 --size {shm} --tmpfs /dev/shm
        --perms 1777 --size {disk} --tmpfs /tmp --perms 0700 --dir {HOME}
        --perms 0700 --size {disk} --tmpfs /work""".split()
    for name, fd in data.items():
        options += ["--ro-bind-data", str(fd), f"/etc/{name}"]
    for source, target, writable in spec.binds:
        options += ["--bind" if writable else "--ro-bind", source, target]
    for name in filter(os.path.exists, ("/proc/keys", "/proc/key-users")):  # no namespace has them
        options += ["--ro-bind", "/dev/null", name]
    return options + "--remount-ro /proc --remount-ro /dev --remount-ro / --chdir /work".split()


def _server() -> str:
    """Return the label of this server's containers; see _sweep."""
    return f"{os.uname().nodename}:{os.getpid()}:{_start_time(os.getpid())}"


def docker_argv(spec: Spec, name: str, seccomp: str) -> list[str]:
    """Return the arguments of docker that start a container at its gate."""
    policy, uid = spec.policy, NOBODY
    network = "bridge" if spec.policy.network == "on" else "none"
    size, shm = f"size={policy.disk}m,uid={uid},gid={uid}", max(policy.disk, SHM_MB) * MB
    options = f"""run -i --rm --init --pull never --name {name} --label pysbx={_server()}
        --network {network} --read-only --cap-drop ALL --security-opt no-new-privileges=true
        --security-opt seccomp={seccomp} --user {uid}:{uid} --pids-limit {policy.max_processes + 8}
        --memory {policy.memory}m --memory-swap {policy.memory}m --cpus 1 --oom-score-adj 1000
        --ipc private --shm-size {SHM_MB}m --hostname sandbox --log-driver none --stop-timeout 1
        --no-healthcheck --tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777,{size}
        --tmpfs /work:rw,exec,nosuid,nodev,mode=0700,{size} --ulimit core=1:1
        --ulimit nofile={OPEN_FILES}:{OPEN_FILES} --ulimit fsize={shm}:{shm} --workdir /work
        --entrypoint sh""".split()
    options += ["--runtime", policy.docker_runtime] if policy.docker_runtime else []
    for source, target, writable in spec.binds:
        kind, flag = "volume" if source == VOLUME else "bind", "" if writable else ",readonly"
        # a script sees environments, not what others fetched
        for hidden in ("cache", "new") if source == VOLUME and not writable else ():
            options += ["--tmpfs", f"{target}/{hidden}:ro,size=4k,mode=0700"]
        options += ["--mount", f"type={kind},src={source},dst={target}{flag}"]
    client = docker_environment(spec)
    for variable, value in {**dict.fromkeys(PROXIES, ""), **dict(spec.env)}.items():
        by_name = client.get(variable) == value  # then it is in no command line
        options += ["--env", variable if by_name else f"{variable}={value}"]
    return [*options, policy.docker_image, "-c", *spec.program]


def docker_environment(spec: Spec) -> dict[str, str]:
    """Return the environment of the docker client: its own, and what it hands on by name."""
    return {**dict(spec.env), **os.environ}


# what bwrap prints: what it means: what to do
_BWRAP_SAYS = r"""
uid map: Permission denied|RTM_NEWADDR : user namespaces are denied to bwrap (AppArmor, as on \
Ubuntu 24.04) : install apparmor-profiles and load its bwrap-userns-restrict for /usr/bin/bwrap
max_.*namespaces|No space left : user namespaces are limited to none : raise the sysctl \
user.max_user_namespaces
No permissions to create|namespace failed : user namespaces are not allowed (inside a container, \
or by a kernel setting) : use --sandbox-backend docker, or start the outer container with \
seccomp=unconfined and systempaths=unconfined
mount proc|make / slave|mount devpts|pivot_root : a fresh /proc cannot be mounted (inside a \
container) : use --sandbox-backend docker, or start the outer container with systempaths=unconfined
Unknown option : this bwrap is too old : install bubblewrap 0.7 or newer
PR_SET_SECCOMP : the kernel refuses the system call filter : use --sandbox-backend docker, or a \
kernel with CONFIG_SECCOMP_FILTER
execvp|source path : a program, its loader or a directory of this host cannot be shown : use \
--sandbox-backend docker, and report the layout of this host
""".replace("\\\n", "")


def explain_bwrap(stderr: str) -> str:
    """Turn what bwrap printed before it gave up into one sentence with the remedy."""
    said = " ".join(stderr.split())[-200:] or "nothing"
    for line in _BWRAP_SAYS.strip().splitlines():
        pattern, reason, remedy = line.split(" : ")
        if re.search(pattern, stderr):
            return f"bwrap cannot make a sandbox, {reason}; {remedy} (it said: {said})"
    return f"bwrap cannot make a sandbox; look at 'bwrap --version' (it said: {said})"


# ---- this host: directories, programs, control groups


def _drop() -> dict[str, Any]:
    """Return how Popen gets away from root, which starts native sandboxes under another uid."""
    root = os.geteuid() == 0
    return {"user": SANDBOX_UID, "group": SANDBOX_UID, "extra_groups": []} if root else {}


@functools.cache
def _dropping(program: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the same as words before a program, or as options of Popen: these cost a fork of us."""
    setpriv = shutil.which("setpriv")
    ids = f"--reuid={SANDBOX_UID} --regid={SANDBOX_UID} --clear-groups".split()
    if not _drop() or not setpriv or _ask([setpriv, *ids, "true"])[0]:
        return (program,), _drop()
    return (setpriv, *ids, program), {}


def _reachable(path: str) -> bool:
    """Tell whether the uid of native sandboxes may read path and enter its parents."""
    real = os.path.realpath(path)
    if not _drop() or not os.path.exists(real):
        return os.access(real, os.R_OK)
    modes = [p.stat().st_mode for p in (Path(real), *Path(real).parents)]
    return bool(modes[0] & 4) and all(mode & 1 for mode in modes[1:])


def cache_dir(backend: Backend) -> Path:
    """Return the directory that pysbx owns for a backend, made if need be.

    $XDG_CACHE_HOME/pysbx or ~/.cache/pysbx; for root /var/cache/pysbx unless XDG_CACHE_HOME is a
    place the sandbox's uid can enter; /var/tmp or TMPDIR where none of these can be written.
    """
    place = backend, os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if not _made_cache_dir(*place).exists():  # somebody has removed it
        _made_cache_dir.cache_clear()
        _interpreters.clear()
        end_spares()
    return _made_cache_dir(*place)


@functools.cache
def _made_cache_dir(backend: Backend, xdg: str, home: str) -> Path:
    # it is made if need be, as the specification of XDG wants it
    there = next(path for path in (Path(xdg), *Path(xdg).parents) if os.path.exists(path))
    places = [f"{xdg}/pysbx"] * (os.path.isabs(xdg) and _reachable(str(there)))
    places += ["/var/cache/pysbx"] if _drop() else [f"{home}/.cache/pysbx"] * bool(home)
    places += [f"{tmp}/pysbx-{os.geteuid()}" for tmp in ("/var/tmp", tempfile.gettempdir())]
    for place in places:
        path = Path(place, backend)
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            state = path.parent.lstat()  # first: another user may have laid links there
            if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
                continue
            for part in "pythons used store store/cache store/envs store/new".split():
                (path / part).mkdir(mode=0o755, parents=True, exist_ok=True)
                if part[:5] == "store" and backend == "native" and _drop():
                    os.chown(path / part, SANDBOX_UID, SANDBOX_UID, follow_symlinks=False)
            for shown in (path.parent, path, path / "pythons") if _drop() else ():
                shown.chmod(0o755)  # whatever our umask is
            (path / "store/envs").chmod(0o311)  # a script cannot list what others installed
            (path / "store").chmod(0o700)  # a build may leave setuid files: no other user enters
            (path / "used/probe").touch()
            return path
    raise Unavailable("no directory for the cache can be written: set XDG_CACHE_HOME to one")


def find_uv(policy: Policy) -> str:
    """Return the path of uv, or raise Unavailable with the places that were looked at.

    Programs with a window start servers with PATH=/usr/bin:/bin, so PATH is not all.
    """
    beside = [os.path.expanduser(f"~/{place}/uv") for place in (".local/bin", ".cargo/bin")]
    beside += [f"{Path(sys.executable).parent}/uv", "/opt/homebrew/bin/uv", "/usr/local/bin/uv"]
    places = [os.environ.get("UV"), shutil.which("uv"), *beside]
    for place in filter(None, [policy.uv_path] if policy.uv_path else places):
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.realpath(place)
    looked = policy.uv_path or ", ".join(["$UV", "PATH", *beside])
    raise Unavailable(f"uv was not found (not at {looked}): 'pip install uv', or give --uv-path")


def uv_environment(cache: object) -> dict[str, str]:
    """Return the environment of uv: constants, and the operator's index, proxy and CA settings."""
    home, path = os.path.expanduser("~"), os.environ.get("PATH", os.defpath)
    constants = """UV_NO_CONFIG=1 UV_NO_SYSTEM_CONFIG=1 UV_NO_ENV_FILE=1 UV_NO_PROGRESS=1 NO_COLOR=1
        UV_PYTHON_INSTALL_BIN=0 UV_KEYRING_PROVIDER=disabled UV_LINK_MODE=hardlink
        UV_HTTP_TIMEOUT=30 UV_HTTP_RETRIES=1"""
    env = dict(pair.split("=") for pair in constants.split()) | {"HOME": home, "PATH": path}
    env |= {"UV_CACHE_DIR": f"{cache}/cache", "UV_PYTHON_INSTALL_DIR": f"{cache}/pythons"}
    settings = re.compile("|".join(UV_SETTINGS + PROXIES))
    env |= {name: v for name, v in os.environ.items() if v and settings.fullmatch(name)}
    for name in ("INDEX_URL", "EXTRA_INDEX_URL"):  # uv does not read pip's
        if not {f"UV_{name}", "UV_DEFAULT_INDEX", "UV_INDEX"} & env.keys():
            env |= {f"UV_{name}": v for v in [os.environ.get(f"PIP_{name}", "")] if v}
    return env


def _ask(
    argv: list[str], env: Env = None, wait: float = 60, said: bytes = b"", cancel: Fd = None
) -> tuple[int, str, str]:
    """Run a trusted program (uv, docker, bwrap) away from any project -> exit code, stdout, stderr."""
    until = time.monotonic() + wait
    try:
        options: dict[str, Any] = {"cwd": "/", "env": env, "umask": 0o022}
        with subprocess.Popen(argv, stdin=-1, stdout=-1, stderr=-1, **options) as process:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, err = process.communicate(said, 0.2)
                    break
                said = b""  # it may be handed on once
                if time.monotonic() > until or _ready([cancel], 0):
                    process.kill()
                    return 127, "", f"{argv[0]} was ended: cancelled, or no answer in {wait:g} s"
    except OSError as error:
        return 127, "", str(error)
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


def _start_time(pid: int) -> str:
    """Return what tells a process from a later one with the same number; "" where it is gone."""
    with contextlib.suppress(OSError):
        # its name may be any bytes
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    return "" if sys.platform == "linux" else "?"


_SHELL = os.path.realpath(shutil.which("sh") or "/bin/sh")
_CGROUPS = Path("/sys/fs/cgroup")
_holder: list[subprocess.Popen[bytes]] = []  # its death ends the group we got from systemd


def _user_bus() -> dict[str, str]:
    """Return an environment that leads to the user's systemd; not all clients hand it on."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    bus = {"XDG_RUNTIME_DIR": runtime, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus"}
    return {**bus, **os.environ}


def _enter(group: Path, pid: str) -> None:
    """Move a process into a group; from a login session only systemd can, so it is asked to."""
    try:
        (group / "cgroup.procs").write_text(pid)
    except PermissionError:
        call = """busctl --user call org.freedesktop.systemd1 /org/freedesktop/systemd1
            org.freedesktop.systemd1.Manager AttachProcessesToUnit ssau""".split()
        if _ask([*call, group.parent.name, f"/{group.name}", "1", pid], _user_bus(), 10)[0]:
            raise


def _own_subtree() -> list[Path]:
    """Return the group that we are in, with room made in it."""
    own = re.findall(r"(?m)^0::/(.*)$", Path("/proc/self/cgroup").read_text())
    group = _CGROUPS / own[0]
    if "/user@" in own[0]:  # the user may write there, delegated or not; if not, systemd ends all
        raise PermissionError(f"{group} is for systemd to give")  # of it after one OOM kill
    (group / "pysbx").mkdir(exist_ok=True)
    launcher = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
    for pid in [os.getpid()] + [os.getppid()] * (launcher in ("uv", "uvx")):
        (group / "pysbx/cgroup.procs").write_text(str(pid))
    return [group]


def _user_scope() -> list[Path]:
    """Ask the user's systemd for a group; it ends with the one process in it, and that with us."""
    unit = f"pysbx-{os.getpid()}-{secrets.token_hex(4)}.scope"
    argv = f"systemd-run --user --scope -q --collect -p Delegate=yes --unit={unit} --".split()
    own: dict[str, Any] = {"cwd": "/", "env": _user_bus(), "start_new_session": True}
    argv += [_SHELL, "-c", "echo ready; read -r x"]
    _holder.append(holder := subprocess.Popen(argv, stdin=-1, stdout=-1, stderr=-3, **own))
    assert holder.stdout
    _ready([holder.stdout.fileno()], 5 * GRACE)
    place = Path(f"/proc/{holder.pid}/cgroup").read_text().strip().partition("::")[2]
    if not place.endswith(f"/{unit}"):
        raise OSError(f"systemd left it in {place}")
    group = _CGROUPS / place.lstrip("/")
    (group / "pysbx").mkdir()
    (group / "pysbx/cgroup.procs").write_text(str(holder.pid))
    return [group]


@functools.cache
def _cgroup_parents() -> tuple[Path, ...]:
    """Return where groups can be made: one directory (v2), one a controller (v1), or none."""
    if not (_CGROUPS / "cgroup.controllers").exists():  # version 1: only root may
        return _usable(lambda: [_CGROUPS / name / "pysbx" for name in ("memory", "pids", "cpu")])
    if os.geteuid() == 0:
        return _usable(lambda: [_CGROUPS / "pysbx"])
    made = _usable(_own_subtree) or _usable(_user_scope)
    for holder in _holder if not made else ():
        holder.kill()
        holder.wait()
    return made


def _usable(find: Callable[[], list[Path]]) -> tuple[Path, ...]:
    """Return the directories that are found, if groups with limits can be made there."""
    try:
        for parent in (made := find()):
            parent.mkdir(exist_ok=True)
            for control in (place / "cgroup.subtree_control" for place in (_CGROUPS, parent)):
                if control.exists() and os.access(control, os.W_OK):
                    control.write_text("+memory +pids")
                    with contextlib.suppress(OSError):  # systemd before 252 does not hand it on
                        control.write_text("+cpu")
            for group in parent.glob("run-*-*"):
                if not _start_time(int(group.name.split("-")[1])):  # its server is dead
                    # killed while it started a bwrap; 0 is one of another pid namespace
                    for left in {*(group / "cgroup.procs").read_text().split()} - {"0"}:
                        os.kill(int(left), signal.SIGKILL)
                    _remove_cgroup((group,))
            (test := parent / f"run-{os.getpid()}-test").mkdir()
            for limit in ("memory.max", "pids.max") if len(made) == 1 else ():
                (test / limit).write_text("max")
            with subprocess.Popen([_SHELL, "-c", "read -r x"], stdin=-1) as waiting:
                _enter(test, str(waiting.pid))
                there = (test / "cgroup.procs").read_text().split()
            _remove_cgroup((test,))
            if str(waiting.pid) not in there:  # a group must take processes
                return ()
    except (OSError, IndexError):
        return ()
    return tuple(made)


def _make_cgroup(policy: Policy) -> tuple[Path, ...]:
    """Make a control group with the policy's limits; () where there can be none."""
    name, memory = f"run-{os.getpid()}-{secrets.token_hex(8)}", policy.memory * MB
    group = tuple(parent / name for parent in _cgroup_parents())
    # in those of version 1 are bwrap's own two processes, too
    limits = f"""memory.max={memory} memory.swap.max=0 memory.oom.group=1
        memory.limit_in_bytes={memory} memory.memsw.limit_in_bytes={memory}
        memory.kmem.tcp.limit_in_bytes={memory // 4}
        pids.max={policy.max_processes + 2 * (len(group) > 1)}"""
    try:
        for directory in group:
            directory.mkdir()
            for file, _, value in (limit.partition("=") for limit in limits.split()):
                if (directory / file).exists():
                    (directory / file).write_text(value)
    except OSError:
        _remove_cgroup(group)
        return ()
    return group


def _cgroup_count(group: Iterable[Path], event: str, *names: str) -> int:
    """Return how often an event happened by these files of a group, such as oom_kill."""
    files = [directory / name for directory in group for name in names]
    text = "".join(file.read_text() for file in files if file.exists())
    return max(map(int, re.findall(rf"(?m)^{event} (\d+)", text)), default=0)


def _remove_cgroup(group: Iterable[Path]) -> None:
    for directory in group:
        for _ in range(100):
            with contextlib.suppress(OSError):  # the kernel may be taking the last process away
                directory.rmdir()
            if not directory.exists():
                break
            time.sleep(0.01)


@functools.cache
def _bwrap() -> tuple[str, str]:
    """Return the path of bwrap and its help, which says what it can."""
    path = shutil.which("bwrap")
    if not path:
        raise Unavailable("bwrap is missing: install bubblewrap, or use --sandbox-backend docker")
    if os.stat(path).st_mode & stat.S_ISUID:
        raise Unavailable(f"{path} is setuid, which is not safe: install bubblewrap 0.7 or newer")
    if not _reachable(path):  # its own words say more than our "Permission denied" would
        said = _ask([path, "--unshare-all", "--ro-bind", "/", "/", "true"])[2]
        raise Unavailable(explain_bwrap(said or f"uid {SANDBOX_UID} cannot execute {path}"))
    return os.path.realpath(path), _ask([path, "--help"])[1]


# ---- starting, reading and ending a sandbox

# bwrap's die-with-parent follows the thread that started it: this one lives as long as we do
_SPAWNER = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="pysbx-spawner")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Sandbox:
    """A sandbox that waits at its gate, is used once, and is ended; a process where there is none.

    Raises Unavailable, with the reason and the remedy, if it cannot start.
    """

    def __init__(self, spec: Spec, cancel: Fd = None) -> None:
        self.spec, self.backend, self.born = spec, spec.policy.backend, time.monotonic()
        self.name, self.word = f"pysbx-{secrets.token_hex(8)}", secrets.token_hex(8)
        self.process: subprocess.Popen[bytes] | None = None
        self.group: tuple[Path, ...] = ()  # its control group
        self.init = self.gate = 0  # pids of the init of its namespace, of what waits at the gate
        self.work = self.tmp = self.shm = self.proc = -1  # descriptors of its directories
        # what it may write of the cache; the bytes and inodes that must stay free there
        self.store, self.least, self.fewest = -1, 0, 0
        self.ends: Fd = None  # can be read when all of its namespace is gone
        self.script: IO[bytes] | None = None  # the pipe to an interpreter that waits
        self.place = ""  # the directory of a process without a sandbox
        self.ended: tuple[int, ...] = ()  # the last line of a container's gate
        self.crowded, self.cancel, self.kernel = False, cancel, (0, 0, 0)
        self.ending: dict[str, int] = {}  # processes without memory: in how many looks
        self.held = contextlib.ExitStack()  # what close frees, the last first
        try:
            {"native": self._native, "docker": self._docker, "none": self._none}[self.backend]()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | LookupError | ValueError):  # it died as it started
                why = f"the sandbox ended while it was set up: {type(error).__name__}: {error}"
                raise Unavailable(why) from None
            raise

    def _start(self, argv: list[str], **options: Any) -> None:
        """Start the process and wait for its gate.

        It gets core dumps of 1 byte, which are none: 0 would still start the host's handler of them.
        """

        def start() -> subprocess.Popen[bytes]:
            for directory in tasks:  # this thread, for a moment: to move a process costs 10 ms
                (directory / "tasks").write_text("0")
            core = resource.getrlimit(resource.RLIMIT_CORE)
            with contextlib.suppress(ValueError):  # where there may be none only root can raise it
                resource.setrlimit(resource.RLIMIT_CORE, (1, core[1] or 1))
            try:
                return subprocess.Popen(argv, **options)
            finally:
                resource.setrlimit(resource.RLIMIT_CORE, core)
                for directory in tasks:
                    (directory.parent / "tasks").write_text("0")

        tasks = self.group if len(self.group) > 1 else ()  # of version 1
        options |= {"stdin": -1, "stdout": -1, "stderr": -1, "start_new_session": True}
        try:
            self.process = _SPAWNER.submit(start).result()
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"{argv[0]} cannot be started: {error}") from None
        stdin, stdout, stderr = self.process.stdin, self.process.stdout, self.process.stderr
        assert stdin and stdout and stderr
        for pipe in (stdin, stdout, stderr):
            self.held.callback(pipe.close)
            if self.backend == "native" and _drop():  # so that /dev/stdout can be opened
                os.fchown(pipe.fileno(), SANDBOX_UID, SANDBOX_UID)
        self.stdin, self.out, self.err = stdin, stdout.fileno(), stderr.fileno()
        ready = _ready([self.out, self.cancel], START_LIMIT)
        if self.out not in ready or os.read(self.out, 6) != b"ready\n":
            if self.cancel in ready:
                raise SandboxError("cancelled before anything ran")
            said = f"no answer within {START_LIMIT:g} s"
            if self.out in ready and _ready([self.err], GRACE):
                said = os.read(self.err, 65536).decode(errors="replace").strip()
            raise Unavailable(explain_bwrap(said) if self.backend == "native" else _shorten(said))

    def hold(self, fd: int) -> int:
        """Return a descriptor that stays open until the sandbox is closed."""
        self.held.callback(os.close, fd)
        return fd

    def _native(self) -> None:
        bwrap, help_text = _bwrap()
        self.group = _make_cgroup(self.spec.policy)
        self.held.callback(_remove_cgroup, self.group)
        with contextlib.ExitStack() as opened:

            def memfd(content: bytes) -> int:
                fd = os.memfd_create("pysbx")
                opened.callback(os.close, fd)
                os.pwrite(fd, content, 0)  # it is read from its beginning
                return fd

            files = {**etc_files(self.spec.policy.network), **dict(self.spec.files)}
            data = {name: memfd(content) for name, content in files.items()}
            code = memfd(seccomp_filter(os.uname().machine, memory_is_limited=bool(self.group)))
            options = [*bwrap_options(self.spec, data, help_text), "--seccomp", str(code)]
            args = memfd("".join(option + "\0" for option in options).encode())
            words, drop = _dropping(bwrap)
            argv = [*words, "--args", str(args), "--", _SHELL, "-c", *self.spec.program]
            fds, env = [*data.values(), code, args], dict(self.spec.env)
            self._start(argv, env=env, cwd="/", pass_fds=fds, **drop)
        assert self.process
        # not by --json-status-fd: if we are killed, bwrap dies as it writes there, and its child,
        # which waits for it before it dies with its parent, would be left
        self.init = _children(self.process.pid)[0]
        self.ends = self.hold(os.pidfd_open(self.init))
        self.gate = _children(self.init)[0]
        root, places = f"/proc/{self.init}/root", ("/work", "/tmp", "/dev/shm", "/proc")
        directories = [self.hold(os.open(root + place, os.O_DIRECTORY)) for place in places]
        self.work, self.tmp, self.shm, self.proc = directories
        with contextlib.suppress(OSError):
            Path(f"/proc/{self.gate}/oom_score_adj").write_text("1000")
            resource.prlimit(self.gate, resource.RLIMIT_SIGPENDING, (1000, 1000))  # timers, too
        if len(self.group) == 1:  # of version 2; else it was born there
            _enter(self.group[0], str(self.gate))
        for source, target, writable in self.spec.binds:
            if writable and target.startswith("/pysbx"):
                self.store = self.hold(os.open(source, os.O_DIRECTORY))
                space, inodes = _left(self.store)
                self.least = space - max(self.spec.policy.cache_size, self.spec.policy.disk) * MB
                self.fewest = inodes - MAX_STORE_INODES
        if self.spec.policy.network == "public":
            self._route()

    def _route(self) -> None:
        """Give the sandbox a network of its own that leads to public addresses only."""
        tools = [shutil.which(name) for name in ("slirp4netns", "nsenter", "ip")]
        if not all(tools):
            raise Unavailable("--network public: install slirp4netns (and nsenter and ip)")
        with contextlib.ExitStack() as opened:
            fds = [os.open(f"/proc/{self.init}/ns/net", os.O_RDONLY)]
            fds += [fcntl.ioctl(fds[0], 0xB701), *os.pipe(), *os.pipe()]  # NS_GET_USERNS
            net, user, ready, told, ended, stop = fds
            self.hold(stop)
            for fd in fds[:-1]:
                opened.callback(os.close, fd)
            argv = f"""{tools[0]} --configure --mtu=65520 --disable-host-loopback --ready-fd={told}
                --exit-fd={ended} --userns-path=/proc/self/fd/{user} --netns-type=path
                /proc/self/fd/{net} tap0""".split()
            keep = {"pass_fds": (net, user, told, ended), **_drop()}
            router = subprocess.Popen(argv, stdin=-3, stdout=-3, stderr=-3, **keep)
            self.held.callback(router.wait)
            self.held.callback(router.kill)
            listed = _ask([str(tools[2]), *"-4 route show table local".split()])[1]
            own = re.findall(r"(?m)^local ([\d./]+)", listed)  # addresses, or whole networks
            routes = "".join(f"route add unreachable {r}\n" for r in [*NOT_PUBLIC, *own]) + "route"
            argv = [str(tools[1]), f"--user=/proc/self/fd/{user}", f"--net=/proc/self/fd/{net}"]
            argv += ["--preserve-credentials", str(tools[2]), "-force", "-batch", "-"]
            if not _ready([ready], START_LIMIT):
                why = "slirp4netns does not come up (can this user open /dev/net/tun?)"
                raise Unavailable(f"--network public: {why}")
            done = subprocess.run(argv, input=routes.encode(), capture_output=True, **keep)
        if done.stdout.count(b"unreachable") < len(NOT_PUBLIC):
            said = done.stderr.decode(errors="replace")[-200:]
            raise Unavailable(f"--network public: routes cannot be closed: {said}")

    def _none(self) -> None:
        self.place = tempfile.mkdtemp(prefix="pysbx-run-")
        for name in ("work", "tmp", "home"):
            os.mkdir(f"{self.place}/{name}", 0o700)
        self.work = self.hold(os.open(f"{self.place}/work", os.O_DIRECTORY))
        env = {**dict(self.spec.env), "HOME": f"{self.place}/home", "TMPDIR": f"{self.place}/tmp"}
        self._start([_SHELL, "-c", *self.spec.program], env=env, cwd=f"{self.place}/work")

    def _docker(self) -> None:
        wanted, profile = docker_seccomp(), cache_dir("docker") / "seccomp.json"
        if not profile.exists() or profile.read_text() != wanted:
            _write(profile, wanted)
        argv, env = docker_argv(self.spec, self.name, str(profile)), docker_environment(self.spec)
        self._start([self.spec.policy.docker_path, *argv], env=env)

    def start_python(self, line: str) -> None:
        """Let the interpreter start ahead of the script, which it waits for in a named pipe."""
        self.stdin.write(f"w{line}\n".encode())
        self.stdin.flush()
        while not self.script and self.fresh(START_LIMIT):
            time.sleep(0.005)
            with contextlib.suppress(OSError):  # ENXIO: it has not opened the pipe so far
                pipe = _open_at(self.work, "script.py", os.O_WRONLY | os.O_NONBLOCK)
                self.held.callback(pipe.close)
                if stat.S_ISFIFO(os.fstat(pipe.fileno()).st_mode):  # the gate has made it
                    self.script = pipe
        self.stdin.close()

    def release(self, line: str, body: bytes) -> None:
        """Let the gate go: `line` is what it reads first, `body` the script or the stub."""
        self.kernel = _kernel_memory()
        script, pipe = self.spec.program[0] in (GATE, DOCKER_GATE), self.script or self.stdin
        as_file = script and self.work >= 0
        if self.script:  # the file takes the place of the pipe
            os.rename(".script.py", "script.py", src_dir_fd=self.work, dst_dir_fd=self.work)
            os.set_blocking(pipe.fileno(), True)
        if as_file:
            with _open_at(self.work, "script.py", os.O_WRONLY) as file:
                file.write(body)  # what a traceback shows, and the script itself
        elif script:
            line = line.replace(" ", f" {len(body)} {self.word} ", 1)
        words = line.encode() + b"\n" + (b"" if as_file else body)
        with contextlib.suppress(BrokenPipeError):
            pipe.write(body if self.script else words)
            pipe.flush()
            if not (script and self.backend == "docker"):
                pipe.close()

    def fresh(self, age: float) -> bool:
        """Tell whether it still waits, and not for longer than `age` seconds."""
        alive = self.process is not None and self.process.poll() is None
        reads = self.script is not None or not self.stdin.closed
        return alive and reads and time.monotonic() - self.born < age

    def told_end(self, stream: Stream) -> bool:
        """Take the gate's last line off a stream of a container: the script and all else is dead."""
        if self.backend != "docker":
            return False
        last = bytes(stream.head[-200:] + stream.tail[-200:])[-200:]  # it may lie across the two
        told = re.search(rf"\x00{self.word} (\d{{1,3}}(?: \d{{1,9}}){{4}}\n)\Z".encode(), last)
        if told:
            self.ended = tuple(map(int, told[1].split()))
            stream.drop(len(last) - told.start())
        return bool(told)

    def watch(self) -> str:
        """Say which limit all its processes together are over where nothing else says so, or ""."""
        limit = self.spec.policy.memory * MB
        if self.store >= 0:
            space, inodes = _left(self.store)
            if space < self.least or inodes < self.fewest:
                return "disk limit"
        named, other, anon = (n - w for n, w in zip(_kernel_memory(), self.kernel, strict=True))
        if other > limit and self._sockets() * SOCKET_BUFFERS > limit:  # no group counts netlink's
            return "memory limit"
        if self.group or self.proc < 0:
            return ""
        each = self._statuses()
        text = "".join(each.values())
        if other > limit:  # a pipe holds 64 KB, and takes two descriptors
            threads = glob.glob("[0-9]*/task/[0-9]*/status", dir_fd=self.proc)  # each may have own
            if _total("FDSize", "".join(map(self._proc, threads))) * (32 << 10) > limit:
                return "memory limit"
        self.crowded |= _total("Threads", text) >= self.spec.policy.max_processes
        gone = [p for p, t in each.items() if t and "\nVmPTE:" not in t and "\nState:\tZ" not in t]
        self.ending = {pid: self.ending.get(pid, 0) + 1 for pid in gone}
        if max(self.ending.values(), default=0) > SLOW_END:
            named = max(named, anon)  # whatever it still holds is in no status
        files = 0
        for state in map(os.fstatvfs, (self.work, self.tmp, self.shm)):
            files += (state.f_blocks - state.f_bfree) * state.f_frsize
            if state.f_files - state.f_ffree > MAX_INODES:
                return "disk limit"
        pages, tables = _total("RssAnon|RssShmem", text) << 10, _total("VmPTE", text) << 10
        rest = files + tables
        # what a fork shares was counted twice; to look through large tables takes too long
        if rest + pages > limit >= max(named, rest) and tables < MAX_TABLES:
            places = (f"{_total('Pid', text)}/smaps_rollup" for text in each.values())
            pages = _total("Pss_Anon|Pss_Shmem", "".join(map(self._proc, places))) << 10 or pages
        return "memory limit" if max(named, rest + pages) > limit else ""

    def _statuses(self) -> dict[str, str]:
        """Return the status of every process, by any other thread where its first has ended."""
        found = {}
        for pid in filter(str.isdigit, os.listdir(self.proc)):
            if "\nVmPTE:" not in (text := self._proc(f"{pid}/status")):
                others = glob.glob(f"{pid}/task/[0-9]*/status", dir_fd=self.proc)
                text = max([text, *map(self._proc, others)], key=lambda t: "\nVmPTE:" in t)
            found[pid] = text
        return found

    def _proc(self, place: str) -> str:
        """Return a file of its /proc, or "" where it is gone."""
        with contextlib.suppress(OSError), _open_at(self.proc, place) as file:
            return file.read().decode(errors="replace")  # the name of a program may be any bytes
        return ""

    def _sockets(self) -> int:
        """Return how many sockets there are in its network, if that is on this host."""
        pid = str(self.init or 0)
        if self.backend == "docker":
            argv = [self.spec.policy.docker_path, "inspect", "-f", "{{.State.Pid}}", self.name]
            pid = _ask(argv, wait=GRACE)[1].strip()
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/net/sockstat").read_text()
            return sum(map(int, re.findall(r"used (\d+)", text)))
        return 0

    def limit_met(self) -> str:
        """After the end: say which limit the evidence names, or ""."""
        memory, processes, full = self.ended[2:] or (0, 0, 0)
        if memory or _cgroup_count(self.group, "oom_kill", "memory.events", "memory.oom_control"):
            return "memory limit"
        if processes or self.crowded or _cgroup_count(self.group, "max", "pids.events"):
            return "process limit"
        # of inodes a tmpfs has half as many as there are pages
        for state in map(os.fstatvfs, (self.work, self.tmp) if self.init else ()):
            full |= state.f_bavail == 0 or state.f_files > state.f_favail == 0
        return "disk limit" if full else ""

    def isolation(self) -> str:
        """Return one line: what confines a script here, and what enforces its limits."""
        p = self.spec.policy
        if self.backend == "none":
            return "none: it ran WITHOUT A SANDBOX, with your rights"
        how = "engine" if p.backend == "docker" else "cgroup" if self.group else "rlimits, watched"
        limits = f"{p.memory} MB memory, {p.max_processes} processes, {p.disk} MB disk"
        return f"{p.backend}, network {p.network}, {limits} (by {how})"

    def files(self, notes: list[str]) -> tuple[File, ...]:
        """Return what the script left in its working directory; it has ended."""
        if self.work >= 0:
            return collect_files(_entries(self.work), notes)
        return _docker_files(self, notes) if self.ended[1:2] == (1,) else ()

    def kill(self) -> None:
        """End everything in it, whatever it ignores, and whoever left its group or session."""
        if not self.process or self.ended:
            return
        if self.backend == "docker":
            self.process.kill()  # first: the engine waits for it, and it for us to read
            _ask([self.spec.policy.docker_path, "rm", "-f", self.name], wait=20)
        with contextlib.suppress(OSError):
            if self.backend == "native" and not self.init and self.process.poll() is None:
                _kill_children(self.process.pid)
        with contextlib.suppress(ProcessLookupError):
            if self.process.poll() is None:
                os.kill(self.init or self.process.pid, signal.SIGKILL)
                self.process.kill()
            if self.backend == "none":
                os.killpg(self.process.pid, signal.SIGKILL)
        for entry in Path("/proc").glob("[0-9]*/environ") if self.place else ():
            with contextlib.suppress(OSError):  # its HOME tells whose it is
                if f"HOME={self.place}/".encode() in entry.read_bytes():
                    os.kill(int(entry.parent.name), signal.SIGKILL)

    def close(self) -> None:
        """End it and free what it holds; may be called again."""
        self.ended = ()  # a container is removed by its name: the gate's word may be forged
        self.kill()
        if self.process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5 * GRACE)
        with contextlib.suppress(OSError):  # of one of them; the others are freed all the same
            self.held.close()
        if self.place:
            _ask(["chmod", "-R", "u+rwX", self.place])
            shutil.rmtree(self.place, ignore_errors=True)


def _kill_children(pid: int) -> None:
    """Kill what a bwrap has just started: it does not die with its parent before it is set up."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    for child in _children(pid):
        os.kill(child, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """Return the processes that the first thread of another has started."""
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _open_at(directory: int, name: str, flags: int = _READ) -> IO[bytes]:
    """Open a file below a directory of a sandbox, never following a link."""
    fd = os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)
    return open(fd, "wb" if flags & os.O_WRONLY else "rb")


def _total(fields: str, text: str) -> int:
    """Return the sum of the numbers after these names of fields, as /proc writes them."""
    return sum(map(int, re.findall(rf"(?m)^(?:{fields}):\s+(\d+)", text)))


def _kernel_memory() -> tuple[int, int, int]:
    """Return the bytes that the machine holds in shared pages, page tables, slabs and vmalloc, those
    that are neither free, cached nor a process's (buffers of sockets among others), and a process's.
    """
    with contextlib.suppress(OSError):
        text = Path("/proc/meminfo").read_text()
        apart = "MemFree|Buffers|Cached|SwapCached|AnonPages|SReclaimable"
        other = _total("MemTotal", text) - _total(apart, text)
        named, anon = "Shmem|PageTables|SUnreclaim|VmallocUsed", "AnonPages"
        return _total(named, text) << 10, other << 10, _total(anon, text) << 10
    return 0, 0, 0


def _left(directory: int) -> tuple[int, int]:
    """Return the bytes and the inodes that are still free on the disk of a directory."""
    state = os.fstatvfs(directory)
    return state.f_bavail * state.f_frsize, state.f_favail


class Stream:
    """First and last part of an output stream, `keep` bytes each; the middle is only counted."""

    def __init__(self, keep: int) -> None:
        self.keep, self.total = keep, 0
        self.head, self.tail = bytearray(), bytearray()

    def add(self, data: bytes) -> bytes:
        """Take in data; return the part of it that belongs to the head."""
        self.total += len(data)
        first = data[: self.keep - len(self.head)]
        self.head += first
        self.tail += data[len(first) :][-self.keep :]
        if len(self.tail) > 4 * self.keep:
            del self.tail[: -self.keep]
        return first

    def drop(self, count: int) -> None:
        """Take back the last bytes, which were not the script's."""
        self.total -= count
        whole = (self.head + self.tail)[:-count]
        self.head, self.tail = whole[: self.keep], whole[self.keep :]

    def show(self, budget: int, shown: int = 0) -> bytes:
        """Return what to show in `budget` bytes, but for the first `shown`; cut between characters."""
        whole = bytes(self.head + self.tail)
        if self.total <= budget:
            return whole[shown:]
        tail = re.sub(rb"\A[\x80-\xbf]{1,3}", b"", whole[-(budget - budget // 2) :])
        head = re.sub(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z", b"", whole[: budget // 2])[shown:]
        left = self.total - shown - len(head) - len(tail)
        return head + f"\n[... {left:,} bytes left out ...]\n".encode() + tail

    def text(self, budget: int = 8000) -> str:
        """Return the same as text, undecodable bytes replaced."""
        return self.show(budget).decode(errors="replace")


@dataclass
class Captured:
    """What run_capped saw: streams, why the run ended, its exit code, a limit it met."""

    out: Stream
    err: Stream
    why: Literal["exited", "timeout", "cancelled"] = "exited"
    code: int = 0
    limit: str = ""
    seconds: float = 0.0


def run_capped(
    box: Sandbox, line: str, body: bytes, limit: float, keep: int = 51200, echo: Echo | None = None
) -> Captured:
    """Release a sandbox and read it with bounded memory until it ends, time is up or cancel.

    Nothing of it is alive on return, and that comes at most GRACE after the end, whoever still
    holds the pipes. `echo` gets the heads of the streams live.
    """
    began, process = time.monotonic(), box.process
    assert process
    keep += 200 if box.backend == "docker" else 0  # room for the gate's last line
    box.release(line, body)
    seen, end, look = Captured(Stream(keep), Stream(keep)), 0.0, began + TICK
    reading = {box.out: seen.out, box.err: seen.err}
    for fd in reading:  # a script may open its own pipe, and be faster
        os.set_blocking(fd, False)
    exit_fd = box.hold(os.pidfd_open(process.pid)) if hasattr(os, "pidfd_open") else None
    while not end or reading and time.monotonic() <= end + GRACE:
        until = end + GRACE if end else min(look, began + limit)
        others = [] if end else [box.cancel, exit_fd]
        ready = _ready([*reading, *others], until - time.monotonic())
        for fd in ready & reading.keys():
            try:
                data = os.read(fd, 1 << 16)
            except BlockingIOError:
                continue
            first = reading[fd].add(data)
            if echo and first and box.backend != "docker":
                echo(int(fd == box.err), first)
            if not data or box.told_end(reading[fd]):
                del reading[fd]
        now, over = time.monotonic(), process.poll() is not None or box.ended and not reading
        if not over and not end and now >= look:
            look, seen.limit = now + TICK, box.watch()
        if not end and (over or seen.limit or box.cancel in ready or now >= began + limit):
            end = now
            if not over and not seen.limit:
                seen.why = "cancelled" if box.cancel in ready else "timeout"
            box.kill()
    seen.seconds = end - began
    left = box.ends and {*filter(str.isdigit, os.listdir(box.proc))} - {"1"}
    _ready([box.ends], 3 * GRACE if left else 0)  # init alone needs some ms to take itself apart
    with contextlib.suppress(subprocess.TimeoutExpired):
        seen.code = box.ended[0] if box.ended else process.wait(GRACE)
    seen.code = 128 - seen.code if seen.code < 0 else seen.code
    seen.limit = seen.limit or box.limit_met()
    return seen


def _ready(fds: Iterable[Fd], seconds: float) -> set[int]:
    """Return those of the descriptors that can be read within `seconds` (select ends at fd 1024)."""
    poller = select.poll()
    for fd in filter(None, fds):
        poller.register(fd, select.POLLIN)
    return {fd for fd, _ in poller.poll(max(0.0, seconds) * 1000 + 0.999)}


# path, what all links to the file share, size, "file", "directory" or "other", how to open it
_Entry = tuple[str, object, int, str, Callable[[], IO[bytes] | None]]


def _entries(directory: int, place: str = "") -> Iterator[_Entry]:
    """Yield what lies below a directory, links not followed.

    A directory is yielded, too, so that many of them end it; as "other" where it is not entered.
    """
    with os.scandir(directory) as listing:  # read only as far as it is used
        names = sorted(entry.name for entry in itertools.islice(listing, MAX_ENTRIES))
    below = []
    for name in names:
        with contextlib.suppress(OSError):
            state = os.lstat(name, dir_fd=directory)
            opener = functools.partial(_open_at, directory, name)
            if not stat.S_ISDIR(state.st_mode) or place.count("/") >= MAX_DEPTH or not _safe(name):
                kind = "file" if stat.S_ISREG(state.st_mode) else "other"
                yield place + name, state.st_ino, state.st_size, kind, opener
            elif name != "__pycache__":
                below.append(name)
                yield place + name, None, 0, "directory", opener
    for name in below:  # after all files of this one: they matter most
        try:
            inner = os.open(name, _READ | os.O_DIRECTORY, dir_fd=directory)
        except OSError:
            yield place + name, None, 0, "other", lambda: None
            continue
        try:
            yield from _entries(inner, f"{place}{name}/")
        finally:
            os.close(inner)


def _safe(path: str) -> bool:
    plain, names = path.isprintable() and "\\" not in path, path.split("/")
    return plain and all(0 < len(n.encode()) < 256 and n not in (".", "..") for n in names)


def collect_files(entries: Iterable[_Entry], notes: list[str]) -> tuple[File, ...]:
    """Read the regular files among what a script left, as the data of somebody hostile.

    Nothing is followed or waited for; names, number, depth and sizes are bounded; each inode is
    read once. What is left out is counted in `notes`.
    """
    files: dict[object, File] = {}
    looked, room = 0, MAX_FILES_TOTAL
    for number, (path, identity, size, kind, opener) in enumerate(entries):
        if number >= MAX_ENTRIES:
            notes.append(f"more than {MAX_ENTRIES} files were left: the rest was not looked at")
            break
        if path == "script.py" or kind == "directory":
            continue
        kind = "other" if path.count("/") > MAX_DEPTH or len(path) > 4096 else kind
        with contextlib.suppress(OSError, tarfile.TarError):
            looked += 1
            if kind == "file" and identity not in files and len(files) < MAX_FILES and _safe(path):
                opened = opener() if size <= min(room, MAX_FILE) else None
                with opened or contextlib.nullcontext() as file:
                    files[identity] = File(path, size, file.read(size) if file else None)
                room -= len(files[identity].data or b"")
    if left := looked - len(files):
        why = "links, devices, unsafe names, unreadable or too many"
        notes.append(f"{left} files left out: {why}")
    return tuple(sorted(files.values(), key=lambda file: (file.name.count("/"), file.name)))


def _docker_entries(tar: IO[bytes], notes: list[str]) -> Iterator[_Entry]:
    """Yield what an archive holds, as far as it can be read."""
    try:
        with tarfile.open(fileobj=tar, mode="r|") as archive:
            for info in archive:
                cast(Any, archive).members = []  # it would keep all of them
                kind = "file" if info.isreg() else "directory" if info.isdir() else "other"
                path = info.name.removeprefix("./")
                yield path, path, info.size, kind, functools.partial(archive.extractfile, info)
    except (OSError, tarfile.TarError) as error:
        notes.append(f"the files of the container could not all be fetched: {error}")


def _docker_files(sandbox: Sandbox, notes: list[str]) -> tuple[File, ...]:
    """Fetch the files of a container whose script has ended, by tar, bounded in size and time."""
    argv = [sandbox.spec.policy.docker_path, "exec", sandbox.name, "tar", "-C", "/work", "-c", "."]
    with subprocess.Popen(argv, stdin=-3, stdout=-1, stderr=-3) as tar:
        timer = threading.Timer(4 * GRACE, tar.kill)
        timer.start()
        try:
            assert tar.stdout
            return collect_files(_docker_entries(tar.stdout, notes), notes)
        finally:
            timer.cancel()
            tar.kill()


# ---- interpreters and environments


@dataclass(frozen=True)
class Call:
    """What all steps of a call share: the settled policy, a way to say things, a way to stop."""

    policy: Policy
    say: Say = lambda text: None
    cancel: Fd = None
    python: Interpreter = Interpreter("", "")  # from choose_python
    requirements: tuple[str, ...] = ()
    newer: str = ""  # a date: packages that are newer are not there
    nice: int = 0

    @property
    def cache(self) -> Path:
        return cache_dir(self.policy.backend)

    @property
    def inside(self) -> str:
        """The cache as a sandbox sees it."""
        return f"{self.cache}/store" if self.policy.backend == "none" else "/pysbx"


@functools.cache
def _visible_uv(uv: str, cache: str) -> str:
    """Return a uv that can be shown to the sandbox: no wrapper, and readable by its uid."""
    if not _ask([uv, "--version"], uv_environment(cache))[1].startswith("uv "):
        raise Unavailable(f"{uv} does not answer as uv: give --uv-path")
    with open(uv, "rb") as file:
        if file.read(2) == b"#!":  # a pyenv shim or the like; uv names itself to what it starts
            argv = [uv, *"run -q --no-project -p".split(), sys.executable, "python", "-c"]
            argv += ["import os; print(os.environ['UV'])"]
            uv = _ask(argv, uv_environment(cache))[1].strip() or uv
    if _reachable(uv):
        return uv
    copy = f"{cache}/uv-{os.stat(uv).st_mtime_ns}"
    if not os.path.exists(copy):
        new = f"{copy}.{os.getpid()}"
        shutil.copy(uv, new)
        os.chmod(new, 0o755)
        os.rename(new, copy)
    return copy


def _operator_files(settings: dict[str, str]) -> tuple[list[Bind], list[tuple[str, bytes]]]:
    """Return (binds, files) for what the settings of uv name: local indexes, netrc, CA bundle."""
    text = "\n".join(v for k, v in settings.items() if re.search("INDEX|LINKS", k))
    named = re.findall(r"(?:file://|(?<!\S))(/[^\s,#]+?)(/simple/?)?(?![^\s,#])", text)
    # what lies beside an index is shown, but no home: builds look around
    paths = dict.fromkeys(p + rest * _shows_home(os.path.realpath(p)) for p, rest in named)
    binds = [(p, p, False) for p in paths if os.path.exists(p) and _reachable(p)]
    files: list[tuple[str, bytes]] = []
    netrc = settings.get("NETRC") or os.path.expanduser("~/.netrc")
    with contextlib.suppress(OSError):
        files.append(("netrc", Path(netrc).read_bytes()))
    bundles = [os.environ.get("SSL_CERT_FILE", ""), *CA_BUNDLES]
    for path in [os.path.realpath(p) for p in bundles if os.path.isfile(p)][:1]:
        if _reachable(path):  # one file: never a directory, which may hold keys
            binds.append((path, CA_FILE, False))
        else:
            files.append((CA_FILE.removeprefix("/etc/"), Path(path).read_bytes()))
    return binds, files


def _python_binds(prefix: str) -> list[Bind]:
    """Return what shows interpreters: those that uv downloaded, and one that the host has."""
    binds = [(f"{cache_dir('native')}/pythons", "/python", False)]
    return [*binds, (prefix, prefix, False)] if prefix else binds


def _step(
    call: Call, program: str, *words: str, part: str = "", uv: bool = True, network: bool = True
) -> Captured:
    """Run a step of ours to its end; it may write `part` of the cache ("": all of it).

    Its program has the interpreter as $python, which its gate has read.
    With `uv` it gets uv as its first argument, the settings of uv, the requirements on stdin, and
    --install-timeout. Without, it gets two minutes and never the network.
    """
    policy, native = call.policy, call.policy.backend == "native"
    settings = uv_environment(call.inside) if uv else {}
    env = {**settings, **SCRIPT_ENV, "PLOTS": PLOTS}
    binds, files = _operator_files(settings) if uv and native else ([], [])
    if native:
        binds += [(f"{call.cache}/store{part}", f"/pysbx{part}", True)]
        binds += [(_visible_uv(find_uv(policy), str(call.cache)), "/run/uv", False)] * uv
        binds += _python_binds(call.python.prefix)
        env |= {"SSL_CERT_FILE": CA_FILE} if "SSL_CERT_FILE" in env else {}
        env |= {"NETRC": "/etc/netrc"}
    elif policy.backend == "docker":
        binds = [(VOLUME, "/pysbx", True)]
        env |= {"SSL_CERT_FILE": "/pysbx/ca.pem"} if "SSL_CERT_FILE" in env else {}
    if part:  # what may be written is one environment: a cache of its own, thrown away
        files = [file for file in files if file[0] != "netrc"]  # code of packages runs in builds
        env |= {"UV_CACHE_DIR": "/tmp/cache", "UV_LINK_MODE": "copy"}
    if uv:
        env |= {"UV_EXCLUDE_NEWER": call.newer} if call.newer else {}
        inside = {"native": "/run/uv", "docker": "uv"}.get(policy.backend) or find_uv(policy)
        words = (inside, *words)
    program = f"echo ready; read -r python || exit 0\n{program}"
    disk, memory = max(policy.disk, 4096), max(policy.memory, 2048)
    roomy = replace(policy, disk=disk, memory=memory, network="on" if uv and network else "off")
    spec = Spec(roomy, tuple(binds), tuple(files), tuple(env.items()), (program, "sh", *words))

    def echo(_: int, data: bytes) -> None:
        if b"Resolved" in data:
            call.say("installing")

    with contextlib.closing(Sandbox(spec, call.cancel)) as sandbox:
        if call.nice and sandbox.process:
            os.setpriority(os.PRIO_PROCESS, sandbox.gate or sandbox.process.pid, call.nice)
        body, limit = (_stub(call.requirements), policy.install_timeout) if uv else (b"", 120.0)
        return run_capped(sandbox, call.python.path, body, limit, echo=echo)


def _uv_python(call: Call, *words: str, directory: str = "") -> tuple[int, str, str]:
    """Ask uv about interpreters: on this host, or in a container."""
    if call.policy.backend == "docker":
        start = 'mkdir -p "$HOME"; export UV_COMPILE_BYTECODE=1; exec "$@"'
        seen = _step(call, start, "python", *words, network=words[0] == "install")
        return seen.code, seen.out.text(MB), seen.err.text()
    env = uv_environment(call.cache) | ({"UV_PYTHON_INSTALL_DIR": directory} if directory else {})
    env["UV_COMPILE_BYTECODE"] = "1"  # of the standard library: a sandbox cannot write any
    if words[0] == "list":  # needs no mirror, and fails where its list cannot be read
        env.pop("UV_PYTHON_DOWNLOADS_JSON_URL", None)
    argv, wait = [find_uv(call.policy), "python", *words], call.policy.install_timeout
    answer = _ask(argv, env, wait, cancel=call.cancel)
    if _ready([call.cancel], 0):
        raise SandboxError("cancelled while a Python was looked for or downloaded")
    return answer


def _installed(call: Call, request: str = "") -> list[Interpreter]:
    """Return the usable interpreters that fit, newest first."""
    own = os.environ.get("UV_PYTHON_INSTALL_DIR") or os.path.expanduser("~/.local/share/uv/python")
    words = ["list", "--only-installed", "--output-format", "json", *filter(None, [request])]
    docker, found = call.policy.backend == "docker", []
    for directory in ("",) if docker else ("", own):
        code, said, _ = _uv_python(call, *words, directory=directory)
        try:
            rows = json.loads(said) if code == 0 else []
        except ValueError:
            raise Unavailable("the uv found does not answer as uv: give --uv-path") from None
        rows.sort(key=lambda row: tuple(row["version_parts"].values()), reverse=True)
        for row in rows:
            if row["implementation"] == "cpython" and row["variant"] == "default":
                path, version = row["path"], row["version"]
                found += [Interpreter(path, version)] if docker else _real_python(path, version)
        if found:
            return found
    return [] if request or docker else _real_python(sys.executable, sys.version.split()[0])


def _download(call: Call, request: str, *, once: bool) -> str:
    """Let uv download a Python; return why not. `once`: a failure is remembered for an hour."""
    failed = call.cache / "used" / f"no-python-{request}"
    with contextlib.suppress(OSError):
        if once and time.time() - failed.stat().st_mtime < 3600:
            return failed.read_text()
    if len(_installed(call)) >= MAX_PYTHONS:
        where = VOLUME if call.policy.backend == "docker" else call.cache
        return f"{MAX_PYTHONS} Pythons are installed, the most there may be: remove some of {where}/pythons"
    code, _, said = _uv_python(call, "install", "--no-bin", request)
    if code and once:
        _write(failed, said)
    return said or "it failed" if code else ""


@functools.cache
def _real_python(path: str, version: str) -> list[Interpreter]:
    """Return the interpreter behind a shim, link or venv, or nothing if it is out of reach."""
    code = "import os, sys; [print(os.path.realpath(p)) for p in (sys._base_executable, sys.base_prefix)]"
    real, prefix = (_ask([path, "-I", "-S", "-c", code])[1].splitlines() + ["", ""])[:2]
    good = real and _reachable(real) and _reachable(prefix)
    return [Interpreter(real, version, prefix)] if good else []


_engines: dict[str, str] = {}  # by docker_image: ids of the volume and the image
_interpreters: dict[tuple[Policy, str | None, Path], Interpreter] = {}


def choose_python(call: Call, requires: str | None) -> Interpreter:
    """Return the interpreter for a script; raise Unavailable with what there is if none fits.

    The policy's version if the script allows it, else the newest that the script allows, installed
    or downloaded by uv. Whether a version fits is uv's answer, not ours.
    """
    key = call.policy, requires, call.cache
    if known := _interpreters.get(key):
        return known
    wanted, said = call.policy.python_version or PYTHON, ""
    requires = (requires or "").replace("\t", " ").strip(" ,")
    anything = not call.policy.python_version and not requires
    found: list[Interpreter] = []
    exact = f"=={wanted}" + ".*" * (wanted.count(".") < 2)
    for request in filter(None, [f"{exact},{requires}" if requires else exact, requires]):
        found = found or _installed(call, request)
        if not found:
            call.say(f"downloading Python {request}")
            said = _download(call, request, once=anything)
            found = [] if said else _installed(call, request)
    if not found and anything:  # the nearest has most of the wheels
        minor = int(PYTHON.split(".")[1])
        found = sorted(_installed(call), key=lambda p: abs(int(p.version.split(".")[1]) - minor))
    if not found:
        there = ", ".join(dict.fromkeys(p.version for p in _installed(call))) or "none"
        why = f"no Python {requires or wanted} can be had here; installed: {there}"
        raise Unavailable(f"{why}; {_shorten(said)}")
    path, version, prefix = found[0].path, found[0].version, found[0].prefix
    if call.policy.backend == "native" and path.startswith(f"{call.cache}/pythons/"):
        path, prefix = path.replace(f"{call.cache}/pythons", "/python", 1), ""
    prefix = "" if prefix.startswith(("/usr", "/nix/store", "/gnu/store")) else prefix
    why = f"the script requires {requires}, {wanted} is not that or" if requires else wanted
    note = f"Python {version} was used: {why} could not be had"
    note = "" if f"{version}.".startswith(f"{wanted}.") else note
    return _interpreters.setdefault(key, Interpreter(path, version, prefix, note))


@contextlib.contextmanager
def _locked(
    path: Path, cancel: Fd, kind: int = fcntl.LOCK_EX, wait: float = float("inf")
) -> Iterator[None]:
    """Hold a lock that also keeps other servers out; it goes with the process that holds it."""
    until = time.monotonic() + wait
    with open(path, "a") as file:
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                break
            if _ready([cancel], 0.05):
                raise SandboxError("cancelled while another run installs the same")
        yield


def _write(path: Path, text: str) -> None:
    """Write a private file at once or not at all, whoever else does."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    new.touch(0o600)
    new.write_text(text)
    os.rename(new, path)


def _shorten(text: str) -> str:
    """Return what helps of uv's words: no drawing, first and last lines."""
    lines = [re.sub(r"^[\s\u2500-\u257f\u00d7]+", "", line) for line in text.splitlines()]
    noise = r"Using|Resolved|Prepared|warning|Run 'docker"
    lines = [line for line in lines if line and not re.match(noise, line)]
    if len(lines) >= 14:
        lines[4:-8] = ["..."]
    return _printable(" ".join(lines), 1500) or "nothing"


_NO_INDEX = """(?i)dns error|error sending request|could not connect|timed out|tcp connect
|network was disabled|network is unreachable""".replace("\n", "")
_NO_WHEEL = r"no usable wheels|--no-build|[Bb]uilding source distributions"


def prepare(call: Call) -> Environment:
    """Return an environment with the requirements, from the cache or installed by uv.

    Raises InvalidScript with the resolver's words, Unavailable if the network or the time fails.
    The key is what makes an environment; anything unpinned is looked up anew every week.
    """
    began, used, python = time.monotonic(), call.cache / "used", call.python
    salt = used / "salt"  # scripts cannot guess a key
    if not salt.exists():
        _write(salt, secrets.token_hex(16))
    pinned = all(re.search(r"===?[^*]*$|@", r.partition(";")[0]) for r in call.requirements)
    index = [(k, v) for k, v in uv_environment("").items() if "INDEX" in k or "LINKS" in k]
    engine = _engines.get(call.policy.docker_image, "")
    parts = [salt.read_text(), python.path, python.version, engine, call.newer, index]
    parts += [sorted(call.requirements), "" if pinned else time.strftime("%G-%V")]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
    record, path = used / key, f"{call.inside}/envs/{key}/bin/python"
    made = call.cache / "store/envs" / key

    def known() -> Environment | None:
        with contextlib.suppress(OSError, ValueError):
            if call.policy.backend == "docker" or made.exists():
                os.utime(record)
                return Environment(path, tuple(json.loads(record.read_text())))
        return None

    if environment := known():
        return environment
    with _locked(used / f"{key[:3]}.lock", call.cancel):
        if not known():
            with contextlib.suppress(FileNotFoundError):  # a killed server left it unrecorded
                os.rename(made, _new(call))
            _write(record, json.dumps(_install(call, key, pinned)))
    return Environment(path, tuple(json.loads(record.read_text())), time.monotonic() - began)


def _stub(requirements: Iterable[str]) -> bytes:
    """Return a script of metadata alone; JSON strings of printable ASCII are TOML strings."""
    listed = json.dumps([r.replace("\t", " ").strip() for r in requirements])
    return f"# /// script\n# dependencies = {listed}\n# ///\n".encode() if requirements else b"\n"


def _new(call: Call) -> Path:
    """Return a place for what is being made; its name tells its age, which a build cannot change."""
    return call.cache / "store/new" / f"{secrets.token_hex(8)}-{int(time.time())}"


def _install(call: Call, key: str, pinned: bool) -> list[str]:
    """Make an environment: offline or online first, the other next, from source last."""
    policy, docker = call.policy, call.policy.backend == "docker"
    if not call.requirements and not docker:  # no need of uv, nor of the network
        return _make_empty(call, key)
    call.say("resolving and installing")
    tries = ["offline", "online"] if pinned else ["online", "offline"]
    reach = re.compile("(?i)index|links|proxy")
    settings = "".join(f"{k}={v}\n" for k, v in uv_environment("").items() if reach.search(k))
    secret = re.search("@|PASSWORD=|USERNAME=", settings)  # a build could read it
    words = ""
    while tries:
        how = tries.pop(0)
        seen = _try_install(call, key, how)
        if seen.why != "exited":
            limit = f"took longer than --install-timeout {policy.install_timeout:g} s"
            raise Unavailable(f"installing {limit if seen.why == 'timeout' else 'was cancelled'}")
        if seen.code == 0:
            names = [name.removesuffix(".dist-info") for name in seen.out.text(MB).split()]
            return sorted(name.replace("-", "==", 1) for name in names)
        if seen.limit:
            more = "--memory, --cache-size or --max-processes gives it more"
            raise InvalidScript(f"installing the dependencies met the {seen.limit}: {more}")
        words = words if how == "offline" and words else seen.err.text()
        if how == "online" and not re.search(_NO_INDEX, words):
            tries = []
        build = policy.build and not docker and not secret and how != "source"
        if build and re.search(_NO_WHEEL, words):
            tries = ["source"]
            call.say("building from source")
    raise _explain_uv(words)


def _explain_uv(words: str) -> SandboxError:
    """Turn what uv printed before it gave up into one sentence with the remedy."""
    said = _shorten(words)
    if re.search("invalid peer certificate|UnknownIssuer", words):
        remedy = "set SSL_CERT_FILE to the bundle of your certificate authority"
        return Unavailable(f"the package index is not trusted: {remedy} ({said[:300]})")
    if re.search(_NO_INDEX, words) and not re.search("unsatisfiable|Failed to build", words):
        return Unavailable(f"the package index cannot be reached: {said}")
    if re.search(_NO_WHEEL, words):
        said += " (there is no wheel for this Python: name another version)"
    return InvalidScript(f"the dependencies cannot be installed: {said}")


def _make_empty(call: Call, key: str) -> list[str]:
    """Make a virtual environment without packages: a link and a line of configuration."""
    fresh = _new(call)
    (fresh / "bin").mkdir(parents=True)
    (fresh / "bin/python").symlink_to(call.python.path)
    (fresh / "pyvenv.cfg").write_text(f"home = {os.path.dirname(call.python.path)}\n")
    for path in (fresh, fresh / "bin", fresh / "pyvenv.cfg"):  # whose uid can remove it, too
        os.chown(path, *[SANDBOX_UID if _drop() else -1] * 2)
    os.rename(fresh, call.cache / "store/envs" / key)
    return []


def _try_install(call: Call, key: str, how: str) -> Captured:
    """Let uv make an environment in a new place, and move it to its own if that went well."""
    fresh, part, backend = _new(call), "", call.policy.backend
    options = {"online": ["--no-build"], "offline": ["--no-build", "--offline"]}.get(how, [])
    if how == "source" and backend == "native":  # nothing else can be written
        part = f"/new/{fresh.name}"
        fresh.mkdir()
        os.chown(fresh, *[SANDBOX_UID if _drop() else -1] * 2)
    final = f"{call.inside}/envs/{key}" if backend == "docker" else ""
    words = [f"{call.inside}/new/{fresh.name}", final, *options]
    with _locked(call.cache / "used/installs", call.cancel, fcntl.LOCK_SH):
        seen = _step(call, PREPARE, *words, part=part, network=bool(call.requirements))
    failed = seen.code or seen.why != "exited"
    if part:  # what a build left must be removable; it may be too deep for us
        call = replace(call, cancel=None)
        mend = 'chmod -R u+rwX "$1"' + ('; rm -rf "$1"/* "$1"/.[!.]*' if failed else "")
        _step(call, mend, words[0], part=part, uv=False)
    if failed:
        with contextlib.suppress(RecursionError):
            shutil.rmtree(fresh, ignore_errors=True)
        # uv was killed: what it unpacked lies in the cache
        if seen.limit or seen.why == "timeout":
            _evict(replace(call, cancel=None))
    elif not final:
        os.rename(fresh, call.cache / "store/envs" / key)
    return seen


def _compile(call: Call, environment: Environment) -> None:
    """Byte-compile an environment once, with neither network nor cache; no code of it runs."""
    key = environment.key
    done = call.cache / "used" / f"{key}.compiled"
    if environment.packages and not done.exists():
        lib = f"{call.inside}/envs/{key}/lib"
        if _step(call, COMPILE, lib, part=f"/envs/{key}", uv=False).why != "cancelled":
            done.touch()  # also where time ran out: it would again


def _evict(call: Call) -> None:
    """Keep the cache below its limit: the environments that were not used for longest go first."""
    used, go = call.cache / "used", 'cd "$1"; shift'
    ages = {p.name: time.time() - p.stat().st_mtime for p in used.iterdir() if len(p.name) == 32}
    keys = sorted(ages, key=lambda key: -ages[key])
    killed = f"""for d in new/*; do [ "${{d##*-}}" -gt {int(time.time()) - 3600} ] ||
        {{ chmod -R u+rwX "$d"; rm -rf "$d"; }}; done 2>/dev/null"""  # left by killed servers
    measure = f'{go}; {killed}; du -sck cache new "$@" | tail -n 1'
    seen = _step(call, measure, call.inside, *(f"envs/{key}" for key in keys), uv=False)
    size = re.match(r"\d+", seen.out.text())  # nothing where the host has no du
    full = size is not None and int(size[0]) > call.policy.cache_size << 10
    idle = [key for key in keys if ages[key] > 3600]
    going = idle[: len(idle) // 2 + 1] if full else keys[:-MAX_ENVIRONMENTS]
    for name in (f"{key}{suffix}" for key in going for suffix in ("", ".compiled")):
        (used / name).unlink(missing_ok=True)
    if gone := [f"envs/{key}" for key in going] + ["cache"] * full:
        remove = 'chmod -R u+rwX -- "$@"; rm -rf -- "$@"; mkdir -p cache'
        with _locked(used / "installs", None, wait=60):  # they would miss what they have fetched
            _step(call, f"{go}; {remove}", call.inside, *gone, uv=False)


# ---- the public calls


@functools.cache
def _mount(text: str) -> Bind:
    """Return the bind of a --mount; raise Unavailable for what must not be shown to scripts.

    A path is resolved once: a script that may write must not turn a link elsewhere later.
    """
    path = os.path.realpath(re.sub(":r[ow]$", "", text))
    taken = "/(?:proc|sys|dev|etc|usr|run|python|pysbx|work|tmp/home)(?:/|$)"
    cache = str(cache_dir("native").parent)
    if re.search(":(?!r[ow]$)", text):
        raise Unavailable(f"--mount {text}: only ':rw' or ':ro' may follow the path")
    if not os.path.exists(path):
        raise Unavailable(f"--mount {path}: there is no such file or directory")
    if _shows_home(path):
        raise Unavailable(f"--mount {path} shows a home directory, or /tmp: name one below")
    if stat.S_ISSOCK(os.stat(path).st_mode):
        raise Unavailable(f"--mount {path} is a socket: scripts could talk to who listens")
    below = (f"{d}/{name}" for d, names, files in os.walk(path) for name in names + files)
    for name in itertools.islice(below, MAX_MOUNTED):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.lstat(name).st_mode):
                why = "scripts could talk to who listens, read-only or not"
                raise Unavailable(f"--mount {path} holds the socket {name}: {why}")
    if _holds(path, cache) or _holds(cache, path):
        raise Unavailable(f"--mount {path} shows pysbx's own cache: name another directory")
    if re.match(taken, path):
        raise Unavailable(f"--mount {path}: the sandbox has its own of that, choose another place")
    return path, path, text.endswith(":rw")


def _holds(path: str, other: str) -> bool:
    """Tell whether a path is another one, or a directory above it."""
    return os.path.commonpath([path, other]) == path


def _shows_home(path: str) -> bool:
    """Tell whether a real path is, or holds, a home directory or /tmp."""
    users = [user for user in pwd.getpwall() if user.pw_uid == 0 or user.pw_uid >= 1000]
    homes = ["/home", "/root", "/tmp", os.path.expanduser("~"), *(user.pw_dir for user in users)]
    return any(_holds(path, os.path.realpath(home)) for home in homes)


def mounts(policy: Policy) -> list[Bind]:
    """Return the binds of all --mount; one below a writable other is not safe in bwrap."""
    binds = list(dict.fromkeys(map(_mount, policy.mounts)))
    for (one, _, _), (other, _, _) in itertools.permutations(binds, 2):
        if _holds(other, one):
            raise Unavailable(f"--mount {one} lies in --mount {other}: one of them is enough")
    return binds


def run_spec(policy: Policy, prefix: str = "") -> Spec:
    """Return the sandbox of a script; the same for all scripts of a policy, whatever they import."""
    env, binds = dict(SCRIPT_ENV), mounts(policy)
    native, limits = policy.backend == "native", ["", ""]
    shown, files = _operator_files({"NETRC": "/dev/null"}) if native else ([], [])
    if policy.network != "off":
        for name in PROXIES:  # without the credentials in them: --pass-env gives the whole
            if value := os.environ.get(name):
                env[name] = re.sub(r"\A((?:\w+://)?).*@", r"\1", value)
        own = os.path.isfile(os.environ.get("SSL_CERT_FILE", ""))
        ca = CA_FILE if native else "/pysbx/ca.pem" if own and policy.backend == "docker" else ""
        env |= {"SSL_CERT_FILE": ca, "REQUESTS_CA_BUNDLE": ca} if ca else {}
    env |= {name: os.environ[name] for name in policy.pass_env if name in os.environ}
    if native:
        programs = map(os.path.realpath, os.environ.get("PATH", "").split(":"))
        stores = [place for place in programs if re.match("/(?:nix|gnu)/store/", place)]
        env["PATH"] = ":".join([env["PATH"], *stores])
        environments = (f"{cache_dir('native')}/store/envs", "/pysbx/envs", False)
        binds += [*shown, environments, *_python_binds(prefix)]
        more = 8 if _cgroup_parents() else 0  # the group meets its limit first, and tells
        limits = [str(max(policy.disk, SHM_MB) * 2048), str(policy.max_processes + more)]
    elif policy.backend == "docker":
        binds += [(VOLUME, "/pysbx", False)]
    program = (DOCKER_GATE if policy.backend == "docker" else GATE, "sh", *limits)
    return Spec(policy, tuple(binds), tuple(files), tuple(env.items()), program)


_spares: dict[tuple[Spec, str], Sandbox] = {}  # by what its gate has read, "" so far nothing
_settled: dict[Policy, tuple[Policy, str]] = {}
_lock = threading.Lock()
_CLOSER = concurrent.futures.ThreadPoolExecutor(4, thread_name_prefix="pysbx-closer")
_freeing: set[concurrent.futures.Future[None]] = set()


def _keep_spare(spec: Spec, line: str = "") -> None:
    """Start a sandbox ahead of time, unless a fresh one waits; end those of another kind."""
    if (waiting := _spares.get((spec, line))) and waiting.fresh(SPARE_AGE / 2):
        return
    sandbox = Sandbox(spec)
    try:
        if line:
            sandbox.start_python(line)
    except OSError:  # it ended just now
        return _free(sandbox)
    with _lock:
        for key in [k for k in _spares if k[0] != spec or bool(k[1]) == bool(line)]:
            _free(_spares.pop(key))
        _spares[spec, line] = sandbox


def end_spares() -> None:
    """End the sandboxes that wait, and finish freeing what others held."""
    with _lock:
        for key in list(_spares):
            _free(_spares.pop(key))
    concurrent.futures.wait(list(_freeing), GRACE)


def _free(sandbox: Sandbox) -> None:
    """Close a sandbox off the path of a call: nothing in it is alive, or nobody waits for it."""
    closing = _CLOSER.submit(sandbox.close)
    _freeing.add(closing)
    closing.add_done_callback(_freeing.discard)


def _sandbox(spec: Spec, cancel: Fd, line: str) -> Sandbox:
    """Return a spare of this kind that is fresh, if possible with its interpreter, or a new one."""
    for waits in (line, ""):
        with _lock:
            spare = _spares.pop((spec, waits), None)
        if spare and spare.fresh(SPARE_AGE):
            spare.cancel = cancel
            return spare
        if spare:
            _free(spare)
    try:
        return Sandbox(spec, cancel)
    except Unavailable:  # what worked does not any more: it is tried anew
        for policy in [policy for policy in _settled if policy.require_sandbox]:
            _settled.pop(policy, None)
        raise


def settle(policy: Policy, say: Say = lambda text: None) -> tuple[Policy, str]:
    """Return the policy with a backend that works here, and a warning if it is not the one asked for.

    It is tried by starting it. Raises Unavailable if none works and the policy requires a sandbox.
    """
    if policy in _settled:
        return _settled[policy]
    mounts(policy)
    problems: list[str] = []
    linux = sys.platform == "linux"
    first: Backend = "docker" if policy.backend == "native" and not linux else policy.backend
    named = first == "docker" and (policy.require_sandbox or policy.docker_runtime)
    usable = [b for b in get_args(Backend) if b != "native" or linux and not named]
    for backend in [first, *(b for b in usable if first not in (b, "none"))]:
        candidate = replace(policy, backend=backend)
        try:
            if backend == "docker":
                _docker_ready(candidate, say)
            if backend != "none":
                _keep_spare(run_spec(candidate))
            elif policy.network != "on" or policy.docker_runtime:  # more than it can keep
                raise Unavailable("it cannot keep the --network or --docker-runtime asked for")
            elif problems and policy.require_sandbox:
                break
        except (Unavailable, ValueError) as error:
            problems.append(f"{backend}: {error}")
            continue
        how = f"{backend} is used instead" if problems else ""
        how = "the script runs WITHOUT A SANDBOX" if backend == "none" else how
        return _settled.setdefault(policy, (candidate, "; ".join(filter(None, [how, *problems]))))
    raise Unavailable("no sandbox works here and one is required: " + "; ".join(problems))


def _docker_ready(policy: Policy, say: Say) -> None:
    """Make sure of the engine, the image and the volume; raise Unavailable with the next step."""
    docker, image, runtime = policy.docker_path, policy.docker_image, policy.docker_runtime
    if not shutil.which(docker):
        raise Unavailable(f"{docker} was not found: install docker, or name it with --docker-path")
    code, said, words = _ask([docker, "info", "--format", "{{json .}}"], wait=20)
    if code or "errors during connect" in words or "Cannot connect" in said + words:
        remedy = "start it, or set DOCKER_HOST"
        if "permission denied" in words:
            remedy = "join the group docker ('sudo usermod -aG docker $USER') and log in again"
        raise Unavailable(f"the engine cannot be reached: {remedy} ({_shorten(words)[:200]})")
    if policy.network == "public":
        raise Unavailable("docker cannot close only the local network: use --network on or off")
    runtimes = json.loads(said).get("Runtimes") or {}
    if runtime and runtime not in runtimes:
        raise Unavailable(f"the engine has no runtime {runtime}, but {', '.join(runtimes)}")
    inspect = [docker, "image", "inspect", "--format", "{{.Id}}", image]
    if _ask(inspect)[0]:
        say(f"pulling the image {image}")
        code, _, words = _ask([docker, "pull", "-q", image], wait=1800)
        if code:
            why = f"the image {image} cannot be pulled ({_shorten(words)[:300]})"
            raise Unavailable(f"{why}: try '{docker} pull {image}', or give --docker-image")
    _sweep(docker)
    ca = os.environ.get("SSL_CERT_FILE", "")
    bundle = Path(ca).read_bytes() if os.path.isfile(ca) else b""
    command = f"""cd /pysbx && mkdir -p cache envs new pythons && rm -f ca.pem &&
        cat >ca.pem && chown {NOBODY}:{NOBODY} cache envs new pythons && chmod 311 envs &&
        ([ -s id ] || cat /proc/sys/kernel/random/uuid >id) && chmod 600 id && cat id"""
    argv = f"""run -i --rm --pull never --network none --user 0 --cap-drop ALL --cap-add CHOWN
        --cap-add FOWNER --entrypoint sh --label pysbx={_server()}
        --mount type=volume,src={VOLUME},dst=/pysbx {image} -c"""
    for wait in (20, 60):  # a busy engine may lose one, and would never answer
        code, volume, words = _ask([docker, *argv.split(), command], wait=wait, said=bundle)
        if not code:
            break
    else:
        raise Unavailable(f"a container cannot be started: {_shorten(words)[:300]}")
    _engines[image] = volume + _ask(inspect)[1]  # a new volume or image makes new environments


def _sweep(docker: str) -> None:
    """Remove the containers of servers of this host that are dead."""
    listing = "ps -a --filter label=pysbx --format".split()
    listed = _ask([docker, *listing, '{{.ID}} {{.Label "pysbx"}}'])
    for container, _, server in (line.partition(" ") for line in listed[1].splitlines()):
        node, pid, started = (server.split(":") + ["", "0"])[:3]
        if node == os.uname().nodename and pid.isdigit() and _start_time(int(pid)) != started:
            _ask([docker, "rm", "-f", container])


# a pipe cannot be read again, as Python does for an encoding that is not UTF-8
_CODING = re.compile(rb"(?:[^\n]*\n)?[^\n]*coding")
_last: dict[Policy, tuple[Call, str]] = {}
_uncompiled: list[tuple[Call, Environment]] = []


def _begin(
    script: str, dependencies: Iterable[str], policy: Policy, cancel: Fd, say: Say | None
) -> tuple[Call, bytes, list[str]]:
    """Check what a caller sent, settle sandbox and interpreter -> call, script, notes."""
    if not isinstance(script, str):
        raise InvalidScript("the script must be text")
    source = script.encode("utf-8", "surrogatepass")
    if len(source) > MAX_SCRIPT:
        raise InvalidScript(f"the script has {len(source):,} bytes, the limit is {MAX_SCRIPT:,}")
    if not script.strip():
        raise InvalidScript("the script is empty: send Python code")
    metadata = read_metadata(script)
    wanted = tuple(dict.fromkeys([*metadata.dependencies, *check_requirements(dependencies)]))
    if len(wanted) > MAX_REQUIREMENTS:
        raise InvalidScript(f"{len(wanted)} dependencies are too many: at most {MAX_REQUIREMENTS}")
    say = say or (lambda text: None)
    settled, warning = settle(policy, say)
    notes = [f"warning: {warning}"] if warning else []
    for note in notes:
        say(note)
    python = choose_python(Call(settled, say, cancel), metadata.requires_python)
    call = Call(settled, say, cancel, python, wanted, metadata.exclude_newer)
    return call, source, [*metadata.warnings, *filter(None, [python.note]), *notes]


def _line(environment: Environment, policy: Policy, timeout: float = 30.0) -> str:
    """Return what the gate of a script reads: seconds of CPU time (in a container, of time)."""
    cores = (os.cpu_count() or 1) if policy.backend != "docker" else 1
    return f"{(int(timeout) + 2) * cores} {environment.python}"


def run(
    script: str,
    *,
    dependencies: Iterable[str] = (),
    timeout: float = 30.0,
    policy: Policy = Policy(),
    cancel: Fd = None,
    progress: Say | None = None,
    echo: Echo | None = None,
) -> Result:
    """Run a script once and return what it did; whatever that was, it is not an exception.

    `timeout` in seconds counts the script's own time only. `cancel` is a descriptor: the run ends
    when it can be read. `progress` gets words such as "installing". `echo` gets (0 or 1, bytes) of
    stdout and stderr as they come. Raises InvalidScript or Unavailable if nothing was run.
    """
    if not timeout > 0:
        raise InvalidScript(f"the time limit must be more than 0 seconds, not {timeout}")
    call, source, notes = _begin(script, dependencies, policy, cancel, progress)
    environment = prepare(call)
    with contextlib.suppress(OSError):  # it is in use for so long: see _evict
        until = time.time() + timeout
        os.utime(call.cache / "used" / environment.key, (until, until))
    _uncompiled.append((call, environment))
    line = _line(environment, call.policy, timeout)
    _last[policy] = call, line
    piped = len(source) <= 1 << 16 and not _CODING.match(source)
    spec, total = run_spec(call.policy, call.python.prefix), policy.max_output_bytes
    sandbox = _sandbox(spec, cancel, line if piped else "")
    try:
        call.say("running")
        seen = run_capped(sandbox, line, source, timeout, (total + 1) // 2, echo)
        files = sandbox.files(notes)
    finally:  # nothing is alive by now; what is left to free need not be waited for
        _free(sandbox)
    err = min(seen.err.total, max(total // 2, total - seen.out.total))
    if echo:
        shown = sandbox.backend != "docker"  # the heads were echoed while it ran
        echo(0, seen.out.show(total - err, len(seen.out.head) * shown))
        echo(1, seen.err.show(err, len(seen.err.head) * shown))
    return Result(
        status=seen.why,
        exit_code=seen.code,
        limit=seen.limit,
        seconds=seen.seconds,
        stdout=seen.out.text(total - err),
        stderr=seen.err.text(err),
        stdout_bytes=seen.out.total,
        stderr_bytes=seen.err.total,
        install_seconds=environment.seconds,
        isolation=sandbox.isolation(),
        python=call.python.version,
        packages=environment.packages,
        notes=tuple(notes),
        files=files,
    )


def after_run(policy: Policy, *, spare: bool = True) -> None:
    """Off the path of a run: keep a sandbox for the next, compile what the last one installed."""
    if policy in _last:
        call, line = _last.pop(policy)
        with contextlib.suppress(Exception):  # upkeep: the run that it follows went well
            if spare and call.policy.backend != "none":
                spec = run_spec(call.policy, call.python.prefix)
                if call.policy.backend == "native" and not call.requirements:
                    _keep_spare(spec, line)  # where no code of a package can run as it starts
                _keep_spare(spec)
            grown = False
            while _uncompiled:
                made, environment = _uncompiled.pop()
                grown |= environment.seconds > 0
                with contextlib.suppress(SandboxError, OSError):  # it may be gone by now
                    _compile(Call(made.policy, nice=10, python=made.python), environment)
            if grown:  # only then is the cache worth a walk
                _evict(Call(call.policy, nice=10))


def warm(policy: Policy, requirements: Iterable[str]) -> str:
    """Install packages at low priority, so that they are in the cache; return how it went."""
    try:
        call = Call(settle(policy)[0], nice=19, requirements=check_requirements(requirements))
        call = replace(call, python=choose_python(call, None))
        made = prepare(call)
        if not requirements:  # what most scripts want: an interpreter may wait in it
            _last.setdefault(policy, (replace(call, nice=0), _line(made, call.policy)))
        return f"{len(made.packages)} packages are ready"
    except (SandboxError, OSError) as error:
        return f"failed: {error}"


def validate(
    script: str,
    *,
    dependencies: Iterable[str] = (),
    policy: Policy = Policy(),
    cancel: Fd = None,
    progress: Say | None = None,
) -> Report:
    """Check a script without running it: metadata, syntax under the Python it would get, versions.

    Raises InvalidScript for unusable metadata, Unavailable if it cannot be checked here.
    """
    call, source, notes = _begin(script, dependencies, policy, cancel, progress)
    # a message shows lines of the file that it names
    checker = f"with open('script.py', 'wb') as f:\n    f.write(s := {source!r})\n".encode()
    checker += b"compile(s, '/work/script.py', 'exec', dont_inherit=True)"
    line = _line(prepare(replace(call, requirements=(), newer="")), call.policy, 60)
    with contextlib.closing(Sandbox(run_spec(call.policy, call.python.prefix), cancel)) as sandbox:
        seen = run_capped(sandbox, line, checker, 60)
    problems, packages = [], []
    if seen.code:
        said = seen.err.text(4000)
        said = said[max(0, said.rfind('  File "/work/script.py", line ')) :].rstrip()
        problems.append(f"it does not compile:\n{said}")
    if call.requirements:
        seen = _step(call, RESOLVE, "--no-build")
        if seen.code and re.search(_NO_INDEX, seen.err.text()):
            seen = _step(call, RESOLVE, "--no-build", "--offline")
        packages = [line for line in seen.out.text(MB).splitlines() if re.search("==| @ ", line)]
        said = f"the dependencies cannot be resolved: {_shorten(seen.err.text())}"
        builds = call.policy.build and call.policy.backend != "docker"
        if seen.code and builds and re.search(_NO_WHEEL, said):
            notes.append("no wheel of some dependency: it would be built from source")
        elif seen.code:
            problems.append(said)
    return Report(call.python.version, tuple(packages), tuple(notes), tuple(problems))


# what the script of check() sees, and what it means: subject | if so | if not | how bad
LOOK = r"""import json, os, socket
fields = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
places = "/ /usr /etc /proc/sys/kernel/core_pattern /dev /pysbx /python".split()
print(json.dumps({
    "capabilities": int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0,
    "privileges": fields["NoNewPrivs"] == "1\n", "system calls": fields["Seccomp"] == "2\n",
    "user": os.stat("/usr").st_uid != os.getuid(),
    "system": not [place for place in places if os.access(place, os.W_OK)],
    "processes": len([p for p in os.listdir("/proc") if p.isdigit()]) < 10,
    "network": [n for _, n in socket.if_nameindex()] == ["lo"],
}))"""
MEANING = """capabilities | none | scripts hold some | FAIL
privileges | cannot be gained | setuid programs work | FAIL
system calls | filtered | not filtered | FAIL
user | not root on the host | root on the host, or of the container's image | CAUTION
system | read-only | can be written by scripts | FAIL
processes | only its own are seen | those of the host are seen | FAIL
limits | {limits} | {limits}; no cgroup can be made here: {delegate} | CAUTION
network | only a loopback of its own | {network} | CAUTION"""
DELEGATE = "exact limits need a systemd of this user (dbus-user-session, loginctl enable-linger)"
OLD_BWRAP = """CVE-2026-87766 (before 0.12, unless your distribution fixed it) cannot be used against
pysbx: no mount lies below a place that a script could write before"""


def check(policy: Policy = Policy()) -> list[Finding]:
    """Start the real sandbox, look at it from inside, and say what is well and what is not."""
    found: list[Finding] = []

    def add(fine: bool, subject: str, text: str, otherwise: Verdict = "FAIL") -> None:
        found.append(Finding("PASS" if fine else otherwise, subject, text))

    try:
        uv = find_uv(policy)
        add(True, "uv", f"{uv}, {_ask([uv, '--version'])[1].strip()}")
        settled, warning = settle(policy)
        add(settled.backend == policy.backend != "none", "backend", warning or settled.backend)
        if settled.backend != "none":
            found.append(_describe_backend(settled))
        python = choose_python(Call(settled), None)
        version = f"{python.version}, {python.path}"
        add(not python.note, "python", python.note or version, "CAUTION")
        result = run(LOOK, policy=policy)
        seen = json.loads(result.stdout)
        if settled.backend == "none":
            raise Unavailable("none: scripts run with your rights")
    except (SandboxError, ValueError) as error:
        add(False, "sandbox", str(error))
        return found
    seen["limits"] = "(by cgroup)" in result.isolation or "(by engine)" in result.isolation
    reach = "scripts reach what this machine reaches, its loopback too: --network off closes it"
    reach = "the engine's bridge: the local network too" if settled.backend == "docker" else reach
    reach = "the internet, not this host nor its network" if policy.network == "public" else reach
    text = MEANING.format(limits=result.isolation, network=reach, delegate=DELEGATE)
    for line in text.splitlines():
        subject, good, bad, verdict = line.split(" | ")
        fine = seen[subject] or subject == "network" and policy.network == "public"
        add(fine, subject, good if seen[subject] else bad, cast(Verdict, verdict))
    for path, _, writable in mounts(policy):
        kind = "can be written by scripts" if writable else "read-only"
        add(not writable, "mount", f"{path}, {kind}", "CAUTION")
    for name in policy.pass_env:
        there = name in os.environ
        add(False, "variable", f"{name} {'reaches scripts' if there else 'is not set'}", "CAUTION")
    cache = cache_dir(settled.backend)
    count = sum(len(path.name) == 32 for path in (cache / "used").iterdir())
    add(True, "cache", f"{cache}, {count} environments, at most {policy.cache_size} MB")
    return found


def _describe_backend(policy: Policy) -> Finding:
    """Say what the sandbox is made with: version of bwrap, or engine, image and volume."""
    if policy.backend == "docker":
        docker, form = policy.docker_path, "{{.ServerVersion}}, runtime {{.DefaultRuntime}}, "
        form += "cgroup v{{.CgroupVersion}}, {{.SecurityOptions}}"
        engine = _ask([docker, "info", "--format", form])[1].strip()
        size = _ask([docker, "system", "df", "-v", "--format", "{{json .Volumes}}"])[1]
        size = "".join(re.findall(rf'"Name":"{VOLUME}"[^}}]*"Size":"([^"]*)"', size)[:1])
        text = f"{engine}; image {policy.docker_image}; volume {VOLUME} {size}"
        return Finding("PASS", "engine", text)
    version = _ask([_bwrap()[0], "--version"])[1].split()[-1]
    text = f"{version}, {_bwrap()[0]}"
    if tuple(map(int, re.findall(r"\d+", version)[:2])) >= (0, 12):
        return Finding("PASS", "bwrap", text)
    return Finding("CAUTION", "bwrap", f"{text}; {' '.join(OLD_BWRAP.splitlines())}")


def main() -> int:
    """Run the script named on the command line with the default policy."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        result = run(Path(sys.argv[1]).read_text(encoding="utf-8"))
    except (IndexError, SandboxError, OSError, UnicodeError) as error:
        usage = "usage: python pysbx_sandbox.py SCRIPT"
        print(usage if isinstance(error, IndexError) else f"pysbx: {error}", file=sys.stderr)
        return 125
    notes = [f"pysbx: {note}\n" for note in result.notes]
    print(result.stdout, end="")
    print(result.stderr, *notes, sep="", end="", file=sys.stderr)
    return 124 if result.status == "timeout" else result.exit_code


if __name__ == "__main__":
    sys.exit(main())
