"""Packages and interpreters: real uv, a package index on loopback, hostile packages."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest
from conftest import BACKEND, HAS_BWRAP, PYSBX, ROOT, Done, sdist, wheel

import pysbx_sandbox

pytestmark = pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed")
BLOCK = "# /// script\n# dependencies = {}\n# ///\n"


def test_packages_of_the_block_and_of_the_call_are_installed_together(pysbx, index):
    made = index(wheel("alpha"), wheel("beta"))
    script = (
        BLOCK.format(["alpha"]).replace("'", '"')
        + "import alpha, beta; print(alpha.NAME, beta.NAME)"
    )
    done = pysbx("--with", "beta", script=script, env=made.env)
    assert done.out == "alpha beta\n" and done.err == "", done


def test_the_second_run_does_not_ask_the_index(pysbx, index, fresh):
    made = index(wheel("alpha"))
    pysbx("--with", "alpha", script="import alpha", env={**made.env, **fresh})
    asked = len(made.asked)
    done = pysbx(
        "--with", "alpha", script="import alpha; print('again')", env={**made.env, **fresh}
    )
    assert done.out == "again\n" and len(made.asked) == asked > 0, done


def test_with_the_index_gone_a_warm_cache_serves_another_environment(pysbx, index, fresh):
    made = index(wheel("alpha"), wheel("beta"))
    env = {**made.env, **fresh}
    pysbx("--with", "alpha", "--with", "beta", script="print()", env=env)
    made.shutdown(), made.server_close()
    done = pysbx("--with", "alpha", script="import alpha; print('offline')", env=env)
    assert done.out == "offline\n", done


def test_the_networks_absence_is_told_in_a_sentence(pysbx, fresh):
    env = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "NO_PROXY": "127.0.0.1", **fresh}
    done = pysbx("--with", "alpha", script="print('RAN')", env=env)
    assert done.code == 125 and "cannot be reached" in done.err and "Traceback" not in done.err, (
        done
    )


@pytest.mark.parametrize(
    ("requirements", "words"),
    [
        (["nothing-like-this"], "nothing-like-this was not found"),
        (["alpha==9"], "alpha"),
        (["alpha==1.0", "gamma"], "alpha==2"),
    ],
)
def test_the_resolvers_own_words_reach_the_user(pysbx, index, requirements, words):
    made = index(wheel("alpha"), wheel("gamma", requires=["alpha==2"]))
    options = [word for r in requirements for word in ("--with", r)]
    done = pysbx(*options, script="print('RAN')", env=made.env)
    assert (
        done.code == 125 and words in done.err and "RAN" not in done.out and len(done.said) == 1
    ), done


def test_nothing_of_uvs_chatter_is_in_the_scripts_stderr(pysbx, index, fresh):
    done = pysbx(
        "--with",
        "alpha",
        script="import sys; print('mine', file=sys.stderr)",
        env={**index(wheel("alpha")).env, **fresh},
    )
    assert done.err == "mine\n", done


def test_an_index_with_a_password_is_asked_and_the_script_does_not_learn_it(pysbx, index, fresh):
    made = index(wheel("alpha"), login="user:s3cret")
    script = "import alpha, os; print('s3cret' in str(os.environ), 's3cret' in open('/proc/1/environ').read())"
    done = pysbx("--with", "alpha", script=script, env={**made.env, **fresh})
    assert done.out == "False False\n" and made.asked and "s3cret" not in done.err, done


def test_pips_index_setting_is_obeyed(pysbx, index, fresh):
    made = index(wheel("alpha"))
    env = {
        "PIP_INDEX_URL": made.url,
        "UV_DEFAULT_INDEX": "",
        "UV_INDEX_URL": "",
        "NO_PROXY": "127.0.0.1",
        **fresh,
    }
    assert pysbx("--with", "alpha", script="import alpha; print('ok')", env=env).out == "ok\n"


def test_code_of_a_package_runs_only_in_the_sandbox_of_a_script(pysbx, index, fresh, tmp_path):
    """A .pth file runs whenever an interpreter of the environment starts (uv.md, '.pth traps')."""
    tmp_path.chmod(0o777)
    hook = f"import os; [open(p, 'w').write('x') for p in ('{tmp_path}/ran',) if os.path.isdir('{tmp_path}')]; os.environ.get('UV_CACHE_DIR') and open(os.environ['UV_CACHE_DIR'] + '/poison', 'w')\n"
    made = index(wheel("evil", files={"evil.py": "X = 1\n", "evil.pth": hook}))
    done = pysbx("--with", "evil", script="import evil; print(evil.X)", env={**made.env, **fresh})
    assert done.out == "1\n", done
    assert not os.listdir(tmp_path) and not list(walk(fresh["XDG_CACHE_HOME"], "poison"))


def test_an_interpreter_waits_only_where_no_package_could_run_code_as_it_starts(
    index, fresh, monkeypatch
):
    for key, value in {**index(wheel("alpha")).env, **fresh}.items():
        monkeypatch.setenv(key, value)
    policy = pysbx_sandbox.Policy(network="off")
    for packages in ([], ["alpha"]):
        pysbx_sandbox.end_spares()
        assert pysbx_sandbox.run("print(1)", dependencies=packages, policy=policy).exit_code == 0
        pysbx_sandbox.after_run(policy)
        waiting = {line for _, line in pysbx_sandbox._spares}
        assert len(waiting) == (1 if packages else 2)
    pysbx_sandbox.end_spares()


def test_an_environment_without_a_record_is_made_anew(index, fresh, monkeypatch):
    """A server that was killed, or an eviction that failed, left it."""
    for key, value in {**index(wheel("alpha")).env, **fresh}.items():
        monkeypatch.setenv(key, value)
    policy = pysbx_sandbox.Policy(network="off")
    for packages in ([], ["alpha"]):
        for _ in range(2):
            result = pysbx_sandbox.run("print(1)", dependencies=packages, policy=policy)
            assert result.exit_code == 0
            used = pysbx_sandbox.cache_dir("native") / "used"
            for record in (p for p in used.iterdir() if len(p.name) == 32):
                record.unlink()


def walk(top, name):
    return [os.path.join(d, f) for d, _, files in os.walk(top) for f in files if f == name]


HOSTILE = """
for path in ('{target}/built', os.path.join(os.environ.get('UV_CACHE_DIR', '/x'), 'poison'), '/usr/poison', '/python/poison', '/pysbx/cache/poison'):
    try: open(path, 'w').write('x')
    except OSError: pass
