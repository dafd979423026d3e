"""What a script sees and what comes back, on the real native sandbox."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from conftest import HAS_BWRAP, ROOT, alive

import pysbx_sandbox
from pysbx_sandbox import InvalidScript, Policy, run

pytestmark = pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed")
OFF = Policy(network="off", require_sandbox=True)


def sh(script, timeout=30.0, policy=OFF, **more):
    return run(script, timeout=timeout, policy=policy, **more)


def test_streams_and_exit_code_come_back_apart():
    result = sh("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert (result.stdout, result.stderr, result.exit_code, result.status) == (
        "out\n",
        "err\n",
        7,
        "exited",
    )
    assert result.isolation.startswith("native, network off")


def test_the_script_is_a_file_of_its_own_and_main():
    result = sh(
        "import sys, os; print(__name__, __file__, sys.argv[1:], os.listdir('.'), os.getcwd())"
    )
    assert result.stdout == "__main__ /work/script.py [] ['script.py'] /work\n"


def test_line_numbers_of_a_traceback_are_those_that_were_sent():
    assert 'File "/work/script.py", line 3, in f' in sh("def f():\n\n    1 / 0\nf()").stderr


def test_text_is_utf8_whatever_the_locale_of_the_server(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    result = sh("print('é 世 🙂'); open('f','w').write('é'); print(len(open('f','rb').read()))")
    assert result.stdout == "é 世 🙂\n2\n"


def test_there_is_no_input_and_asking_for_it_fails_at_once():
    result = sh("input()")
    assert "EOFError" in result.stderr and result.seconds < 5


def test_nothing_of_the_servers_environment_is_seen(monkeypatch):
    monkeypatch.setenv("SECRET_OF_A_TEST", "hunter2-99")
    script = """
import glob, os
seen = [k for k, v in os.environ.items() if 'hunter2' + '-99' in v]
for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):
    try: seen += [path] if b'hunter2' + b'-99' in open(path, 'rb').read() else []
    except OSError: pass
print(seen)"""
    assert sh(script).stdout == "[]\n"
    passed = Policy(network="off", pass_env=("SECRET_OF_A_TEST",))
    assert (
        sh("import os; print(os.environ['SECRET_OF_A_TEST'])", policy=passed).stdout
        == "hunter2-99\n"
    )


def test_the_user_has_a_name_and_a_home_that_can_be_written():
    script = """
import getpass, os, pathlib, pwd
home = pathlib.Path.home()
(home / '.cache/x').mkdir(parents=True)
print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir == str(home), os.listdir('.'))"""
    assert sh(script).stdout == "sandbox True ['script.py']\n"


def test_output_before_a_timeout_is_kept():
    result = sh("print('step 1')\nimport time; time.sleep(60)", timeout=1)
    assert result.status == "timeout" and result.stdout == "step 1\n" and 0.9 < result.seconds < 4


def test_a_child_that_keeps_the_pipe_open_does_not_delay_the_answer():
    script = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(300)\nprint('done')"
    result = sh(script)
    assert result.stdout == "done\n" and result.seconds < 10


def test_no_daemon_of_a_run_is_alive_after_it(mark):
    script = f"""
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(300)', '{mark}'])
    os._exit(0)
os.wait(); print('done')"""
    assert sh(script).stdout == "done\n" and not alive(mark)


def test_a_script_that_ignores_and_stops_everything_ends_at_its_limit():
    script = """
