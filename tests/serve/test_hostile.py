"""Requests that nobody should send: each gets one JSON error that says what to do, and the server goes on."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NEW = {"id": "new", "x0": 1.0, "x1": -0.5, "x2": 0.25, "x3": 2.0}
EDGE = {"source": "new", "target": "node-1"}


def assert_refused(answer, status=422):
    assert answer.status_code == status, answer.text
    found = answer.json()
    assert set(found) == {"error", "message", "remedy", "code"}
    assert found["message"]
    assert found["remedy"]
    assert found["code"] == status
    assert "Traceback" not in answer.text
    return found


def nodes(**changed):
    return {"nodes": [{**NEW, **changed}], "edges": [EDGE]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe{}", "no JSON"),
        (b'{"nodes": [{"id": "\\ud800"}]}', "no JSON"),
        (b'{"nodes": NaN}', "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"a":' * 100_000, "no JSON"),
        (b"[]", "is a list"),
        (b"7", "is a int"),
        (b"{}", "no 'nodes'"),
        (b'{"nodes": [], "edges": []}', "no rows"),
        (b'{"nodes": {"id": []}}', "no rows"),
        (b'{"nodes": null}', "NoneType"),
        (b'{"nodes": [1, 2]}', "row 0"),
        (b'{"nodes": {"id": 5}}', "no list"),
        (b'{"nodes": {"id": ["a"], "x0": [1, 2]}}', "2 of x0"),
        (b'{"nodes": [{"id": "a"}], "vertices": []}', "vertices"),
        ({"nodes": [NEW, {"id": "b"}]}, "row 1"),
        ({"nodes": [NEW, NEW]}, "2 rows or more"),
        (nodes(id="node-3"), "already"),
        (nodes(id=None), "empty"),
        (nodes(x1="words"), "'x1'"),
        (nodes(x1=[1, 2]), "x1"),
        (nodes(x1={"a": {"b": 1}}), "'x1'"),
        (nodes(x1=10**40), "'x1'"),
        (nodes(x1=1e39), "'x1'"),
        (b'{"nodes": [{"id": "a", "x0": 1e999, "x1": 0, "x2": 0, "x3": 0}]}', "'x0'"),
        (nodes(x4=1), "'x4'"),
        ({"nodes": [{"id": "a", "x0": 1.0}]}, "'x1'"),
        ({"nodes": [NEW], "edges": [{"source": "new", "target": "nobody"}]}, "nobody"),
        ({"nodes": [NEW], "edges": [{"source": "node-1", "target": "node-2"}]}, "in the graph already"),
        ({"nodes": [NEW], "edges": [{"source": "new"}]}, "source"),
        ({"nodes": [NEW], "edges": [{"source": "new", "target": 10**30}]}, "target"),
        ({"nodes": [NEW], "edges": [{"source": "new", "target": ["node-1"]}]}, "the edges"),
        ({"nodes": [NEW], "edges": [{**EDGE, "weight": 2.0}]}, "weight"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(client, body, words):
    found = assert_refused(client.post("/predict", body))
    assert words in found["message"]
    assert client.post("/predict", nodes()).status_code == 200  # it goes on


def test_features_so_large_that_the_answer_is_no_number(client):
    answer = client.post("/predict", nodes(x0=3.0e38, x1=-3.0e38, x2=3e38, x3=3e38))
    if answer.status_code != 200:  # finite or refused: never NaN
        assert_refused(answer)


def test_a_long_name_is_cut_in_the_message(client):
    found = assert_refused(client.post("/predict", nodes(**{"x" * 1_000_000: 1})))
    assert len(found["message"]) < 2_000


def test_a_million_edges_are_refused_before_they_are_read(client):
    body = {"nodes": [NEW], "edges": {"source": ["new"] * 1_000_000, "target": [1] * 1_000_000}}
    found = assert_refused(client.post("/predict", body), 413)
    assert "4" in found["message"]


def test_ids_of_every_kind_are_only_unknown(client):
    for text in (
        "%00",
        "..%2f..%2fetc%2fpasswd",
        "%F0%9F%A6%86",
        "%FF",
        "a" * 5_000,
        "0",
        "-1",
        "9" * 400,
        "a%0Ab",
        " ",
    ):
        found = assert_refused(client.get(f"/nodes/{text}"), 404)
        assert "\n" not in found["message"]


@pytest.mark.parametrize("path", ["/", "/nodes", "/predict/", "/../etc/passwd", "/openapi"])
def test_what_no_route_takes(client, path):
    answer = client.post(path, {})
    assert answer.status_code in (404, 405, 307)
    if answer.status_code != 307:
        assert_refused(answer, answer.status_code)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
TABLE = st.lists(st.dictionaries(st.sampled_from([*NEW, "y", ""]), JSON, max_size=6), max_size=3) | JSON
EDGES = st.lists(st.fixed_dictionaries({"source": st.sampled_from(["new", "node-1", "x"]) | JSON, "target": JSON}))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=200) | st.builds(lambda n, e: json.dumps({"nodes": n, "edges": e}).encode(), TABLE, TABLE)
)
def test_fuzzed_bodies(client, body):
    answer = client.post("/predict", body)
    if answer.status_code != 200:
        assert_refused(answer, 422)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=EDGES, values=st.lists(st.floats(width=32) | st.integers() | st.text(max_size=3), min_size=4, max_size=4))
def test_fuzzed_values(client, edges, values):
    rows = [{"id": "new", **{f"x{at}": value for at, value in enumerate(values)}}]
    answer = client.post("/predict", json.dumps({"nodes": rows, "edges": edges}).encode())
    if answer.status_code != 200:
        assert_refused(answer, 422)
    else:
        assert all(0 <= share <= 1 for one in answer.json()["nodes"] for share in one["probabilities"].values())
