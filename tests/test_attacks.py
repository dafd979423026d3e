"""Every attack of tests/attacks, one test each; attack_suite.py says how they are judged."""

import functools
import os
import shutil
import subprocess
import sys

import attack_suite
import pytest
from conftest import until

import pysbx_sandbox

ATTACKS = attack_suite.attacks()
HARMLESS = [attack for attack in ATTACKS if not attack_suite.left_out(attack, "none", "off")]
TIMEOUT = 30.0  # seconds a script has unless its header says otherwise

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the attacks are for Linux")


@pytest.fixture(scope="module")
def canaries():
    with attack_suite.Canaries() as made:
        yield made


@functools.cache
def unusable(backend: str) -> str:
    """Say why a backend cannot be attacked here, or ""."""
    if backend == "native":
        return attack_suite.works(backend) if shutil.which("bwrap") else "bwrap is not installed"
    if not shutil.which("docker"):
        return "docker is not installed"
    for argv in (["info"], ["image", "inspect", pysbx_sandbox.IMAGE]):
        done = subprocess.run(["docker", *argv], capture_output=True, text=True, timeout=60)
        if done.returncode or "Cannot connect" in done.stdout + done.stderr:
            return f"docker {argv[0]} says: {done.stderr.strip()[-200:]}"
    return attack_suite.works(backend)


def network_of(attack: attack_suite.Attack) -> str:
    return "on" if attack.network == "on" else "off"


def assert_held(attack: attack_suite.Attack, canaries, backend: str) -> None:
    if reason := unusable(backend) or attack_suite.left_out(attack, backend, network_of(attack)):
        pytest.skip(reason)
    attempt = attack_suite.Attempt(attack, canaries, backend, network_of(attack), TIMEOUT)
    verdict = attempt.run()
    assert verdict.held, f"{attack.tries}: {verdict.why}"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_native_sandbox_holds(attack, canaries):
    assert_held(attack, canaries, "native")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.skipif(os.geteuid() != 0, reason="the engine is the same for all: attacked as root")
def test_the_docker_sandbox_holds(attack, canaries):
    assert_held(attack, canaries, "docker")


def test_without_a_sandbox_a_third_of_the_harmless_attacks_escape(canaries):
    """The control, on a part of them: what never fires proves nothing."""
    named = ("read_secret_by_path", "reach_loopback", "write_into_host_directory")
    sample = [a for n, a in enumerate(HARMLESS) if a.name in named or n % 4 == 0 and not a.exit]
    verdicts = [attack_suite.Attempt(a, canaries, "none", "off", TIMEOUT).run() for a in sample]
    escaped = [verdict.attack.name for verdict in verdicts if not verdict.held]
    assert len(escaped) * 3 >= len(verdicts), escaped
    assert set(named) <= set(escaped)


def test_what_a_script_leaves_running_is_seen_from_outside(canaries):
    attempt = attack_suite.Attempt(HARMLESS[0], canaries, "none", "off", TIMEOUT)
    env = {attack_suite.MARK: attempt.mark, "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(["sleep", "60"], env=env) as left:
        try:
            assert until(lambda: attack_suite.marked(attempt.mark) == [left.pid], 5)
            attack_suite.end_marked(attempt.mark)
            assert left.wait(10) == -9
        finally:
            left.kill()
    assert attack_suite.marked(attempt.mark) == []


def test_what_is_written_on_the_terminal_is_seen_from_outside(canaries, tmp_path):
    """The control for the two attacks on the terminal, which no backend gives to a script."""
    code = "open('/dev/tty', 'w').write('@MARK@')"
    env = {attack_suite.MARK: "pysbxmark0", "PATH": "/usr/bin:/bin"}
    run = attack_suite.Run(
        [sys.executable, "-c", code.replace("@MARK@", "pysbxmark0")], tmp_path, env, TIMEOUT
    )
    run.start(canaries, ("terminal",))
    assert b"pysbxmark0" in run.shown


def test_bombs_refuse_to_start_outside_a_pid_namespace_of_their_own(canaries, tmp_path):
    """Neither with the words filled in nor as they are; a script without the guard fails here."""
    bombs = [attack for attack in ATTACKS if attack.bomb]
    assert len(bombs) > 10
    for attack in bombs:
        text = attack.path.read_text()
        guard = text.index('raise SystemExit("a bomb starts only')
        head = text[: text.index("\n", guard) + 1]
        assert "print" not in head and "fork()" not in head, attack.name
        filled = attack_suite.Attempt(attack, canaries, "native", "off", TIMEOUT)
        for script in (head, head.replace("@PIDNS@", filled.words["PIDNS"])):
            code = script + "\nprint('it started')\n"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            assert done.returncode == 1 and not done.stdout, attack.name


def test_every_class_has_attacks_and_every_header_is_right():
    assert {attack.kind for attack in ATTACKS} == set(attack_suite.CLASSES)
    for attack in ATTACKS:
        text = attack.path.read_text()
        assert "HELD:" in text or "ATTEMPTED:" in text or attack.exit == "refused", attack.name
        assert not any(len(line) > 99 for line in text.splitlines()), attack.name