import os, signal, time
for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)
while True: time.sleep(1)"""
    result = sh(script, timeout=1)
    assert result.status == "timeout" and result.seconds < 4


def test_a_crash_is_named_and_says_its_line():
    result = sh("import ctypes\nprint('before')\nctypes.string_at(0)")
    assert (result.exit_code, result.signal, result.stdout) == (139, "SIGSEGV", "before\n")
    assert "Fatal Python error" in result.stderr and "line 3" in result.stderr


def test_a_cancel_descriptor_ends_a_run():
    reader, writer = os.pipe()
    threading.Timer(0.8, os.write, (writer, b"x")).start()
    result = sh("print('on', flush=True); import time; time.sleep(60)", cancel=reader)
    assert result.status == "cancelled" and result.stdout == "on\n" and result.seconds < 5
    os.close(reader), os.close(writer)


def test_head_and_tail_of_a_flood_are_kept_and_the_middle_is_counted():
    small = Policy(network="off", max_output_bytes=2000)
    result = sh("for i in range(100000): print(i)", policy=small)
    assert result.stdout.startswith("0\n1\n2\n") and result.stdout.endswith("99999\n")
    assert (
        result.stdout_bytes == 588890 and "left out" in result.stdout and len(result.stdout) < 2200
    )


def test_a_stream_gets_the_room_the_other_one_leaves():
    small = Policy(network="off", max_output_bytes=1000)
    result = sh("import sys; sys.stderr.write('e' * 900); print('o' * 50)", policy=small)
    assert len(result.stderr) == 900 and len(result.stdout) == 51


def test_characters_are_not_cut_and_broken_bytes_are_replaced():
    small = Policy(network="off", max_output_bytes=101)
    assert "\N{REPLACEMENT CHARACTER}" not in sh("print('é世🙂' * 200)", policy=small).stdout
    result = sh(r"import os; os.write(1, b'a\xff\xed\xa0\x80b')")
    assert result.stdout.startswith("a") and result.stdout.endswith("b")
    json.dumps(result.stdout).encode("utf-8")


@pytest.mark.parametrize("text", ["print('a')\0\nprint('b')", "x = '\ud800'\nprint(x)"])
def test_text_that_python_cannot_hold_is_the_scripts_own_error(text):
    result = sh(text)
    assert result.exit_code and "pysbx_sandbox" not in result.stderr


def test_the_memory_limit_holds_for_all_processes_together_and_is_named():
    script = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        blocks = [bytearray(b'x' * (1 << 20)) for _ in range(100)]; time.sleep(20)
time.sleep(20)"""
    result = sh(script, policy=Policy(network="off", memory=256), timeout=25)
    assert result.limit == "memory limit", result


def test_shared_memory_of_many_processes_is_counted_too():
    script = """
import mmap, os, time
for _ in range(8):
    if os.fork() == 0:
        area = mmap.mmap(-1, 100 << 20); area.write(b'x' * (100 << 20)); time.sleep(20)
time.sleep(20)"""
    result = sh(script, policy=Policy(network="off", memory=256), timeout=25)
    assert result.limit == "memory limit", result


def test_address_space_that_is_only_reserved_does_not_count():
    script = "import mmap; area = mmap.mmap(-1, 16 << 30, flags=0x4022); area[0] = 1; print('ok')"
    assert sh(script).stdout == "ok\n"


def test_the_process_limit_holds_and_is_named():
    script = """
import os, time
try:
    for n in range(1000):
        if os.fork() == 0: time.sleep(30); os._exit(0)
except OSError as error:
    time.sleep(0.3); print(n, error); os._exit(1)"""
    result = sh(script, policy=Policy(network="off", max_processes=40))
    assert int(result.stdout.split()[0]) <= 40 and result.limit == "process limit", result


def test_a_full_disk_is_named():
    script = "f = open('big', 'wb', 0)\nwhile True: f.write(bytes(1 << 20))"
    result = sh(script, policy=Policy(network="off", disk=32))
    assert "No space left" in result.stderr and result.limit == "disk limit"


def test_a_flood_of_empty_files_is_bounded():
    script = "n = 0\nwhile True:\n    open(f'/tmp/{n}', 'w').close(); n += 1"
    result = sh(script, policy=Policy(network="off", memory=256), timeout=60)
    assert result.limit in ("memory limit", "disk limit"), result


def test_there_is_only_a_loopback_of_its_own_with_the_network_off():
    script = "import socket; print([n for _, n in socket.if_nameindex()])"
    assert sh(script).stdout == "['lo']\n"


def test_nothing_but_its_own_places_can_be_written():
    script = """
import os
places = ['/', '/usr', '/etc', '/dev', '/proc/sys/kernel/core_pattern', '/pysbx/envs', '/python', '/tmp', '/work', '/dev/shm']
print([p for p in places if os.access(p, os.W_OK)])"""
    assert sh(script).stdout == "['/tmp', '/work', '/dev/shm']\n"


def test_the_environments_of_others_cannot_be_listed():
    result = sh("import os; print(os.listdir('/pysbx/envs'))")
    assert "PermissionError" in result.stderr


def test_multiprocessing_and_threads_work():
    script = """
import multiprocessing, threading
from multiprocessing import shared_memory
def square(n): return n * n
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool: print(pool.map(square, range(4)))
    block = shared_memory.SharedMemory(create=True, size=80 << 20); block.buf[-1] = 7; block.close(); block.unlink()
    threads = [threading.Thread(target=square, args=(1,)) for _ in range(64)]
    [t.start() for t in threads]; print('ok')"""
    assert sh(script).stdout == "[0, 1, 4, 9]\nok\n"