"""


def test_a_source_distribution_is_built_and_its_code_reaches_nothing_else(
    pysbx, index, fresh, tmp_path
):
    tmp_path.chmod(0o777)
    made = index(
        sdist("source", BACKEND.format(name="source", hostile=HOSTILE.format(target=tmp_path)))
    )
    done = pysbx(
        "--with", "source", script="import source; print(source.BUILT)", env={**made.env, **fresh}
    )
    assert done.out == "True\n", done
    assert not os.listdir(tmp_path) and not walk(fresh["XDG_CACHE_HOME"], "poison")
    store = os.path.join(fresh["XDG_CACHE_HOME"], "pysbx/native/store")
    assert not os.stat(store).st_mode & 0o077, "a setuid file of a build could be run by others"


@pytest.mark.parametrize(
    "setting",
    [{"UV_INDEX_PRIV_USERNAME": "tok3n"}, {"ALL_PROXY": "http://bob:s3cret@127.0.0.1:1"}],
)
def test_nothing_is_built_where_the_builder_would_see_a_secret(pysbx, index, fresh, setting):
    made = index(sdist("secretive", "import os"))
    env = {**made.env, **fresh, "NO_PROXY": "127.0.0.1", **setting}
    done = pysbx("--with", "secretive", script="print(1)", env=env)
    assert done.code == 125 and "no wheel" in done.err, done


def test_what_a_build_closes_can_be_removed_all_the_same(index, fresh, monkeypatch):
    hostile = """import glob, os
