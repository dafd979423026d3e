"""The command line: streams and exit codes are the script's, our own lines say 'pysbx: '."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import HAS_BWRAP, PYSBX, ROOT, alive, until, wheel

needs_bwrap = pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed")


@needs_bwrap
def test_streams_and_exit_code_are_the_scripts(pysbx):
    done = pysbx(
        "--network",
        "off",
        script="import sys; print('o'); print('e', file=sys.stderr); sys.exit(5)",
    )
    assert (done.code, done.out, done.err) == (5, "o\n", "e\n"), done


@needs_bwrap
def test_a_scripts_own_125_keeps_its_output(pysbx):
    done = pysbx(script="import os; print('mine', flush=True); os._exit(125)")
    assert done.code == 125 and done.out == "mine\n" and not done.said, done


@needs_bwrap
def test_the_time_limit_is_124_with_what_was_printed(pysbx):
    done = pysbx("--default-timeout", "1", script="print('step'); import time; time.sleep(60)")
    assert done.code == 124 and done.out == "step\n" and "timed out" in done.err, done


@needs_bwrap
def test_a_signal_is_128_and_its_number_and_is_named(pysbx):
    done = pysbx(script="import ctypes; ctypes.string_at(0)")
    assert done.code == 139 and any("SIGSEGV" in line for line in done.said), done


@needs_bwrap
@pytest.mark.parametrize("package, code", [("alpha", 0), ("missing", 125)])
def test_on_a_terminal_one_line_says_what_is_under_way(index, fresh, tmp_path, package, code):
    made, ours_end = os.openpty()
    (tmp_path / "x.py").write_text("print('out')")
    argv = [*PYSBX, "--network", "off", "--with", package, str(tmp_path / "x.py")]
    env = {**os.environ, **index(wheel("alpha")).env, **fresh}
    done = subprocess.run(argv, stdout=-1, stderr=ours_end, env=env)
    os.close(ours_end)
    drawn = os.read(made, 1 << 16).decode()
    os.close(made)
    assert (done.returncode, done.stdout) == (code, b"" if code else b"out\n")
    assert "\r\x1b[Kpysbx: resolving and installing ..." in drawn
    last = drawn.rpartition("\r\x1b[K")[2]
    assert last.startswith("pysbx: the dependencies cannot be installed") if code else last == ""


@needs_bwrap
def test_a_script_on_stdin(pysbx):
    done = subprocess.run(
        [*PYSBX, "--network", "off", "-"], input=b"print(6 * 7)", capture_output=True
    )
    assert done.stdout == b"42\n", done


@needs_bwrap
def test_256_mb_of_output_do_not_fill_the_memory():
    script = "import sys\nfor _ in range(4096): sys.stdout.write('x' * 65535 + '\\n')"
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=-3); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    import sys
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(script)
        file.flush()
        done = subprocess.run(
            [sys.executable, "-c", code, *PYSBX, file.name], capture_output=True, text=True
        )
    assert int(done.stdout) < 80_000 and "left out" in done.stderr, done


@needs_bwrap
def test_files_go_to_the_directory_that_was_named_and_nowhere_else(pysbx, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").symlink_to("/etc")
    script = "import os; open('a', 'w').write('1'); os.makedirs('old'); open('old/b', 'w').write('2'); os.chmod('a', 0o6777)"
    done = pysbx("--files-out", str(target), script=script)
    assert (target / "a").read_text() == "1" and os.stat(target / "a").st_mode & 0o7777 == 0o644
    assert not os.path.exists("/etc/b") and any("old/b" in line for line in done.said), done


@needs_bwrap
def test_files_that_programs_obey_and_files_that_hang_are_not_written_to(pysbx, tmp_path):
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "program").touch(0o755)
    script = """import os
