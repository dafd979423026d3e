"""Replicas of the HTTP server behind a stock nginx: one is killed, the others answer on."""

import collections
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from conftest import HAS_BWRAP, PYSBX, alive, until

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed"),
    pytest.mark.skipif(not NGINX, reason="nginx is not installed"),
]
TOKEN = "s3cret"
CALLS, THREADS = 200, 8
PATIENCE = 60  # seconds for any one call: the machine may be slow, a lost call is never answered
Reply = collections.namedtuple("Reply", "status kind body began ended")

# A POST that has been sent is never sent again: nginx does that only for connect errors then.
CONFIG = """
daemon off; worker_processes 1; pid {place}/pid; error_log {place}/error.log info; {user}
events {{ worker_connections 256; }}
http {{
    log_format calls '$http_x_call $status $upstream_addr $upstream_status $request_time';
    access_log {place}/access.log calls;
    client_body_temp_path {place}/body; proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
    upstream replicas {{ {servers} }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://replicas;
            proxy_set_header Host $http_host;
            proxy_next_upstream error;
            proxy_connect_timeout 5s;
            proxy_read_timeout 60s;
        }}
    }}
}}
"""
GOOD = "print({token!r})"
WRONG = "raise ValueError({token!r})"
SLOW = """print({token!r}, flush=True)
import subprocess, sys
subprocess.run([sys.executable, '-c', 'import time; time.sleep({seconds})', {mark!r}])"""


def free_ports(count):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def ask(port, path, body=None, headers=(), timeout=PATIENCE):
    """One request on a connection of its own; status 0 if there was no HTTP answer at all."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST" if body else "GET", path, body, dict(headers))
        answer = connection.getresponse()
        kind, text = answer.headers.get_content_type(), answer.read().decode()
        return Reply(answer.status, kind, text, began, time.monotonic())
    except (OSError, http.client.HTTPException) as error:
        return Reply(0, "", repr(error), began, time.monotonic())
    finally:
        connection.close()


def call(port, number, script, token=TOKEN, **arguments):
    """Call execute_python as the call of this number."""
    params = {"name": "execute_python", "arguments": {"script": script, **arguments}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    headers = {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2025-06-18",
        "X-Call": str(number),
    }
    return ask(port, "/mcp", json.dumps(message), headers)


def healthy(port):
    reply = ask(port, "/health", timeout=5)
    return reply.status == 200 and json.loads(reply.body)["status"] == "ok"


class Cluster:
    """Two replicas and an nginx, on loopback, all of them children of this process."""

    def __init__(self, place):
        self.place = place
        self.port, *self.ports = free_ports(3)
        with contextlib.ExitStack() as stack:
            self.replicas = [self.replica(stack, port) for port in self.ports]
            servers = " ".join(f"server 127.0.0.1:{port};" for port in self.ports)
            user = "" if os.geteuid() else "user root;"  # the place is readable to us alone
            text = CONFIG.format(place=place, port=self.port, servers=servers, user=user)
            (place / "nginx.conf").write_text(text)
            argv = [NGINX, "-p", str(place), "-e", str(place / "error.log")]
            self.start(stack, "nginx", [*argv, "-c", str(place / "nginx.conf")], signal.SIGTERM)
            for port in (*self.ports, self.port):
                assert until(lambda port=port: healthy(port), 60), self.said()
            self.stack = stack.pop_all()

    def replica(self, stack, port):
        argv = [*PYSBX, "--transport", "http", "--port", str(port)]
        argv += ["--no-warm-cache", "--network", "off", "--require-sandbox"]
        return self.start(stack, f"replica-{port}", argv, signal.SIGKILL)

    def start(self, stack, name, argv, last_signal):
        env = {**os.environ, "PYSBX_TOKEN": TOKEN}
        with open(self.place / f"{name}.log", "wb") as log:
            process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stderr=log)
        stack.callback(self.end, process, last_signal)
        return process

    @staticmethod
    def end(process, last_signal):
        process.send_signal(last_signal)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)

    def said(self):
        logs = sorted(self.place.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs)

    def served(self):
        """From nginx's log: number of a call -> the replicas it was sent to, in their order."""
        lines = (self.place / "access.log").read_text().splitlines()
        rows = [line.replace(", ", ",").split() for line in lines]
        place = {f"127.0.0.1:{port}": number for number, port in enumerate(self.ports)}
        return {
            int(row[0]): [place[a] for a in row[2].split(",")] for row in rows if row[0] != "-"
        }


