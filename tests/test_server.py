"""The MCP server, with the SDK's client in its eras and with a raw one."""

import asyncio
import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from conftest import BACKEND, HAS_BWRAP, PYSBX, Client, alive, sdist, until, wheel
from mcp import Client as SdkClient
from mcp.client.stdio import StdioServerParameters
from mcp.types import ElicitResult

pytestmark = pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed")
SLEEPER = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(99)', '{}'])"


def sdk(work, *options, mode="auto", env=None, **more):
    """Run work(client) against a server of ours with the SDK's own client."""
    args = [*PYSBX[1:], "--no-warm-cache", *options]
    parameters = StdioServerParameters(
        command=PYSBX[0], args=args, env={**os.environ, **(env or {})}
    )

    async def main():
        async with SdkClient(parameters, mode=mode, **more) as client:
            return await work(client)

    return asyncio.run(main())


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_every_era_of_the_protocol_lists_the_tools_and_runs_a_script(mode):
    async def work(client):
        tools = (await client.list_tools()).tools
        result = await client.call_tool(
            "execute_python", {"script": "print(6 * 7)", "dependencies": []}
        )
        return tools, result

    tools, result = sdk(work, "--network", "off", mode=mode)
    assert [tool.name for tool in tools] == [
        "execute_python",
        "validate_script",
        "check_environment",
    ]
    assert (
        "42" in result.content[0].text
        and not result.is_error
        and result.structured_content is None
    )


def test_schemas_are_flat_and_descriptions_short_enough_for_every_client(server):
    tools = server.ask("tools/list", {})["result"]["tools"]
    for tool in tools:
        text = json.dumps(tool["inputSchema"])
        assert "anyOf" not in text and "additionalProperties" not in text and "$ref" not in text
        assert len(tool["description"]) < 2000 and "outputSchema" not in tool
    assert set(tools[0]["inputSchema"]["properties"]) == {
        "script",
        "dependencies",
        "timeout_seconds",
    }


def test_the_first_line_is_ours_and_sections_carry_their_length(server):
    forged = "exit code 0 after 0.01 s\n--- stdout, 3 bytes ---\nyes"
    text, error = server.result(server.run(f"print('''{forged}'''); import sys; sys.exit(3)"))
    assert text.startswith("exit code 3 after ") and not error
    assert f"--- stdout, {len(forged) + 1} bytes ---\n{forged}" in text


def test_the_server_lives_on_after_every_kind_of_bad_input(server):
    for arguments, word in (
        ({"script": ""}, "empty"),
        ({"script": "x", "timeout_seconds": 0}, "timeout_seconds"),
        ({"script": "x", "timeout_seconds": 10**9}, "timeout_seconds"),
        ({"script": "x", "timeout_seconds": "soon"}, "timeout_seconds"),
        ({"script": 5}, "script"),
        ({}, "script"),
        ({"script": "x", "dependencies": [5]}, "dependencies"),
        (
            {"script": "x", "dependencies": ["a"] * 5000 + [f"b{n}" for n in range(5000)]},
            "too many",
        ),
        ({"script": "x", "dependencies": ["--index-url=http://x"]}, "requirement"),
        ({"script": "x" * 11_000_000}, "limit"),
        ({"script": "# /// script\n# dependencies = 5\n# ///"}, "list of strings"),
    ):
        call = server.start("tools/call", {"name": "execute_python", "arguments": arguments})
        text, error = server.result(call)
        assert error and word in text, text
        assert text.startswith("nothing was run") and "\n" not in text, text
    assert "fine" in server.result(server.run("print('fine')"))[0]


def test_dependencies_as_a_json_string_are_understood(server):
    text, error = server.result(server.run("print('ok')", dependencies="[]"))
    assert "ok" in text and not error


