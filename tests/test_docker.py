"""The docker backend on a real engine; base images are made locally by .ci/image.sh."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest
from conftest import HAS_DOCKER, PYSBX, ROOT, Client, until

import pysbx_sandbox

HAS_IMAGE = (
    HAS_DOCKER
    and not subprocess.run(
        ["docker", "image", "inspect", pysbx_sandbox.IMAGE], capture_output=True
    ).returncode
)
pytestmark = pytest.mark.skipif(
    not HAS_IMAGE, reason="no docker engine, or no base image: see .ci/image.sh"
)
DOCKER = ["--sandbox-backend", "docker", "--require-sandbox"]


def docker(*words, env=None, data=None):
    done = subprocess.run(
        ["docker", *words],
        capture_output=True,
        text=data is None,
        input=data,
        env={**os.environ, **(env or {})},
    )
    return done.stdout if data is None else done.stdout.decode()


shared = []  # the pid of the server that several tests call: its spare container waits all the time


def ours():
    """The containers of servers of this machine, but for those of the shared one."""
    listed = docker(
        "ps", "-a", "--filter", "label=pysbx", "--format", '{{.ID}} {{.Label "pysbx"}}'
    )
    rows = [line.split() for line in listed.splitlines()]
    return [row[0] for row in rows if row[-1].split(":")[1:2] not in shared]


@pytest.fixture(scope="module")
def server():
    one = Client(*DOCKER, "--network", "off")
    shared.append([str(one.process.pid)])
    yield one
    one.close()


def test_a_script_runs_with_streams_and_exit_code(pysbx):
    done = pysbx(
        *DOCKER,
        "--network",
        "off",
        script="import sys; print('o'); print('e', file=sys.stderr); sys.exit(5)",
    )
    assert (done.code, done.out, done.err) == (5, "o\n", "e\n"), done


def test_only_the_cache_volume_is_left_afterwards(pysbx):
    before = set(docker("volume", "ls", "-q").split())
    pysbx(*DOCKER, script="print(1)")
    assert until(lambda: not ours(), 5)
    assert set(docker("volume", "ls", "-q").split()) - before <= {pysbx_sandbox.VOLUME}


def test_packages_are_installed_on_the_volume_and_mounted_read_only(pysbx):
    script = "import iniconfig\nprint(iniconfig.__name__)\ntry: open(iniconfig.__file__, 'a')\nexcept OSError as e: print(e.strerror)"
    done = pysbx(*DOCKER, "--with", "iniconfig", script=script)
    if "cannot be reached" in done.err:
        pytest.skip("no package index can be reached from a container")
    assert done.out == "iniconfig\nRead-only file system\n", done


def test_it_sees_what_a_native_script_sees(server):
    script = """
