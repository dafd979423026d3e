"""Drive one server hard for a bounded time, then look for what it mixed up or left behind.

    python tests/soak.py --runs N --at-once M --seconds LIMIT [--backend native|docker]

Good runs whose output carries a random word that must come back in the right answer, and between
them timeouts, cancels, floods, crashes and forked daemons; now and then the server is killed with
SIGKILL and started anew. At the end: no answer mixed up or missing, no leaked process (each has a
mark in its argv), descriptor, mount, container, cgroup or temporary directory, no traceback on
stderr, and memory that stays flat. Exit code 0: nothing was found, 1: something was, 2: scripts
cannot be run here. It ends only processes that it started. Standard library only.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import os
import random
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench import Gone, Server, Wrong, descendants, environment, memory, pysbx, text_of  # noqa: E402

ANSWER_LIMIT = 60.0  # seconds until an answer is called missing, over the script's own limit
CALM = 10.0  # seconds that a server may take to become idle, or what it started to vanish
GROWTH = 20.0  # MB that the server may grow from the 10 % to the 100 % mark of a life
DESCRIPTORS = 3  # more or less than at the start
WORD = re.compile(r"word-[0-9a-f]{16}")


# ---- what is run: (script, what the first line must say, what else the answer must have)


@dataclass(frozen=True)
class Run:
    """One call: WORD in the script is its own word, MARK what its processes have in their argv."""

    kind: str
    script: str
    first: str = r"exit code 0 after"  # a regular expression for the first line of the answer
    words: int = 1  # how often the word comes back at least
    timeout: int = 30
    cancel_after: tuple[float, float] | None = None
    tool: str = "execute_python"
    weight: int = 3


# os.posix_spawnp: to import subprocess or pathlib costs more than all the rest of a run
CHILD = "import os; os.posix_spawnp('sleep', ['sleep', 'MARK'], os.environ)\n"
DAEMON = """import os, sys
print("WORD", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "MARK"])
    os._exit(0)
os.wait()
"""
FLOOD = """import os
print("WORD", flush=True)
block = b"x" * 65535 + b"\\n"
for number in range({blocks}):
    os.write(1 + number % 2, block)
print("WORD")
"""
GOOD = """import sys, time
print("WORD")
time.sleep(hash("WORD") % 50 / 1000)
print("WORD", file=sys.stderr)
"""
FILES = """import os
print("WORD")
with open("WORD.txt", "w") as file:
    file.write("WORD " * 10)
os.mkdir("below")
with open("below/data.bin", "wb") as file:
    file.write(bytes(range(256)) * 500)