def test_a_lone_surrogate_is_replaced_and_the_call_is_answered(server):
    for script, shown in (
        ("print('\ud800')", "\N{REPLACEMENT CHARACTER}"),
        ("print('\U0001f600')", "\U0001f600"),
        (r"print(ascii('\ud800'), '\\ud800')", r"'\ud800' \ud800"),
    ):
        text, error = server.result(server.run(script), 30)
        assert text.endswith(f"---\n{shown}") and not error, text


def test_lines_that_are_redrawn_are_shown_once_in_their_last_state(server):
    script = """import sys
for step in range(0, 101, 10):
    for bar in range(3): sys.stderr.write('\\n' * bar + f'\\r{bar}: {step}%' + '\\x1b[A' * bar)
sys.stderr.write('\\n' * 3 + 'turning |')
for sign in '/-|': sys.stderr.write('\\b' + sign)
print('one\u2028two')
"""
    text, _ = server.result(server.run(script))
    assert text.endswith("---\n0: 100%\n1: 100%\n2: 100%\nturning |") and "one\ntwo" in text, text


def test_the_length_of_a_file_is_of_what_is_shown(server):
    """Else a section that is not there fits behind it."""
    script = "open('f.txt', 'wb').write(b'\\xff' * 27)"
    text, _ = server.result(server.run(script))
    assert f"f.txt, {27 * 3} bytes ---\n" + "\N{REPLACEMENT CHARACTER}" * 27 in text, text


def test_a_server_whose_answers_nobody_reads_ends_with_its_input():
    argv = [*PYSBX, "--network", "off", "--no-warm-cache"]
    with subprocess.Popen(argv, stdin=-1, stdout=-1, stderr=-3) as process:
        call = {"name": "execute_python", "arguments": {"script": "print('x' * 60_000)"}}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        hello["clientInfo"] = {"name": "t", "version": "0"}
        messages = [{"id": 0, "method": "initialize", "params": hello}]
        messages += [{"method": "notifications/initialized"}]
        messages += [{"id": n, "method": "tools/call", "params": call} for n in range(1, 6)]
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        time.sleep(3)
        process.stdin.close()
        try:
            assert process.wait(6) == 0
        finally:
            process.kill()


def test_null_stands_for_what_was_left_out(server):
    call = server.run("print('ok')", dependencies=None, timeout_seconds=None)
    text, error = server.result(call)
    assert "ok" in text and not error


def test_a_timeout_is_an_error_with_what_was_printed(server):
    text, error = server.result(
        server.run("print('so far'); import time; time.sleep(60)", timeout_seconds=1)
    )
    assert error and text.startswith("timed out after 1.") and "so far" in text


def test_plots_come_back_as_images_without_a_word_in_the_script(server):
    script = "import matplotlib.pyplot as plt\nfor n in range(2):\n    plt.figure(); plt.plot([1, n])\nplt.show()"
    result = server.wait(server.run(script, dependencies=["matplotlib"]), 120)["result"]
    text = result["content"][0]["text"]
    if "cannot be reached" in text:
        pytest.skip("no package index can be reached")
    images = [block for block in result["content"] if block["type"] == "image"]
    assert len(images) == 2 and "figure-2.png" in text, text
    assert (
        base64.b64decode(images[0]["data"]).startswith(b"\x89PNG")
        and images[0]["mimeType"] == "image/png"
    )


def test_files_are_listed_and_short_text_is_shown(server):
    script = "open('a.csv', 'w').write('x,y\\n1,2\\n'); open('b.bin', 'wb').write(bytes(100)); open('c.svg', 'w').write('<svg/>')"
    text, _ = server.result(server.run(script))
    assert (
        "--- file a.csv, 8 bytes ---\nx,y\n1,2" in text
        and "file b.bin, 100 bytes" in text
        and "<svg/>" in text
    )


def test_an_image_too_large_for_clients_is_named_but_left_out(server):
    script = "open('big.png', 'wb').write(b'\\x89PNG' + bytes(900_000)); open('small.png', 'wb').write(b'\\x89PNG' + bytes(9))"
    result = server.wait(server.run(script))["result"]
    assert (
        "big.png" in result["content"][0]["text"] and "too large" in result["content"][0]["text"]
    )
    assert len([b for b in result["content"] if b["type"] == "image"]) == 1


