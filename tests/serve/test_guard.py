"""Who may ask, and how much: token, host, type, limits, overload, time."""

import json
import threading
import time

import pytest

from gamlp.errors import SettingsError
from gamlp.serve.limits import Limits
from gamlp.serve.server import check_open

NEW = {"id": "new", "x0": 1.0, "x1": -0.5, "x2": 0.25, "x3": 2.0}
TOKEN = "correct-horse-battery"


def test_without_the_token_nothing_of_the_run_is_told(client_of, service):
    client = client_of(service, token=TOKEN)
    for path in ("/about", "/nodes/node-1", "/metrics", "/made/up"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["remedy"]
    assert client.post("/predict", {"nodes": [NEW]}).status_code == 401
    for path in ("/", "/api", "/health", "/openapi.json"):  # pages that hold nothing of it
        answer = client.get(path)
        assert answer.status_code == 200
        assert "node-" not in answer.text
        assert str(service.run.folder) not in answer.text


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \u00e9"])
def test_another_token_is_refused(client_of, service, given):
    client = client_of(service, token=TOKEN)
    assert client.get("/about", headers={"authorization": given.encode()}).status_code == 401


def test_with_the_token_it_answers(client_of, service):
    client = client_of(service, token=TOKEN)
    assert client.get("/about", headers={"authorization": f"bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "", "localhost.evil"])
def test_a_name_that_is_not_ours_is_refused(client, host):
    """A page of the internet whose name was made to mean this machine cannot ask for its visitor."""
    assert client.get("/about", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9999", "[::1]:8000", "LOCALHOST"])
def test_our_own_names_are_not(client, host):
    assert client.get("/about", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_must_say_that_it_is_json(client, kind):
    """Other types a browser would send to another place without asking it."""
    answer = client.post("/predict", json.dumps({"nodes": [NEW]}).encode(), headers={"content-type": kind})
    assert answer.status_code == 415
    assert "access-control-allow-origin" not in answer.headers


def test_limits_of_a_request(client_of, service):
    client = client_of(service, Limits(body=2_000, rows=2, edges=3))
    rows = [{**NEW, "id": f"new-{at}"} for at in range(3)]
    edge = {"source": "new-0", "target": "node-1"}
    assert client.post("/predict", {"nodes": rows[:2], "edges": [edge] * 3}).status_code == 200
    for body in ({"nodes": rows}, {"nodes": rows[:1], "edges": [edge] * 4}, b" " * 2_001):
        answer = client.post("/predict", body)
        assert answer.status_code == 413
        assert answer.json()["remedy"]


@pytest.mark.parametrize("words", [{"rows": "0"}, {"rows": "-1"}, {"row": "5"}, {"body": "many"}, {"seconds": "1.5"}])
def test_impossible_limits(words):
    with pytest.raises(SettingsError):
        Limits.of(words)


def test_limits_by_name():
    assert Limits.of({"rows": "5", "body": "1MiB"}) == Limits(rows=5, body=2**20)


class Slow:
    """A service that answers when it is told to."""

    def __init__(self, service):
        self.service, self.go, self.calls = service, threading.Event(), 0
        self.run = service.run
        self.about = service.about

    def node(self, text, **_):
        self.calls += 1
        assert self.go.wait(20)
        return {"id": text}


def test_what_is_more_than_it_can_take_is_refused_at_once(client_of, service):
    slow = Slow(service)
    client = client_of(slow, Limits(waiting=3))
    threading.Timer(0.5, slow.go.set).start()
    answers = client.together(*[("GET", f"/nodes/{at}", {}) for at in range(10)])
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [503] * 7
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"] == "Overloaded"
    assert slow.calls == 3
    assert client.get("/nodes/again").status_code == 200


def test_what_takes_too_long_is_answered_all_the_same(client_of, service):
    slow = Slow(service)
    client = client_of(slow, Limits(seconds=1))
    started = time.monotonic()
    late, waiting = client.together(("GET", "/nodes/late", {}), ("GET", "/nodes/waiting", {}))
    assert time.monotonic() - started < 10
    assert {late.status_code, waiting.status_code} == {503}
    assert "1 second" in late.json()["message"]
    slow.go.set()
    assert client.get("/nodes/again").status_code == 200  # its turn comes once the first is done
    assert slow.calls == 2  # who waited in vain was never begun


def test_a_fault_of_ours_is_no_traceback(client_of, service, caplog):
    class Broken(Slow):
        def node(self, text, **_):
            raise ZeroDivisionError("a secret")

    client = client_of(Broken(service))
    answer = client.get("/nodes/x")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "ZeroDivisionError" not in answer.text
    assert "a secret" in caplog.text  # but the log has it
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_others_need_a_token(host):
    with pytest.raises(SettingsError, match="GAMLP_TOKEN"):
        check_open(host, None)
    check_open(host, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_this_machine_needs_none(host):
    check_open(host, None)


def test_a_token_that_can_be_guessed():
    with pytest.raises(SettingsError, match="16"):
        check_open("127.0.0.1", "1234")
