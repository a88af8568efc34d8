"""gamlp serve as a process: it says where it is, answers, finishes what it began, and ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest
from serving import outcome, run_gamlp

pytestmark = pytest.mark.slow
TOKEN = "correct-horse-battery"
NEW = {"id": "new", "x0": 1.0, "x1": -0.5, "x2": 0.25, "x3": 2.0}
GAMLP = [sys.executable, "-m", "gamlp"]
SECONDS = 120


@contextmanager
def served(run, *options, **environment):
    """Start a server on a free port of this machine, and yield the process and its address."""
    words = [*GAMLP, "serve", str(run.folder), "--port", "0", "--json", *options]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **environment})  # fmt: skip
    try:
        line = started.stdout.readline()
        assert line, started.stderr.read()
        yield started, json.loads(line)["address"]
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate(timeout=SECONDS)


def soon(true) -> bool:
    """Say whether something becomes true before long."""
    end = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def listens(host, port) -> bool:
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except OSError:
        return False
    return True


def test_a_request_under_way_is_answered_before_the_end(run):
    """Half of a request is sent, then the signal, then the other half: the answer comes, then the end."""
    body = json.dumps({"nodes": [NEW]}).encode()
    with served(run) as (process, address):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
            head = f"POST /predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
            assert soon(lambda: "gamlp_requests_inside 1.0" in httpx.get(f"{address}/metrics").text)
            process.send_signal(signal.SIGTERM)
            assert soon(lambda: not listens(host, int(port)))  # nobody else is let in
            connection.sendall(body[10:])
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"predicted"' in answer
        assert process.wait(timeout=SECONDS) == 0


def test_others_are_let_in_with_the_token_alone(run):
    with served(run, "--host", "0.0.0.0", GAMLP_TOKEN=TOKEN) as (process, address):
        here = f"http://127.0.0.1:{address.rpartition(':')[2]}"
        assert httpx.get(f"{here}/about").status_code == 401
        answer = httpx.get(f"{here}/about", headers={"Authorization": f"Bearer {TOKEN}", "Host": "server.example"})
        assert answer.json()["nodes"] == 90
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        assert rest == ""  # --json is one line
        assert "Traceback" not in told


def refused(run, *options):
    """Start a server that must not start, and return its code and what --json says."""
    code, told, _ = outcome("serve", run.folder, "--json", *options)
    return code, json.loads(told)


def test_without_a_token_it_is_not_opened_to_others(run):
    code, told = refused(run, "--host", "0.0.0.0")
    assert code == 2
    assert "GAMLP_TOKEN" in told["remedy"]


def test_an_address_in_use_is_told_at_once(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, told = refused(run, "--port", str(taken.getsockname()[1]))
    assert code == 3
    assert told["error"] == "AddressError"


def test_help_names_what_is_needed():
    text = run_gamlp("serve", "--help")
    for word in ("--host", "--token", "GAMLP_TOKEN", "--limit", "--memory"):
        assert word in text