for place in glob.glob('/pysbx/new/*/'):
    if not os.path.exists(place + 'shut'):
        os.mkdir(place + 'shut')
        open(place + 'shut/file', 'w').close()
        os.chmod(place + 'shut', 0)
"""
    made = index(sdist("closing", BACKEND.format(name="closing", hostile=hostile)))
    for key, value in {**made.env, **fresh}.items():
        monkeypatch.setenv(key, value)
    policy = pysbx_sandbox.Policy(network="off")
    result = pysbx_sandbox.run("print(1)", dependencies=["closing"], policy=policy)
    assert result.exit_code == 0
    monkeypatch.setattr(pysbx_sandbox, "MAX_ENVIRONMENTS", 1)
    pysbx_sandbox.run("print(1)", policy=policy)
    pysbx_sandbox.after_run(policy, spare=False)
    cache = pysbx_sandbox.cache_dir("native")
    (kept,) = [p.name for p in (cache / "used").iterdir() if len(p.name) == 32]
    os.chmod(cache / "store/envs", 0o755)
    assert os.listdir(cache / "store/envs") == [kept] and not os.listdir(cache / "store/new")


@pytest.mark.skipif(shutil.disk_usage("/var/tmp").free < 8 << 30, reason="needs 8 GB of disk")
def test_a_build_cannot_fill_the_disk(pysbx, index, fresh):
    hostile = """import glob, os, time
for place in glob.glob('/pysbx/new/*/'):
    with open(place + 'large', 'w') as file:
        os.posix_fallocate(file.fileno(), 0, 5 << 30)
        time.sleep(20)