os.mkdir('.git')
for name in ('.git/config', '.envrc', 'pipe', 'program'): open(name, 'w').write('x')"""
    done = pysbx("--files-out", str(tmp_path), script=script, timeout=60)
    assert os.listdir(tmp_path / ".git") == [] and not (tmp_path / ".envrc").exists(), done
    assert "'.git/config' was not written: hidden" in done.err, done
    for name in ("pipe", "program"):
        assert (tmp_path / name).read_text() == "x"
        assert os.stat(tmp_path / name).st_mode & 0o7777 == 0o644


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--nonsense"], "nonsense"),
        (["--python-version", "2.7"], "2.7"),
        (["--python-version", "3.13; rm"], "3.13; rm"),
        (["--memory", "lots"], "lots"),
        (["--default-timeout", "0"], "0"),
        (["--default-timeout", "-5"], "default-timeout"),
        (["--default-timeout", "400", "--max-timeout", "300"], "max-timeout"),
        (["--network", "maybe"], "maybe"),
        (["--sandbox-backend", "chroot"], "chroot"),
        (["--sandbox-backend", "none", "--require-sandbox"], "require-sandbox"),
        (["--uv-path", "/nowhere/uv"], "/nowhere/uv"),
        (["--mount", "/nowhere"], "/nowhere"),
        (["--port", "99999"], "99999"),
        (["--transport", "http", "--files-out", "x"], "files-out"),
    ],
)
def test_bad_options_end_in_one_sentence_and_125(pysbx, options, word):
    script = None if "http" in options else "print('RAN')"
    done = pysbx(*options, script=script)
    assert done.code == 125 and "RAN" not in done.out, done
    assert len(done.err.splitlines()) == 1 and done.said and word in done.err, done


def test_a_file_that_is_not_there_is_one_sentence(pysbx):
    done = pysbx("/nowhere/script.py")
    assert done.code == 125 and len(done.said) == 1 and "Traceback" not in done.err, done


def test_bytes_that_are_not_utf8_are_refused_in_a_sentence(pysbx):
    done = pysbx(script=b"print('\xe9')")
    assert done.code == 125 and "UTF-8" in done.err and "Traceback" not in done.err, done


def test_doubled_metadata_is_refused_in_a_sentence(pysbx):
    block = "# /// script\n# dependencies = []\n# ///\n"
    done = pysbx(script=block + "\n" + block + "print('RAN')")
    assert done.code == 125 and "2 metadata blocks" in done.err and "RAN" not in done.out, done


def fake_path(tmp_path, **tools):
    """A PATH with sh, env, uv and python only, and fake tools: scripts, not mocks of subprocess."""
    import sys

    for name in ("sh", "env", "uv"):
        if where := shutil.which(name):
            (tmp_path / name).symlink_to(os.path.realpath(where))
    (tmp_path / "python3").symlink_to(sys.executable)
    for name, text in tools.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return {"PATH": str(tmp_path)}


def test_without_any_backend_it_runs_with_a_warning_or_refuses(pysbx, tmp_path):
    env = fake_path(tmp_path)
    done = pysbx(script="print('RAN')", env=env)
    assert (
        done.code == 0
        and done.out == "RAN\n"
        and any("WITHOUT A SANDBOX" in line for line in done.said)
    ), done
    done = pysbx("--require-sandbox", script="print('RAN')", env=env)
    assert done.code == 125 and "RAN" not in done.out and "install bubblewrap" in done.err, done


@contextlib.contextmanager
def serving(env):
    """A server over HTTP -> functions that run a script, and that ask for /health: code, text."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [*PYSBX, "--transport", "http", "--port", str(port), "--no-warm-cache", "--no-spare"]
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

    def ask(path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, answer.read().decode()

    def run(script):
        call = {"name": "execute_python", "arguments": {"script": script}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return ask("/mcp", json.dumps(body).encode())[1]

    env = {**os.environ, **env, "PYSBX_TOKEN": ""}
    with subprocess.Popen(argv, env=env, stderr=-3) as server, contextlib.ExitStack() as ending:
        ending.callback(server.kill)
        assert until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), 30)
        yield run, lambda: ask("/health")