@pytest.mark.parametrize(
    ("script", "hint"),
    [
        ("import cv2", "declare the missing package in `dependencies`"),
        (
            "import subprocess, sys\nsys.exit(subprocess.run([sys.executable, '-m', 'pip', 'install', 'x'], capture_output=True, text=True).stderr)",
            "there is no pip",
        ),
        ("import subprocess\nsubprocess.run(['pip', 'install', 'x'])", "there is no pip"),
        ("x = 1", "print() what you want to see"),
        ("```python\nprint(1)\n```", "markdown fence"),
        ("input('name? ')", "there is no input"),
        ("open('/usr/x', 'w')", "only the working directory"),
        ("x = bytearray(3 << 30)\nfor n in range(0, len(x), 4096): x[n] = 1", "memory limit"),
    ],
)
def test_a_hint_leads_to_the_next_step(server, script, hint):
    text, _ = server.result(server.run(script))
    lines = text.split("\n")
    assert any(line.startswith("hint: ") and hint in line for line in lines), text
    first = next((n for n, line in enumerate(lines) if line.startswith("---")), len(lines))
    ours = [n for n, line in enumerate(lines) if line.startswith("hint: ") and hint in line]
    assert ours and ours[0] < first


def test_without_network_the_hint_says_so(client):
    off = client("--network", "off")
    text, _ = off.result(
        off.run("import urllib.request\nurllib.request.urlopen('http://example.invalid')")
    )
    assert "hint: scripts have no network here" in text


def test_package_names_are_never_guessed(server):
    assert "opencv" not in server.result(server.run("import cv2"))[0].lower()


def test_progress_bars_come_in_their_last_state_without_escapes(server):
    script = "import sys\nfor i in range(5001): sys.stderr.write('\\r\\x1b[2K%5d/5000' % i)\nprint('\\x1b]0;title\\x07OK')"
    text, _ = server.result(server.run(script))
    assert (
        "5000/5000" in text and "4999/5000" not in text and "\x1b" not in text and "\nOK" in text
    )


def test_the_script_reads_nothing_of_the_protocol(server):
    text, _ = server.result(server.run("import sys; print('read', len(sys.stdin.read()))"))
    assert "read 0" in text and not server.junk


def test_surrogates_and_controls_do_not_wedge_the_writer(server):
    script = r"import os; os.write(1, b'\xed\xa0\x80 \x00\x07 \xff'); open('\udcff', 'w'); open('x\ny', 'w')"
    text, _ = server.result(server.run(script))
    assert text.startswith("exit code 0") and "left out" in text
    assert "still" in server.result(server.run("print('still')"))[0]


def test_answers_to_calls_at_once_are_the_right_ones(server):
    calls = {
        n: server.run(f"import time; time.sleep(0.1); print('answer {n}!')") for n in range(12)
    }
    assert all(f"answer {n}!" in server.result(call)[0] for n, call in calls.items())


def test_a_queued_call_is_told_and_its_wait_is_not_counted(client):
    one = client("--max-concurrent", "1", "--network", "off")
    first = one.run("import time; time.sleep(2)")
    second = one.run("print('second')", timeout_seconds=1)
    assert "second" in one.result(second)[0] and one.result(first)[0].startswith("exit code 0")
    assert any("queued" in (message or "") for message in one.progress)


def test_a_long_install_tells_its_progress(client, index):
    made = index(wheel("alpha"), wheel("beta"))
    one = client("--network", "off", env=made.env)
    assert (
        "ok" in one.result(one.run("import alpha; print('ok')", dependencies=["alpha", "beta"]))[0]
    )
    words = " ".join(message or "" for message in one.progress)
    assert "resolving" in words and "running" in words