def test_files_that_were_left_come_back_and_hostile_ones_do_not():
    script = r"""
import os
open('a.txt', 'w').write('hello'); os.makedirs('d/e'); open('d/e/b.bin', 'wb').write(bytes(10))
os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe'); os.link('a.txt', 'again'); open('bad\nname', 'w').write('x')
open('huge', 'wb').truncate(11 << 20)
for i in range(300): open(f'd/many{i}', 'w').write('x')"""
    result = sh(script)
    files = {f.name: f for f in result.files}
    assert files["a.txt"].data == b"hello" and "script.py" not in files and "link" not in files
    assert (
        "pipe" not in files
        and files["huge"].data is None
        and len(files) == pysbx_sandbox.MAX_FILES
    )
    assert any("left out" in note for note in result.notes)


def test_files_are_read_after_a_timeout_too():
    result = sh("open('a', 'w').write('1'); import time; time.sleep(60)", timeout=1)
    assert [f.data for f in result.files] == [b"1"]


def test_nothing_is_left_on_the_host(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = 'from pysbx_sandbox import *; print(run(\'open("x", "w").write("y")\', policy=Policy(network=\'off\')).exit_code)'
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "0\n", done.stderr
    assert os.listdir(tmp_path) == []


def test_runs_at_once_do_not_mix_their_output():
    results = {}

    def one(n):
        results[n] = sh(f"import time; time.sleep(0.2); print('answer {n}')").stdout

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == {n: f"answer {n}\n" for n in range(8)}


def test_a_run_survives_the_thread_that_started_another():
    def slow(found):
        found.append(sh("import time; time.sleep(2); print('slow')").stdout)

    found = []
    thread = threading.Thread(target=slow, args=(found,))
    thread.start()
    time.sleep(0.3)
    quick = threading.Thread(target=sh, args=("print(1)",))
    quick.start(), quick.join(), thread.join()
    assert found == ["slow\n"]


def test_a_mount_is_read_only_unless_it_says_rw(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o777)
    for directory in (shared, *list(shared.parents)[:-2]):
        os.chmod(directory, 0o777 if directory == shared else 0o755) if os.stat(
            directory
        ).st_uid == os.geteuid() else None
    (shared / "in.txt").write_text("data")
    os.chmod(shared, 0o777)
    script = f"print(open('{shared}/in.txt').read()); open('{shared}/out.txt', 'w').write('x')"
    result = sh(script, policy=Policy(network="off", mounts=(str(shared),)))
    assert result.stdout == "data\n" and "Read-only" in result.stderr
    assert sh(script, policy=Policy(network="off", mounts=(f"{shared}:rw",))).exit_code == 0
    assert (shared / "out.txt").read_text() == "x"


@pytest.mark.parametrize("path", ["/", "~", "/etc", "/nowhere/at/all", "/proc"])
def test_a_mount_that_shows_too_much_is_refused(path):
    with pytest.raises(pysbx_sandbox.Unavailable, match="--mount"):
        sh("print(1)", policy=Policy(network="off", mounts=(os.path.expanduser(path),)))


def test_a_mount_that_holds_a_socket_is_refused(tmp_path):
    (tmp_path / "below").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "below/it"))
        with pytest.raises(pysbx_sandbox.Unavailable, match="below/it: scripts could talk"):
            sh("print(1)", policy=Policy(network="off", mounts=(str(tmp_path),)))


@pytest.mark.parametrize("script", ["", "  \n", "x = 1\n" * 2_000_000])
def test_empty_and_huge_scripts_are_refused_in_a_sentence(script):
    with pytest.raises(InvalidScript):
        sh(script)


def test_thousands_of_dependencies_are_refused():
    with pytest.raises(InvalidScript, match="too many"):
        sh("print(1)", dependencies=[f"package-{n}" for n in range(3000)])


def test_a_dry_run_finds_syntax_errors_and_runs_nothing(tmp_path):
    report = pysbx_sandbox.validate("print('x')\ndef f(:\n    pass\n", policy=OFF)
    assert len(report.problems) == 1 and "line 2" in report.problems[0]
    assert pysbx_sandbox.validate("print('fine')", policy=OFF).problems == ()


def test_the_check_passes_here_and_looks_from_inside():
    found = {f.subject: f for f in pysbx_sandbox.check(OFF)}
    assert not [f for f in found.values() if f.verdict == "FAIL"], found
    assert found["capabilities"].verdict == found["system calls"].verdict == "PASS"