@pytest.fixture
def cluster(tmp_path):
    one = Cluster(tmp_path)
    yield one
    one.stack.close()


def connections(port):
    """How many connections are established to this port of loopback."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def expected(number, reply, token):
    """Return what is wrong with the answer to a call that was answered, or ""."""
    if (reply.status, reply.kind) != (200, "application/json"):
        return f"HTTP {reply.status} {reply.kind}"
    message = json.loads(reply.body)
    text = message["result"]["content"][0]["text"]
    first, _, rest = text.partition("\n")
    wanted = ["exit code 0", "exit code 0", "exit code 0", "exit code 1", "timed out"][number % 5]
    shown = f"ValueError: {token}" if number % 5 == 3 else f"--- stdout, {len(token) + 1} bytes"
    holds = {
        "id": message["id"] == number,
        "first line": first.startswith(wanted + " after ") and "; native, network off" in first,
        "token": token in rest and shown in rest,
        "error": message["result"].get("isError", False) == (number % 5 == 4),
    }
    wrong = [name for name, held in holds.items() if not held]
    return f"{', '.join(wrong)}: {text[:500]}" if wrong else ""


def test_of_200_calls_only_those_in_flight_on_a_killed_replica_fail(cluster, mark):
    tokens = [f"token-{number}-{os.urandom(8).hex()}" for number in range(CALLS)]
    scripts = [GOOD, GOOD, GOOD, WRONG, SLOW]
    replies, killed = {}, []
    numbers, lock = itertools.count(), threading.Lock()

    def work():
        for number in numbers:  # next() of a count is one step of the interpreter
            if number >= CALLS:
                return
            script = scripts[number % 5].format(token=tokens[number], seconds=99, mark=mark)
            limit = {"timeout_seconds": 1} if number % 5 == 4 else {}
            reply = call(cluster.port, number, script, **limit)
            with lock:
                replies[number] = reply

    def kill():
        until(lambda: len(replies) >= CALLS // 2, 300)
        while connections(cluster.ports[0]) < 2 and len(replies) < CALLS:
            time.sleep(0.002)
        killed.append(time.monotonic())
        cluster.replicas[0].kill()
        cluster.replicas[0].wait(5)
        killed.append(time.monotonic())

    assert call(cluster.port, 0, "print(1)", token="wrong").status == 401
    with concurrent.futures.ThreadPoolExecutor(THREADS + 1) as pool:
        futures = [pool.submit(kill)] + [pool.submit(work) for _ in range(THREADS)]
    for future in futures:
        future.result()
    moment, gone = killed
    assert len(replies) == CALLS

    failed = {number for number, reply in replies.items() if reply.status != 200}
    served = cluster.served()
    to_the_killed = {number for number, replicas in served.items() if replicas[-1] == 0}
    in_flight = {n for n, r in replies.items() if r.began < gone and r.ended > moment}
    assert failed, "the replica was idle when it was killed"
    assert failed <= to_the_killed & in_flight, (failed, to_the_killed, in_flight)
    for number in failed:  # each is told at once, by HTTP
        reply = replies[number]
        assert reply.status == 502 and "502 Bad Gateway" in reply.body, reply
        assert reply.ended - gone < 5, reply

    answered = replies.keys() - failed
    wrong = {n: expected(n, replies[n], tokens[n]) for n in answered}
    assert {n: text for n, text in wrong.items() if text} == {}, cluster.said()
    both = {replicas[-1] for number, replicas in served.items() if number in answered}
    assert both == {0, 1}, "one replica got no call"

    # the balancer goes on, with one replica
    assert all(healthy(cluster.port) for _ in range(4)), cluster.said()
    assert expected(CALLS, call(cluster.port, CALLS, GOOD.format(token="more")), "more") == ""
    assert until(lambda: not alive(mark), 5), "a script outlived the replica that was killed"


def test_the_other_replica_ends_within_5_seconds_of_sigterm_with_a_call_in_flight(cluster, mark):
    first, other = cluster.replicas
    first.kill()
    first.wait(5)
    assert healthy(cluster.port)
    script = SLOW.format(token="long", seconds=99, mark=mark)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(call, cluster.port, 1, script)
        assert until(lambda: alive(mark), 30), cluster.said()
        began = time.monotonic()
        other.terminate()
        other.wait(5)
        took = time.monotonic() - began
        reply = future.result(5)
    assert took < 5
    assert reply.status == 503 and "call again" in reply.body, reply  # not a hang, not a result
    assert until(lambda: not alive(mark), 1), "a script outlived its server"
    assert ask(cluster.port, "/health").status == 502