def test_over_http_nothing_ever_runs_without_a_sandbox(tmp_path):
    with serving(fake_path(tmp_path)) as (run, health):
        said, (code, why) = run("print('RAN')"), health()
    assert "RAN" not in said and "install bubblewrap" in said
    assert code == 503 and "install bubblewrap" in why


@needs_bwrap
def test_a_server_whose_sandbox_breaks_is_unhealthy_until_it_works_again(fresh):
    place = Path(fresh["XDG_CACHE_HOME"], "bin")  # where the sandbox's uid can enter
    place.mkdir(0o755)
    broken = place / "broken"
    says = "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1"
    real = shutil.which("bwrap")
    shim = f'#!/bin/sh\nif [ -e {broken} ]; then {says}; fi\nexec {real} "$@"\n'
    with serving(fake_path(place, bwrap=shim)) as (run, health):
        assert "\\nRAN" in run("print('RAN')") and health()[0] == 200
        broken.touch()
        assert "AppArmor" in run("print('RAN')")
        code, why = health()
        assert code == 503 and "AppArmor" in why
        broken.unlink()
        assert health()[0] == 200 and "\\nRAN" in run("print('RAN')")


DENIED = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"  # Ubuntu 24.04 without a profile


def test_a_bwrap_that_may_not_make_namespaces_is_told_with_the_remedy(pysbx, tmp_path):
    env = fake_path(tmp_path, bwrap=DENIED)
    done = pysbx("--require-sandbox", script="print('RAN')", env=env)
    assert done.code == 125 and "AppArmor" in done.err and "RAN" not in done.out, done
    done = pysbx("--check", env=env)
    assert done.code == 1 and "AppArmor" in done.out and "WITHOUT A SANDBOX" in done.out, done


@needs_bwrap
def test_the_check_is_a_line_a_finding_and_an_exit_code(pysbx):
    done = pysbx("--check", "--network", "off")
    assert done.code == 0 and all(
        line.startswith(("PASS", "CAUTION")) for line in done.out.splitlines()
    ), done


@needs_bwrap
def test_the_backend_none_leaves_nothing_behind(pysbx, tmp_path, mark):
    tmp_path.chmod(0o755)
    script = f"""
import os, sys
print(os.environ['HOME'], os.getcwd())
os.makedirs('shut/in')
os.chmod('shut', 0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(99)', '{mark}'])
    os._exit(0)
os.wait()"""
    done = pysbx("--sandbox-backend", "none", script=script, env={"TMPDIR": str(tmp_path)})
    assert done.code == 0 and not os.listdir(tmp_path) and not alive(mark), done


@needs_bwrap
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_command_ends_the_script(number, mark, tmp_path):
    (tmp_path / "s.py").write_text(
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(99)', '{mark}'])"
    )
    process = subprocess.Popen([*PYSBX, str(tmp_path / "s.py")], stderr=-3)
    assert until(lambda: alive(mark), 60)
    process.send_signal(number)
    process.wait(10)
    assert until(lambda: not alive(mark), 2)


@needs_bwrap
def test_an_ignored_sigchld_changes_nothing(tmp_path):
    (tmp_path / "s.py").write_text("import sys; sys.exit(3)")

    def ignore():
        return signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    done = subprocess.run([*PYSBX, str(tmp_path / "s.py")], preexec_fn=ignore, capture_output=True)
    assert done.returncode == 3, done


@needs_bwrap
def test_the_audit_log_has_a_line_a_run_and_no_text_of_it(pysbx, tmp_path):
    log = tmp_path / "audit.jsonl"
    for script in ("print('secret text')", "1/0"):
        pysbx("--audit-log", str(log), script=script)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["exit_code"] for entry in lines] == [
        0,
        1,
    ] and "secret text" not in log.read_text()
    assert {"time", "script", "packages", "isolation", "status", "python"} <= lines[0].keys()
    done = pysbx("--audit-log", "/dev/full", script="print('ran')")
    assert done.out == "ran\n" and "audit log" in done.err, done