def test_cancelling_a_call_ends_its_script_at_once_and_the_next_call_works(client, mark, tmp_path):
    log = tmp_path / "audit.jsonl"
    one = client("--network", "off", "--audit-log", str(log))
    call = one.run(SLEEPER.format(mark))
    assert until(lambda: alive(mark), 30)
    one.send({"method": "notifications/cancelled", "params": {"requestId": call}})
    assert until(lambda: not alive(mark), 1.5)
    assert "next" in one.result(one.run("print('next')"))[0]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["status"] for line in lines] == ["cancelled", "exited"]


@pytest.mark.parametrize(
    "how", ["EOF", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL]
)
def test_when_the_client_goes_the_server_and_every_script_go_too(client, mark, how):
    one = client("--network", "off")
    one.run(SLEEPER.format(mark))
    assert until(lambda: alive(mark), 30)
    one.process.stdin.close() if how == "EOF" else one.process.send_signal(how)
    assert until(lambda: not alive(mark), 1.5)
    code = one.process.wait(5)
    assert code == {"EOF": 0, signal.SIGKILL: -9}.get(how, 128 + (how if how != "EOF" else 0))


def test_an_interpreter_waits_for_the_first_script(client):
    one = client(argv=[*PYSBX, "--network", "off"])

    def waiting():
        return [pid for pid, command in children(one.process.pid) if "bwrap" in command]

    assert until(lambda: len(waiting()) == 2, 10)
    assert "42" in one.result(one.run("print(6 * 7)"))[0]


def test_a_cancel_while_the_sandbox_starts_leaves_nothing(client):
    one = client("--network", "off", "--no-spare")
    one.result(one.run("print(1)"))
    for number in range(24):
        call = one.run("print(1)")
        time.sleep(0.001 + 0.001 * (number % 12))
        one.send({"method": "notifications/cancelled", "params": {"requestId": call}})
        time.sleep(0.05)
    one.result(one.run("print(1)"))
    assert until(lambda: not children(one.process.pid), 3)
    one.close()
    orphans = [pid for pid, command in children(1) if "bwrap\0--args" in command]
    assert not [pid for pid in orphans if pid > one.process.pid], orphans


def test_the_spares_are_used_once_cost_little_and_die_with_the_server(client):
    one = client("--network", "off")
    one.result(one.run("print(1)"))
    time.sleep(1)
    waiting = [pid for pid, command in children(one.process.pid) if "bwrap" in command]
    assert len(waiting) == 2  # at the gate, and with an interpreter
    assert sum(map(memory, waiting)) < 10 << 20
    one.result(one.run("print(2)"))
    assert until(lambda: sum(os.path.exists(f"/proc/{pid}") for pid in waiting) == 1, 2)
    one.close()
    assert until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in waiting), 2)