"""
SLEEPER = "print('WORD', flush=True)\n" + CHILD + "import time; time.sleep(50)\n"
CRASH = "print('WORD', flush=True)\n" + CHILD
SYNTAX = "print('WORD')\nword = = 1  # WORD\n"
REFUSED = "# /// script\n# dependencies = [1]\n# ///\nprint('WORD')\n"

KINDS = [
    Run("good", GOOD, words=2, weight=20),
    Run("one line", "print('WORD')\n", weight=8),
    Run("files", FILES, words=3, weight=5),
    Run("daemon", DAEMON, weight=5),
    Run("cancelled", SLEEPER, cancel_after=(0.0, 1.5), weight=5),
    Run("cancelled early or late", "print('WORD')\n", cancel_after=(0.0, 0.3), weight=5),
    Run("timeout", SLEEPER, "timed out after", timeout=1),
    Run("flood", FLOOD.format(blocks=300), words=2),
    Run("flood until timeout", FLOOD.format(blocks=10**9), "timed out after", timeout=1, weight=1),
    Run("segfault", CRASH + "import ctypes; ctypes.string_at(0)", r"exit code 139 \(SIGSEGV\)"),
    Run("os._exit", CRASH + "import os; os._exit(7)", "exit code 7 after"),
    Run("sys.exit", CRASH + "import sys; sys.exit(3)", "exit code 3 after"),
    Run("kills its group", CRASH + "import os; os.killpg(0, 9)", "exit code 137"),
    Run("kills all it sees", CRASH + "import os; os.kill(-1, 9); os.abort()", "exit code 13[47]"),
    Run("long text", "# " + "x" * 300_000 + "\nprint('WORD')", weight=1),
    Run("validated", SYNTAX, "problems were found", tool="validate_script", weight=1),
    Run("refused", REFUSED, "nothing was run", words=0, weight=1),
]


@dataclass
class Pending:
    run: Run
    word: str
    began: float
    cancel_at: float = float("inf")
    cancelled: bool = False


@dataclass
class Life:
    """One server: where it writes, what it had when it was idle, what was seen below it."""

    server: Server
    place: Path
    descriptors: int = 0
    spares: int = 0
    runs: int = 0  # that it is to get
    done: int = 0
    memory: list[tuple[int, float]] = field(default_factory=list)  # (runs done, MB)
    below: dict[int, str] = field(default_factory=dict)  # processes: pid, start time
    killed: bool = False


class Soak:
    """The runs, what is in flight, and the problems found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.random = options, random.Random(options.seed)
        self.mark = f"{300 + secrets.randbelow(100)}.{secrets.randbelow(10**9):09}"
        self.place = Path(tempfile.mkdtemp(prefix="pysbx-soak-", dir="/var/tmp"))
        self.place.chmod(0o755)
        self.pending: dict[int, Pending] = {}
        self.gone: dict[int, Pending] = {}  # cancelled: an answer may or may not come
        self.problems: collections.Counter[str] = collections.Counter()
        self.examples: dict[str, str] = {}
        self.counts: collections.Counter[str] = collections.Counter()
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)
        self.lives: list[Life] = []
        self.mounts = mounts_of_ours()
        self.until = time.monotonic() + options.seconds
        self.weights = [run.weight for run in KINDS]

    def problem(self, what: str, example: str = "") -> None:
        self.problems[what] += 1
        self.examples.setdefault(what, example)

    # -- a life of the server

    def begin(self, runs: int) -> Life:
        place = self.place / f"life-{len(self.lives)}"
        place.mkdir()
        backend = ["--sandbox-backend", self.options.backend, "--require-sandbox"]
        atonce = ["--max-concurrent", str(self.options.at_once), "--no-warm-cache"]
        with open(place / "stderr", "wb") as stderr:
            (place / "tmp").mkdir()
            server = Server(
                pysbx(*backend, *atonce), environment(TMPDIR=str(place / "tmp")), stderr.fileno()
            )
        life = Life(server, place, runs=runs)
        self.lives.append(life)
        server.initialize()
        for _ in range(3):
            word = f"word-{secrets.token_hex(8)}"
            said = text_of(server.wait(server.start(f"print({word!r})"), 600))
            if word not in said:
                server.close()
                raise Wrong(said)
            time.sleep(0.5)
        life.descriptors, life.spares = self.descriptors(life), len(descendants(server.pid))
        return life

    def descriptors(self, life: Life) -> int:
        return len(os.listdir(f"/proc/{life.server.pid}/fd"))

    def look(self, life: Life) -> None:
        """Remember what is below the server, and its memory."""
        life.below |= descendants(life.server.pid)
        if not life.memory or life.done > life.memory[-1][0]:
            life.memory.append((life.done, memory(life.server.pid)))

    def kill(self, life: Life) -> None:
        """SIGKILL, with runs in flight; everything below must vanish by itself."""
        self.look(life)
        life.killed = True
        life.server.process.kill()
        life.server.close()
        self.counts["lost with the server"] += len(self.pending)
        self.pending.clear()
        self.gone.clear()
        self.vanished(life)

    def end(self, life: Life) -> None:
        """Wait until it is idle, compare it with its start, hang up."""
        self.drain(life)
        until = time.monotonic() + CALM
        while True:
            self.look(life)
            descriptors = self.descriptors(life)
            below = descendants(life.server.pid)
            calm = len(below) <= life.spares and abs(descriptors - life.descriptors) <= DESCRIPTORS
            if calm or time.monotonic() > until:
                break
            time.sleep(0.2)
        life.memory.append((life.done, memory(life.server.pid)))
        if abs(descriptors - life.descriptors) > DESCRIPTORS:
            shown = [os.readlink(p) for p in links(Path(f"/proc/{life.server.pid}/fd"))]
            common = collections.Counter(re.sub(r"\d+", "N", s) for s in shown).most_common(6)
            text = f"{life.descriptors} -> {descriptors}: {common}"
            self.problem("the server's descriptors are not back", text)
        if len(below) > life.spares:
            shown = [command_line(pid) for pid in below]
            text = f"{life.spares} -> {len(below)}: {shown[:8]}"
            self.problem("an idle server has more processes than at its start", text)
        early, growth = self.growth(life)
        if growth > GROWTH:
            self.problem("the server's memory grows", f"{growth:.1f} MB over {early:.1f} MB")
        if life.server.close(5.0) != 0:
            self.problem("the server did not leave with 0 when its client hung up")
        self.vanished(life)

    def growth(self, life: Life) -> tuple[float, float]:
        """Return (memory at the 10 % mark, or when all threads had work, growth to the end) in MB."""
        last = life.memory[-1][1] if life.memory else 0.0
        mark = max(life.done / 10, 2 * self.options.at_once)
        early = next((mb for done, mb in life.memory if done >= mark), last)
        return early, last - early

    def vanished(self, life: Life) -> None:
        """Nothing that was below the server lives on, nor anything with our mark."""
        until = time.monotonic() + CALM
        while left := sorted({*alive(life.below), *marked(self.mark)}):
            if time.monotonic() > until:
                shown = ", ".join(f"{pid} {command_line(pid)}" for pid in left[:5])
                how = "killed" if life.killed else "ended"
                self.problem(f"processes outlive a server that was {how}", shown)
                break
            time.sleep(0.1)
        text = (life.place / "stderr").read_text(errors="replace")
        if "Traceback" in text or "Exception" in text:
            last = re.findall(r"(?m)^\w[\w.]*(?:Error|Exception)\b.*$", text)
            where = re.findall(r'File "[^"]*(pysbx\w*\.py)", line (\d+), in (\w+)', text)
            counted = collections.Counter(last).most_common(3)
            self.problem("a traceback on the server's stderr", f"{counted}, last at {where[-3:]}")
        left_over = sorted(p.name for p in (life.place / "tmp").iterdir())
        if left_over:
            how = "killed" if life.killed else "ended"
            text = f"{len(left_over)}: {left_over[:5]}"
            self.problem(f"temporary files of a server that was {how}", text)

    # -- the runs of a life

    def launch(self, life: Life) -> None:
        run = self.random.choices(KINDS, self.weights)[0]
        word = f"word-{secrets.token_hex(8)}"
        script = run.script.replace("WORD", word).replace("MARK", self.mark)
        if self.random.random() < 0.3:
            script += "\n# " + "y" * self.random.randrange(20_000) + "\n"
        arguments: dict[str, object] = {"script": script}
        if run.tool == "execute_python":
            arguments["timeout_seconds"] = run.timeout
        number = life.server.ask("tools/call", name=run.tool, arguments=arguments)
        pending = Pending(run, word, time.monotonic())
        if run.cancel_after:
            pending.cancel_at = pending.began + self.random.uniform(*run.cancel_after)
        self.pending[number] = pending
        self.counts[run.kind] += 1
        life.done += 1
        if life.done == max(-(-life.runs // 10), 2 * self.options.at_once):
            self.look(life)

    def cancel_due(self, life: Life) -> None:
        now = time.monotonic()
        for number, pending in list(self.pending.items()):
            if now >= pending.cancel_at:
                life.server.notify("notifications/cancelled", requestId=number, reason="soak")
                pending.cancelled = True
                self.gone[number] = self.pending.pop(number)
            elif now > pending.began + pending.run.timeout + ANSWER_LIMIT:
                self.problem(f"no answer: {pending.run.kind}")
                self.gone[number] = self.pending.pop(number)

    def take(self, message: dict[str, object]) -> None:
        """Check one answer against what was asked."""
        number = message.get("id")
        pending = self.pending.pop(number, None) or self.gone.pop(number, None)  # type: ignore[arg-type]
        if not pending:
            return self.problem("an answer that nobody waits for", str(message)[:300])
        run, said = pending.run, text_of(message)  # type: ignore[arg-type]
        self.seconds[run.kind].append(time.monotonic() - pending.began)
        words = WORD.findall(said)
        if set(words) - {pending.word}:
            self.problem(f"MIXED UP: the answer of another run: {run.kind}", said[:300])
        elif pending.cancelled:
            self.counts["answered in spite of a cancel"] += 1
        elif len(words) < run.words and "timed out" in run.first and re.match(run.first, said):
            self.counts["timed out before it printed"] += 1  # a busy machine: 64 at once
        elif len(words) < run.words:
            self.problem(f"output is missing: {run.kind}", said[:300])
        elif not re.match(run.first, said):
            self.problem(f"a wrong first line: {run.kind}", said[:300])

    def turn(self, life: Life) -> None:
        """Take what has come, cancel what is due."""
        nearest = min((p.cancel_at for p in self.pending.values()), default=float("inf"))
        message = life.server.receive(max(0.0, min(0.2, nearest - time.monotonic())))
        if message:
            self.take(message)
        self.cancel_due(life)

    def drain(self, life: Life) -> None:
        while self.pending:
            self.turn(life)
        time.sleep(0.5)
        while message := life.server.receive(0.2):
            self.take(message)
        self.gone.clear()

    def live(self, runs: int, kill: bool) -> None:
        """Give a server its runs; then kill it or let it end."""
        life = self.begin(runs)
        looked = 0.0
        try:
            while life.done < runs and time.monotonic() < self.until:
                while len(self.pending) < self.options.at_once and life.done < runs:
                    self.launch(life)
                    self.cancel_due(life)
                if time.monotonic() > looked + 0.3:
                    self.look(life)
                    looked = time.monotonic()
                self.turn(life)
            self.kill(life) if kill else self.end(life)
        except Gone:
            code = life.server.close()
            text = (life.place / "stderr").read_text(errors="replace")[-500:]
            self.problem("the server went away", f"exit code {code}, {text}")
            self.pending.clear()
            self.vanished(life)
        except BaseException:
            life.server.process.kill()
            raise

    def go(self) -> None:
        """Split the runs into lives, all but the last ended by SIGKILL at a random time."""
        total, kills = self.options.runs, self.options.kills
        cuts = sorted(self.random.randrange(total // 8, total // 2 + 1) for _ in range(kills))
        lives = [b - a for a, b in itertools.pairwise([0, *cuts, total]) if b > a]
        for number, runs in enumerate(lives):
            if time.monotonic() < self.until:
                self.live(runs, kill=number < len(lives) - 1)
        self.left_behind()

    def left_behind(self) -> None:
        """Look for what outlives a server: cgroup directories, containers, mounts."""
        pids = "|".join(str(life.server.pid) for life in self.lives)
        names = (
            os.path.join(directory, name)
            for directory, below, _ in os.walk("/sys/fs/cgroup")
            for name in below
        )
        if groups := [n for n in names if re.search(rf"/run-(?:{pids})-", n)]:
            self.problem("cgroup directories are left", f"{len(groups)}: {groups[:3]}")
        if self.options.backend == "docker" and (found := containers(pids)):
            self.problem("containers are left", str(found[:5]))
        if more := mounts_of_ours() - self.mounts:
            self.problem("mounts are left", str(sorted(more)[:3]))

    def report(self, began: float) -> None:
        runs = sum(life.done for life in self.lives)
        took = time.monotonic() - began
        print(
            f"{runs} of {self.options.runs} runs in {took:.0f} s, {self.options.at_once} at once,"
        )
        print(f"backend {self.options.backend}, seed {self.options.seed}")
        for kind, number in sorted(self.counts.items(), key=lambda item: -item[1]):
            times = sorted(self.seconds.get(kind, []))
            text = ""
            if times:
                p90 = times[-(-9 * len(times) // 10) - 1]
                text = f"  {statistics.median(times):6.2f} s median {p90:6.2f} p90 {times[-1]:6.2f} max"
            print(f"  {number:6} {kind:30}{text}")
        for life in self.lives:
            early, growth = self.growth(life)
            how = "killed" if life.killed else "ended"
            marks = [life.done * share / 100 for share in (10, 25, 50, 75)]
            steps = [next((mb for done, mb in life.memory if done >= m), early) for m in marks]
            memory_ = ", ".join(f"{mb:.1f}" for mb in (*steps, early + growth))
            print(
                f"  server {life.server.pid}: {life.done} runs, {how}; memory at 10, 25, 50, 75, "
                f"100 %: {memory_} MB; {life.descriptors} descriptors when idle"
            )
        for what, number in self.problems.items():
            print(f"PROBLEM ({number}x): {what}: {self.examples[what]}")
        if not self.problems:
            print("nothing was mixed up, missing or left behind")


def links(directory: Path) -> list[Path]:
    return [p for p in directory.iterdir() if p.is_symlink()]


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        text = (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
        return text[:120]
    return "gone"


def alive(processes: dict[int, str]) -> list[int]:
    """Return those that still live; zombies, which their parent will fetch, are not alive."""
    left = []
    for pid, started in processes.items():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if words[19] == started and words[0] not in "ZX":
                left.append(pid)
    return left


def marked(mark: str) -> list[int]:
    """Return the processes that have our mark as an argument of their own."""
    left = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in entry.read_bytes().split(b"\0"):
                left.append(int(entry.parent.name))
    return left


def mounts_of_ours() -> set[str]:
    """Return the mount points of this host that a native sandbox could have left."""
    ours = re.compile(
        r"/newroot|/oldroot|/pysbx/(?:native|none|envs)\b|/pysbx-(?:soak|run)-|^/work$"
    )
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return {line.split()[4] for line in lines if ours.search(line.split()[4])}
    return set()


def containers(pids: str) -> list[str]:
    """Return the containers that servers of ours started."""
    line = ["docker", "ps", "-a", "--filter", "label=pysbx", "--format"]
    until = time.monotonic() + 2 * CALM  # the engine takes its time
    while True:
        done = subprocess.run(
            [*line, '{{.Names}} {{.Label "pysbx"}}'], capture_output=True, text=True
        )
        found = [n for n in done.stdout.splitlines() if re.search(rf":(?:{pids}):\d+$", n)]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.5)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    p.add_argument("--runs", type=int, default=1000)
    p.add_argument("--at-once", type=int, default=16)
    p.add_argument("--seconds", type=float, default=600.0, help="no run is started after that")
    p.add_argument("--backend", choices=("native", "docker"), default="native")
    p.add_argument("--kills", type=int, default=-1, help="of the server (default: 1 in 2000 runs)")
    p.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    p.add_argument("--keep", action="store_true", help="keep the servers' stderr, and say where")
    options = p.parse_args()
    if options.kills < 0:
        options.kills = -(-options.runs // 2000) if options.runs >= 50 else 0
    began, soak = time.monotonic(), Soak(options)
    try:
        soak.go()
    except Wrong as error:
        print(f"scripts cannot be run here: {error}")
        return 2
    finally:
        if options.keep:
            print(f"the servers' stderr is below {soak.place}")
        else:
            shutil.rmtree(soak.place, ignore_errors=True)
    soak.report(began)
    return int(bool(soak.problems))


if __name__ == "__main__":
    sys.exit(main())