"""
    made = index(sdist("greedy", BACKEND.format(name="greedy", hostile=hostile)))
    env = {**made.env, **fresh}
    done = pysbx("--cache-size", "16", "--with", "greedy", script="print('RAN')", env=env)
    assert done.code == 125 and "met the disk limit" in done.err and "RAN" not in done.out, done
    assert not walk(fresh["XDG_CACHE_HOME"], "large")


def test_no_build_refuses_source_distributions_and_says_so(pysbx, index, fresh):
    made = index(sdist("source", BACKEND.format(name="source", hostile="")))
    done = pysbx(
        "--no-build", "--with", "source", script="print('RAN')", env={**made.env, **fresh}
    )
    assert done.code == 125 and "wheel" in done.err and "RAN" not in done.out, done


def test_racing_first_runs_make_one_environment(index, fresh):
    made = index(wheel("alpha"))
    results = []

    def one():
        results.append(
            Done(
                [*PYSBX, "--with", "alpha"],
                "import alpha; print('ok')",
                {**os.environ, **made.env, **fresh},
                120,
            ).out
        )

    threads = [threading.Thread(target=one) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == ["ok\n"] * 4
    used = os.listdir(os.path.join(fresh["XDG_CACHE_HOME"], "pysbx/native/used"))
    assert len([name for name in used if len(name) == 32]) == 1


def test_packages_are_compiled_after_the_first_run(pysbx, index, fresh):
    made = index(wheel("alpha"))
    env = {**made.env, **fresh}
    pysbx("--with", "alpha", script="import alpha", env=env)
    done = pysbx(
        "--with",
        "alpha",
        script="import alpha, os; import importlib.util; print(os.path.exists(importlib.util.cache_from_source(alpha.__file__)))",
        env=env,
    )
    assert done.out == "True\n", done


def test_the_packages_cannot_be_changed_by_a_script(pysbx, index):
    script = "import alpha\nopen(alpha.__file__, 'a').write('# changed')"
    done = pysbx("--with", "alpha", script=script, env=index(wheel("alpha")).env)
    assert "Read-only" in done.err, done


def test_the_cache_is_bounded(index, fresh, monkeypatch):
    made = index(wheel("alpha"), wheel("beta"))
    for key, value in {**made.env, **fresh}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(pysbx_sandbox, "MAX_ENVIRONMENTS", 1)
    policy = pysbx_sandbox.Policy(network="off")
    for name in ("alpha", "beta"):
        assert (
            pysbx_sandbox.run(f"import {name}", dependencies=[name], policy=policy).exit_code == 0
        )
        pysbx_sandbox.after_run(policy, spare=False)
    used = [p for p in os.listdir(pysbx_sandbox.cache_dir("native") / "used") if len(p) == 32]
    assert len(used) == 1


def test_a_cache_that_is_too_large_loses_what_was_idle_for_longest(index, fresh, monkeypatch):
    made = index(wheel("alpha"), wheel("beta", files={"beta.py": "", "data": "x" * (3 << 20)}))
    for key, value in {**made.env, **fresh}.items():
        monkeypatch.setenv(key, value)
    policy = pysbx_sandbox.Policy(network="off", cache_size=1)
    store, used = (pysbx_sandbox.cache_dir("native") / name for name in ("store", "used"))

    def use(name):
        result = pysbx_sandbox.run(f"import {name}", dependencies=[name], policy=policy)
        pysbx_sandbox.after_run(policy, spare=False)
        return result.exit_code, {p for p in os.listdir(used) if len(p) == 32}

    abandoned = store / f"new/abandoned-{int(time.time()) - 4000}"
    abandoned.mkdir()
    (alone,) = use("alpha")[1]
    hour_ago = time.time() - 4000
    os.utime(used / alone, (hour_ago, hour_ago))
    code, kept = use("beta")
    assert code == 0 and len(kept) == 1 and alone not in kept
    assert not (store / "envs" / alone).exists() and not os.listdir(store / "new")
    assert use("alpha")[0] == 0


def test_settings_of_uv_in_a_script_are_not_obeyed_but_told(pysbx, index):
    made = index(wheel("alpha"))
    block = f'# /// script\n# dependencies = ["alpha"]\n# [tool.uv]\n# index-url = "{made.url}"\n# ///\n'
    env = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "NO_PROXY": "127.0.0.1"}
    done = pysbx(script=block + "print('RAN')", env=env)
    assert done.code == 125 and not made.asked, done


def test_leftovers_of_the_servers_own_project_have_no_influence(pysbx, tmp_path):
    env = {
        "VIRTUAL_ENV": "/leaky",
        "PYTHONPATH": "/leaky",
        "UV_PROJECT": "/leaky",
        "CONDA_PREFIX": "/leaky",
        "PYTHONHOME": "",
    }
    done = pysbx(
        script="import os, sys; print([k for k, v in os.environ.items() if 'leaky' in v], any('leaky' in p for p in sys.path))",
        env=env,
    )
    assert done.out == "[] False\n" and done.err == "", done


def versions():
    done = subprocess.run([*PYSBX, "--check"], capture_output=True, text=True)
    assert done.stdout
    uv = pysbx_sandbox.find_uv(pysbx_sandbox.Policy())
    argv = [uv, "python", "list", "--output-format", "json", "--no-config"]
    rows = json.loads(subprocess.run(argv, capture_output=True, text=True).stdout or "[]")
    return {
        row["version"].rpartition(".")[0] for row in rows if row["implementation"] == "cpython"
    }


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14", "3.15"])
def test_scripts_run_on_the_python_that_was_asked_for(pysbx, version):
    done = pysbx(
        "--python-version", version, script="import sys; print('%d.%d' % sys.version_info[:2])"
    )
    if done.code == 125 and os.environ.get("CI") is None and "can be had" in done.err:
        pytest.skip(f"Python {version} cannot be had here: {done.err.strip()[:150]}")
    assert done.out == f"{version}\n", done


def test_requires_python_picks_another_one_and_the_result_says_so(pysbx):
    first = pysbx("--python-version", "3.12", script="print(1)")
    if first.code == 125:
        pytest.skip(f"Python 3.12 cannot be had here: {first.err.strip()[:150]}")
    block = '# /// script\n# requires-python = ">=3.13"\n# ///\n'
    done = pysbx(
        "--python-version", "3.12", script=block + "import sys; print(sys.version_info >= (3, 13))"
    )
    assert done.out == "True\n" and "requires >=3.13" in done.err, done


def test_a_python_that_does_not_exist_is_told_with_what_there_is(pysbx):
    done = pysbx(script='# /// script\n# requires-python = "==3.99.*"\n# ///\nprint("RAN")')
    assert (
        done.code == 125
        and "3.99" in done.err
        and "installed: 3." in done.err
        and "RAN" not in done.out
    ), done


@pytest.mark.parametrize("umask", ["077", "027"])
def test_a_narrow_umask_does_not_close_the_cache_to_the_sandbox(fresh, umask, tmp_path):
    env = {**os.environ, **fresh}
    del env["UV_PYTHON_INSTALL_DIR"]  # one is installed, too, where it can be
    code = "import pysbx_sandbox as s; print(s.run('print(6 * 7)').stdout)"
    argv = ["sh", "-c", f'umask {umask}; exec "$@"', "sh", sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, env=env)
    assert done.stdout == "42\n\n", done


def test_a_cache_that_is_removed_meanwhile_is_made_anew(fresh):
    code = """import os, subprocess, pysbx_sandbox as s