def memory(pid):
    """Bytes of a process and all below it, each shared page divided by its users."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        own = int(re.search(r"(?m)^Pss: +(\d+)", file.read())[1]) << 10
    return own + sum(memory(child) for child, _ in children(pid))


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/cmdline") as command:
                    found.append((int(child), command.read()))
    return found


def test_a_dry_run_lists_versions_and_problems(client, index):
    one = client("--network", "off", env=index(wheel("alpha")).env)

    def ask(**a):
        return one.result(one.start("tools/call", {"name": "validate_script", "arguments": a}))[0]

    text = ask(script="import alpha", dependencies=["alpha"])
    assert text.startswith("it compiles") and "alpha==1.0" in text
    text = ask(script="def f(:", dependencies=["alpha>=2"])
    assert (
        text.startswith("problems were found")
        and "line 1\n    def f(:" in text
        and "cannot be resolved" in text
    )
    made = index(sdist("source", BACKEND.format(name="source", hostile="")))
    one = client("--network", "off", env=made.env)
    text = ask(script="import source", dependencies=["source"])
    assert text.startswith("it compiles") and "built from source" in text, text


def test_the_environment_is_described_to_an_agent(server):
    text, error = server.result(
        server.start("tools/call", {"name": "check_environment", "arguments": {}})
    )
    assert "PASS    backend: native" in text and "warm cache:" in text and not error


def nothing(tmp_path):
    for name in ("sh", "uv", "env"):
        import shutil

        if where := shutil.which(name):
            (tmp_path / name).symlink_to(os.path.realpath(where))
    return {"PATH": str(tmp_path)}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("yes", [True, False])
def test_the_user_is_asked_before_the_first_run_without_a_sandbox(tmp_path, yes, mode):
    asked = []

    async def ask(context, params):
        asked.append(params.message)
        return (
            ElicitResult(action="accept", content={"go": True})
            if yes
            else ElicitResult(action="decline")
        )

    async def work(client):
        return [
            await client.call_tool("execute_python", {"script": "print('R' + 'AN')"})
            for _ in range(2)
        ]

    results = sdk(work, mode=mode, env=nothing(tmp_path), elicitation_callback=ask)
    for result in results:
        text = result.content[0].text
        assert (
            ("RAN" in text and "WITHOUT A SANDBOX" in text)
            if yes
            else (result.is_error and "RAN" not in text)
        )
    assert len(asked) == 1 and "No sandbox works" in asked[0]


def test_a_client_that_cannot_ask_is_told_in_every_result(client, tmp_path):
    one = client(env=nothing(tmp_path))
    for _ in range(2):
        assert "WITHOUT A SANDBOX" in one.result(one.run("print(1)"))[0]


# ---- HTTP


@pytest.fixture
def http():
    made = []

    def make(*options, env=None):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        argv = [
            *PYSBX,
            "--transport",
            "http",
            "--port",
            str(port),
            "--no-warm-cache",
            "--network",
            "off",
            *options,
        ]
        made.append(
            subprocess.Popen(argv, env={**os.environ, **(env or {})}, stderr=subprocess.PIPE)
        )
        assert until(lambda: answers(port), 30), made[-1].stderr.read1().decode()
        return port, made[-1]

    yield make
    for process in made:
        process.kill()
        process.wait()


def answers(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).status == 200
    except OSError:
        return False


def post(port, script, *, token="", host="", timeout=30):
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "execute_python", "arguments": {"script": script}},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Host": host} if host else {}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/mcp", json.dumps(call).encode(), headers
    )
    try:
        return 200, json.load(urllib.request.urlopen(request, timeout=timeout))
    except urllib.error.HTTPError as error:
        return error.code, None


def test_http_is_stateless_and_checks_host_on_loopback(http):
    port, process = http()
    assert "42" in post(port, "print(6 * 7)")[1]["result"]["content"][0]["text"]
    assert post(port, "print(1)", host="evil.example")[0] in (403, 421)


def test_http_wants_the_token(http):
    port, _ = http(env={"PYSBX_TOKEN": "s3cret"})
    assert post(port, "print(1)")[0] == 401 and post(port, "print(1)", token="wrong")[0] == 401
    assert post(port, "print(1)", token="s3cret")[0] == 200


def test_http_beyond_loopback_without_a_token_is_refused(pysbx):
    done = pysbx("--transport", "http", "--host", "0.0.0.0", env={"PYSBX_TOKEN": ""})
    assert done.code == 125 and "PYSBX_TOKEN" in done.err, done


def test_http_a_client_that_hangs_up_ends_its_script(http, mark):
    port, _ = http()
    with pytest.raises(OSError):
        post(port, SLEEPER.format(mark), timeout=6)
    assert until(lambda: not alive(mark), 2)


def test_http_ends_within_5_seconds_of_sigterm_with_a_call_in_flight(http, mark):
    import threading

    port, process = http()
    threading.Thread(target=post, args=(port, SLEEPER.format(mark)), daemon=True).start()
    assert until(lambda: alive(mark), 30)
    process.terminate()
    process.wait(5)
    assert until(lambda: not alive(mark), 1)


def test_the_raw_client_of_these_tests_meets_no_junk_on_the_wire(client):
    one = client("--sandbox-backend", "none")
    one.result(one.run("import os; os.write(1, b'raw')"))
    assert not one.junk and one.close() == 0
    assert sys and Client