def test_the_one_file_works_alone(tmp_path):
    import shutil

    shutil.copy(ROOT / "pysbx_sandbox.py", tmp_path / "own.py")
    (tmp_path / "hello.py").write_text("print('hello')")
    done = subprocess.run(
        [sys.executable, "-I", "own.py", "hello.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "hello\n", done.stderr


# ---- an interpreter that waits for its script


def waited(script, wait=True, **more):
    """Run a script after a first one; tell whether an interpreter waited for it."""
    sh("pass", **more)
    pysbx_sandbox.after_run(OFF)
    kept = {line for _, line in pysbx_sandbox._spares if line}
    result = sh(script, **more)
    taken = kept - {line for _, line in pysbx_sandbox._spares}
    assert (bool(taken), len(kept)) == (wait, 1)
    return result


def test_an_interpreter_that_waited_runs_the_script_as_an_ordinary_file():
    script = """import inspect, os, resource, stat, sys
print(__file__, sys.argv, __spec__, os.listdir('.'), sys.stdin.read() == '')
print(stat.S_ISREG(os.stat(__file__).st_mode), open(__file__).read() == inspect.getsource(sys.modules['__main__']))
print(resource.getrlimit(resource.RLIMIT_CPU), [n for n in os.listdir('/proc/self/fd') if int(n) > 3])
os.remove('script.py')
"""
    result = waited(script)
    seconds = 32 * (os.cpu_count() or 1)  # of CPU time, on every core
    assert result.stdout == (
        "/work/script.py ['/work/script.py'] None ['script.py'] True\nTrue True\n"
        f"({seconds}, {seconds}) []\n"
    )
    assert result.seconds < 5 and not result.files


@pytest.mark.parametrize(
    "script", ["def f():\n\n    1 / 0\nf()", "x = (", "print('\0')", "# é\nx y"]
)
def test_errors_are_the_same_whether_an_interpreter_waited_or_not(script):
    pysbx_sandbox.end_spares()
    plain = sh(script)
    seen = waited(script)
    assert plain.exit_code and plain.stderr
    assert (seen.stdout, seen.stderr, seen.exit_code) == (
        plain.stdout,
        plain.stderr,
        plain.exit_code,
    )


def test_what_a_pipe_cannot_carry_gets_a_sandbox_without_an_interpreter():
    latin = waited("# -*- coding: latin-1 -*-\nprint(len('é'))", wait=False)
    assert latin.stdout == "2\n"
    assert waited(f"x = '{'y' * 70_000}'\nprint(len(x))", wait=False).stdout == "70000\n"
    assert waited("import time; time.sleep(9)", timeout=1).status == "timeout"


def test_every_run_has_a_hash_seed_of_its_own():
    assert len({waited("print(hash('a'))").stdout for _ in range(3)}) == 3


STEAL = """
import array, fcntl, os, termios, time
ends = [os.open(f"/proc/self/fd/{n}", os.O_RDONLY | os.O_NONBLOCK) for n in (1, 2)]
count = array.array("i", [0])
def left(n):
    fcntl.ioctl(ends[n - 1], termios.FIONREAD, count)
    return count[0]
for turn in range(100_000):
    one, other = (1, 2) if turn % 2 else (2, 1)
    os.write(one, b"." * 60_000)  # when these are read, the reader saw both
    os.write(other, b"!")
    end = time.monotonic() + 0.05
    while left(one) and time.monotonic() < end:
        pass
    try:
        os.read(ends[other - 1], 65_536)
    except BlockingIOError:
        pass
"""


def test_a_script_that_reads_its_own_output_cannot_hold_the_reader():
    result = run(STEAL, timeout=2, policy=OFF)
    assert result.status == "timeout" and result.seconds < 4


def test_a_crash_does_not_reach_the_hosts_handler_of_core_dumps():
    script = """import resource
print(resource.getrlimit(resource.RLIMIT_CORE)[0])
for limit in (0, 100):
    try: print(resource.setrlimit(resource.RLIMIT_CORE, (limit, limit)))
    except ValueError: print('refused')
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    assert run(script, policy=OFF).stdout == "1\nrefused\nrefused\n1024\n"


def test_streams_can_be_opened_by_path_and_what_is_the_hosts_has_an_owner():
    script = """import pathlib, pwd, socket
for name in ('out', 'err'):
    with open('/dev/std' + name, 'w') as stream: stream.write(name)
print(pathlib.Path('/usr').owner(), pwd.getpwnam('root').pw_uid)
"""
    result = run(script, policy=OFF)
    assert result.stderr == "err" and result.stdout == "outnobody 0\n", result