import getpass, json, os, pathlib, pwd, socket, subprocess
home = pathlib.Path.home(); (home / 'x').write_text('y')
status = dict(l.split(':\\t', 1) for l in open('/proc/self/status') if ':\\t' in l)
print(os.getcwd(), os.listdir('.'), __file__, pwd.getpwuid(os.getuid()).pw_name != '', status['CapEff'].strip(), status['NoNewPrivs'].strip())
print([n for _, n in socket.if_nameindex()], [k for k in os.environ if 'PROXY' in k.upper() and os.environ[k]])
print([p for p in ('/', '/usr', '/etc', '/pysbx', '/tmp', '/work') if os.access(p, os.W_OK)])"""
    text, _ = server.result(server.run(script))
    assert "/work ['script.py'] /work/script.py True 0000000000000000 1" in text
    assert "['lo'] []" in text and "['/tmp', '/work']" in text, text


def test_files_come_back_without_bind_mounts(pysbx, tmp_path):
    script = "import os; open('a', 'w').write('1'); os.makedirs('d'); open('d/b', 'w').write('2'); os.symlink('/etc/passwd', 'l')"
    done = pysbx(*DOCKER, "--network", "off", "--files-out", str(tmp_path), script=script)
    assert (
        (tmp_path / "a").read_text() == "1"
        and (tmp_path / "d/b").read_text() == "2"
        and not (tmp_path / "l").exists()
    ), done


def test_a_timeout_ends_the_container_and_keeps_what_was_printed(pysbx):
    done = pysbx(
        *DOCKER,
        "--network",
        "off",
        "--default-timeout",
        "2",
        script="print('step', flush=True); import time; time.sleep(99)",
    )
    assert done.code == 124 and done.out == "step\n" and until(lambda: not ours(), 2), done


def test_a_child_that_holds_the_pipes_does_not_delay(server):
    text, _ = server.result(
        server.run(
            "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(99)\nprint('done')"
        ),
        20,
    )
    assert "done" in text


def test_running_out_of_memory_is_told_as_such(server):
    text, _ = server.result(
        server.run("x = bytearray(4 << 30)\nfor n in range(0, len(x), 4096): x[n] = 1")
    )
    assert "memory limit was reached" in text, text


def test_a_full_disk_is_told_as_such(server):
    text, _ = server.result(
        server.run("f = open('big', 'wb', 0)\nwhile True: f.write(bytes(1 << 20))")
    )
    assert "disk limit was reached" in text, text


def test_a_script_that_kills_its_gate_gets_an_ordinary_end(server):
    text, _ = server.result(
        server.run(
            "import os, signal, time; print('x', flush=True); os.kill(os.getppid(), signal.SIGKILL); time.sleep(9)"
        ),
        40,
    )
    assert "x" in text
    assert "fine" in server.result(server.run("print('fine')"))[0]


def test_a_forged_end_of_the_output_is_only_output(server):
    text, _ = server.result(
        server.run(r"print('\0' + '0' * 16 + ' 0 0 0 0 0'); import sys; sys.exit(3)")
    )
    assert text.startswith("exit code 3")


def test_a_flood_is_bounded(server):
    text, _ = server.result(
        server.run("import sys\nfor _ in range(2048): sys.stdout.write('x' * 65535 + '\\n')"), 90
    )
    assert "left out" in text and len(text) < 110_000


def test_eight_calls_at_once_get_their_own_answers(server):
    calls = {n: server.run(f"print('answer {n}!')") for n in range(8)}
    assert all(f"answer {n}!" in server.result(call, 120)[0] for n, call in calls.items())


def test_cancelling_ends_the_container():
    one = Client(*DOCKER, "--network", "off", "--no-spare")
    call = one.run("import time; time.sleep(60)")
    assert until(ours, 30)
    time.sleep(2)
    one.send({"method": "notifications/cancelled", "params": {"requestId": call}})
    assert until(lambda: not ours(), 3)
    one.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_is_killed_leaves_no_container(how):
    one = Client(*DOCKER, "--network", "off")
    one.run("import time; time.sleep(60)", timeout_seconds=60)
    assert until(ours, 30)
    time.sleep(2)
    one.process.send_signal(how)
    one.process.wait(10)
    assert until(lambda: not ours(), 3), ours()


def test_containers_of_dead_servers_are_removed_and_those_of_living_ones_are_not(server):
    import platform

    label = f"pysbx={platform.node()}:999999999:1"
    docker(
        "run",
        "-d",
        "--name",
        "pysbx-stale-test",
        "--label",
        label,
        "--entrypoint",
        "sleep",
        pysbx_sandbox.IMAGE,
        "300",
    )
    own = f"pysbx={platform.node()}:{os.getpid()}:{pysbx_sandbox._start_time(os.getpid())}"
    docker(
        "run",
        "-d",
        "--name",
        "pysbx-living-test",
        "--label",
        own,
        "--entrypoint",
        "sleep",
        pysbx_sandbox.IMAGE,
        "300",
    )
    try:
        pysbx_sandbox._sweep("docker")
        names = docker("ps", "-a", "--format", "{{.Names}}").split()
        assert "pysbx-stale-test" not in names and "pysbx-living-test" in names
    finally:
        docker("rm", "-f", "pysbx-stale-test", "pysbx-living-test")


def test_no_secret_is_in_a_command_line_or_reaches_the_script(pysbx, tmp_path):
    config = tmp_path / "config.json"
    config.write_text('{"proxies": {"default": {"httpProxy": "http://user:s3cret@127.0.0.1:9"}}}')
    env = {"DOCKER_CONFIG": str(tmp_path), "UV_INDEX_X_PASSWORD": "s3cret"}
    done = pysbx(
        *DOCKER,
        "--network",
        "off",
        script="import os; print([k for k, v in os.environ.items() if 's3cret' in v])",
        env=env,
    )
    assert done.out == "[]\n", done


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--docker-image", "127.0.0.1:9/no/such:image"], "cannot be pulled"),
        (["--docker-runtime", "no-such-runtime"], "no runtime no-such-runtime"),
        (["--docker-path", "/nowhere/docker"], "was not found"),
        (["--network", "public"], "local network"),
    ],
)
def test_what_the_engine_does_not_have_is_told_in_a_sentence(pysbx, options, words):
    done = pysbx(*DOCKER, *options, script="print('RAN')")
    assert (
        done.code == 125 and words in done.err and len(done.said) == 1 and "RAN" not in done.out
    ), done


def test_an_engine_that_is_down_is_told_in_a_sentence(pysbx):
    done = pysbx(*DOCKER, script="print('RAN')", env={"DOCKER_HOST": "tcp://127.0.0.1:9"})
    assert done.code == 125 and "engine cannot be reached" in done.err, done


def test_the_check_shows_the_engine(pysbx):
    done = pysbx(*DOCKER, "--check", "--network", "off")
    assert done.code == 0 and "docker" in done.out and "engine" in done.out, done


def test_the_dockerfile_builds_unmodified_and_its_image_works(pysbx):
    env = {**os.environ, "DOCKER_BUILDKIT": "0"}
    with tempfile.TemporaryDirectory() as context:
        for name in (
            "Dockerfile",
            "pyproject.toml",
            "README.md",
            "LICENSE",
            "pysbx.py",
            "pysbx_sandbox.py",
        ):
            shutil.copy(ROOT / name, context)
        build = [
            "docker",
            "build",
            "-q",
            "--network",
            "none",
            "-t",
            "pysbx-test-image",
            "--target",
            "sandbox",
            context,
        ]
        done = subprocess.run(build, env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    done = pysbx(
        *DOCKER,
        "--network",
        "off",
        "--docker-image",
        "pysbx-test-image",
        script="import sys; print(sys.version_info[:2])",
    )
    assert done.out == "(3, 13)\n", done


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_a_missing_image_is_pulled(pysbx, tmp_path):
    if not shutil.which("docker-registry"):
        pytest.skip("docker-registry is not installed")
    port = free_port()
    config = tmp_path / "registry.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/data}}}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n"
    )
    registry = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=-3, stderr=-3)
    try:
        tag = f"127.0.0.1:{port}/pysbx/test:1"
        docker("tag", pysbx_sandbox.IMAGE, tag)
        assert until(
            lambda: (
                not subprocess.run(["docker", "push", "-q", tag], capture_output=True).returncode
            ),
            30,
        )
        docker("rmi", tag)
        done = pysbx(*DOCKER, "--network", "off", "--docker-image", tag, script="print('pulled')")
        assert done.out == "pulled\n", done
    finally:
        docker("rmi", "-f", tag)
        registry.kill()
        registry.wait()


def test_a_remote_engine_works_without_seeing_our_files(pysbx, tmp_path):
    if os.geteuid() != 0 or not shutil.which("dockerd"):
        pytest.skip("a second engine needs root and dockerd")
    port, place = free_port(), tempfile.mkdtemp(prefix="pysbx-engine-")
    host = {"DOCKER_HOST": f"tcp://127.0.0.1:{port}"}
    argv = f"""dockerd -H tcp://127.0.0.1:{port} --data-root {place}/data --exec-root {place}/exec
        --pidfile {place}/pid --bridge pysbx-t2 --iptables=false --tls=false""".split()
    # a bridge of its own: with none, dockerd takes away the one of the first engine
    for words in ("link add pysbx-t2 type bridge", "addr add 172.31.77.1/24 dev pysbx-t2"):
        subprocess.run(["ip", *words.split()])
    engine = subprocess.Popen(argv, stdout=-3, stderr=-3)
    try:
        assert until(lambda: docker("info", "-f", "{{.ID}}", env=host).strip(), 40)
        saved = subprocess.run(["docker", "save", pysbx_sandbox.IMAGE], capture_output=True).stdout
        docker("load", env=host, data=saved)
        done = pysbx(
            *DOCKER,
            "--network",
            "off",
            "--files-out",
            str(tmp_path),
            script="open('a', 'w').write('far'); print('remote')",
            env=host,
        )
        assert done.out == "remote\n" and (tmp_path / "a").read_text() == "far", done
        assert until(lambda: not docker("ps", "-aq", env=host).split(), 3)
    finally:
        engine.terminate()
        engine.wait(20)
        subprocess.run("ip link del pysbx-t2".split())
        shutil.rmtree(place, ignore_errors=True)
    assert PYSBX