@needs_bwrap
def test_the_first_lines_of_the_readme_run_a_script(pysbx):
    done = pysbx("--with", "iniconfig", script="import iniconfig; print('ok')")
    if "cannot be reached" in done.err:
        pytest.skip("no package index can be reached: " + done.err[:200])
    assert done.out == "ok\n", done


def test_the_version_is_printed():
    done = subprocess.run([*PYSBX, "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("pysbx 1."), done


def test_start_up_of_the_command_does_not_import_the_sdk():
    import sys

    code = "import sys; import pysbx; print([m for m in sys.modules if m.split('.')[0] in ('mcp', 'pydantic', 'anyio')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done
    assert time


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_while_it_waits_for_its_script(number):
    with subprocess.Popen([*PYSBX, "-"], stdin=-1, stdout=-1, stderr=-1) as process:
        time.sleep(1)
        process.send_signal(number)
        assert process.wait(5) in (-number, 128 + number)
        assert b"Traceback" not in process.stderr.read()


@needs_bwrap
def test_output_that_cannot_be_written_ends_the_script_and_is_told(tmp_path):
    script, log = tmp_path / "s.py", tmp_path / "audit.jsonl"
    script.write_text("print('x' * 100)\nimport time; time.sleep(60)")
    with open("/dev/full", "w") as full:
        argv = [*PYSBX, "--audit-log", str(log), str(script)]
        done = subprocess.run(argv, stdout=full, stderr=-1, text=True, timeout=30)
    assert "cannot be written" in done.stderr and done.returncode not in (0, 125), done
    assert len(log.read_text().splitlines()) == 1


@needs_bwrap
def test_a_reader_that_stops_does_not_hold_the_script_past_its_limit(tmp_path, mark):
    script = tmp_path / "s.py"
    script.write_text(f"""import subprocess, sys
code = "print('y' * 300_000); import time; time.sleep(99)"
subprocess.run([sys.executable, "-c", code, "{mark}"])""")
    argv = [*PYSBX, "--default-timeout", "2", "--max-output-bytes", "1000000", str(script)]
    with subprocess.Popen(argv, stdout=-1, stderr=subprocess.STDOUT) as process:
        assert until(lambda: alive(mark), 60)
        assert until(lambda: not alive(mark), 10)
        said, _ = process.communicate()
    assert said.count(b"y") > 300_000 and b"timed out after 2 s" in said, said[-500:]


@needs_bwrap
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_launcher_may_close_the_streams(tmp_path, closed):
    script = tmp_path / "s.py"
    script.write_text("print('x'); raise SystemExit(7)")
    command = " ".join(map(shlex.quote, [*PYSBX, "--network", "off", str(script)]))
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, timeout=60)
    assert done.returncode == 7 and b"pysbx" not in done.stderr, done


@needs_bwrap
def test_a_script_gets_proxies_without_what_opens_them(pysbx):
    for value, left in (
        ("http://user:p@s3cret@proxy:1", "http://proxy:1"),
        ("http://user:p/s3cret@proxy:1", "http://proxy:1"),
        ("user:s3cret@proxy:1", "proxy:1"),
        ("http://proxy:1", "http://proxy:1"),
    ):
        done = pysbx(script="import os; print(os.environ['ftp_proxy'])", env={"ftp_proxy": value})
        assert done.out == f"{left}\n", done


@needs_bwrap
def test_output_that_was_cut_is_told_and_the_default_limit_follows_the_most(pysbx):
    options = ("--max-output-bytes", "1000", "--max-timeout", "10", "--pass-env", "NOT_THERE_X")
    done = pysbx(*options, script="print('x' * 1499)")
    assert done.code == 0 and "500 bytes of output were left out" in done.err, done
    assert "NOT_THERE_X" in done.err and len(done.out) < 1100, done


@needs_bwrap
def test_a_script_that_misses_a_file_is_told_why(pysbx):
    assert "--mount" in pysbx(script="open('data.csv')").err