policy = s.Policy(network="off")
for cache in [s.cache_dir("native").parent] * 2:
    assert s.run("print(1)", policy=policy).stdout == "1\\n"
    s.after_run(policy)
    subprocess.run(["chmod", "-R", "u+rwX", cache], check=True)
    subprocess.run(["rm", "-r", cache], check=True)
s.end_spares()"""
    env = {**os.environ, **fresh}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, env=env)
    assert done.returncode == 0, done


def test_scripts_cannot_fill_the_disk_with_pythons(fresh):
    code = """import pysbx_sandbox as s
s.MAX_PYTHONS = 1
s.run('# /// script\\n# requires-python = "==3.99.*"\\n# ///\\n')"""
    env = {**os.environ, **fresh}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, env=env)
    where = f"{fresh['XDG_CACHE_HOME']}/pysbx/native/pythons"
    assert f"the most there may be: remove some of {where}".encode() in done.stderr, done


def test_the_download_of_a_python_can_be_cancelled(fresh):
    script = b'# /// script\n# requires-python = "==3.99.*"\n# ///\n'
    with socket.create_server(("127.0.0.1", 0)) as mirror:  # one that never answers
        mirror.settimeout(60)
        url = f"http://127.0.0.1:{mirror.getsockname()[1]}/downloads.json"
        env = {"UV_PYTHON_DOWNLOADS_JSON_URL": url, "NO_PROXY": "127.0.0.1"}
        env = {**os.environ, **fresh, **env}
        with subprocess.Popen([*PYSBX, "-"], stdin=-1, stderr=-1, env=env) as pysbx:
            pysbx.stdin.write(script)
            pysbx.stdin.close()
            asks, _ = mirror.accept()
            pysbx.terminate()
            assert pysbx.wait(5) == 125 and b"cancelled" in pysbx.stderr.read()
        asks.settimeout(5)
        with asks, asks.makefile("rb") as left:  # to its end: uv is gone
            assert left.read().startswith(b"GET ")


def test_the_files_of_the_wheel_are_the_two_modules(tmp_path):
    uv = pysbx_sandbox.find_uv(pysbx_sandbox.Policy())
    done = subprocess.run(
        [uv, "build", "--wheel", "-q", "-o", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
    )
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("hatchling cannot be fetched: " + done.stderr[-200:])
    import zipfile

    (built,) = tmp_path.glob("*.whl")
    names = {n for n in zipfile.ZipFile(built).namelist() if ".dist-info" not in n}
    assert names == {"pysbx.py", "pysbx_sandbox.py"}
    done = subprocess.run(
        [uv, "tool", "run", "--from", str(built), "pysbx", "--version"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("pysbx "), done
    assert sys
