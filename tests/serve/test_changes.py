"""POST /changes: the served graph becomes another, as gamlp update makes it, and the run's own stays as it is."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from serving import Client, opened, run_gamlp

from gamlp.graph.store import load_graph, save_graph
from gamlp.serve.app import make_app
from gamlp.storage.locks import locked

NEW = {"id": "new", "x0": 1.0, "x1": -0.5, "x2": 0.25, "x3": 2.0}
BATCH = {
    "nodes": [{"op": "add", **NEW}],
    "edges": [{"op": "add", "source": "new", "target": "node-1"}, {"op": "add", "source": "node-4", "target": "new"}],
}


@pytest.fixture
def changing(run, tmp_path):
    """Clients of servers, one after the other, that change a graph directory."""
    made = []

    def client():
        made.append(Client(make_app(opened(run.folder, tmp_path / "graph"))))
        return made[-1]

    yield client
    for one in made:
        one.close()


def test_a_batch_is_what_update_makes_of_it(run, changing, tmp_path):
    """The same changes by the command line: the same directory, and what predict says of it is what is served."""
    client = changing()
    own = opened(run.folder).own
    done = client.post("/changes", BATCH)
    assert done.status_code == 200, done.text
    assert done.json()["nodes"] == 91
    assert (done.json()["added"], done.json()["version"]) == (1, 1)

    from dataclasses import replace

    save_graph(replace(own.graph, split=own.split), tmp_path / "other")
    for what, rows in BATCH.items():
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / f"{what}.parquet")
    tables = ("--edges", tmp_path / "edges.parquet", "--nodes", tmp_path / "nodes.parquet")
    run_gamlp("update", tmp_path / "other", *tables)
    made, expected = load_graph(tmp_path / "graph"), load_graph(tmp_path / "other")
    assert made.fingerprints == expected.fingerprints

    served = client.get("/nodes/new").json()
    fitted = opened(run.folder).fitted
    said = fitted.predict(expected, split=expected.split_for(0))
    np.testing.assert_array_equal(list(served["probabilities"].values()), said.probabilities[90].astype(float))
    assert served["degree"] == 2
    assert {one["id"] for one in served["neighbours"]} - {"new"} == {"node-1", "node-4"}


def test_the_next_server_goes_on_with_it(run, changing):
    first = changing()
    first.post("/changes", BATCH)
    told = first.get("/nodes/new").json()
    second = changing()
    assert second.get("/nodes/new").json() == told
    done = second.post("/changes", {"nodes": [{"op": "remove", "id": "new"}]})
    assert done.json()["nodes"] == 90
    assert second.get("/nodes/new").status_code == 404
    lost = first.post("/changes", {"nodes": [{"op": "remove", "id": "node-3"}]})  # it knows the version before
    assert lost.status_code == 409
    assert "again" in lost.json()["remedy"]
    assert second.get("/nodes/node-3").status_code == 200


def test_new_nodes_are_joined_to_the_newest_version(changing):
    client = changing()
    beside = {"nodes": [{**NEW, "id": "newer"}], "edges": [{"source": "newer", "target": "new"}]}
    assert client.post("/predict", beside).status_code == 422
    client.post("/changes", BATCH)
    assert client.post("/predict", beside).status_code == 200


def test_the_run_and_its_graph_stay_as_they_are(run, changing):
    before = (run.edges.read_bytes(), run.nodes.read_bytes(), (run.folder / "run.json").read_bytes())
    changing().post("/changes", BATCH)
    assert before == (run.edges.read_bytes(), run.nodes.read_bytes(), (run.folder / "run.json").read_bytes())
    assert opened(run.folder).service.about()["nodes"] == 90


def test_the_cache_does_not_grow_with_every_batch(run, changing):
    client = changing()
    sizes = []
    for at in range(4):
        assert client.post("/changes", {"nodes": [{"op": "add", **NEW, "id": f"new-{at}"}]}).status_code == 200
        sizes.append(len(list((run.folder / "hops").iterdir())))
    assert sizes[1] == sizes[2] == sizes[3]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"nodes": []},
        {"nodes": [{"op": "paint", "id": "node-1"}]},
        {"nodes": [{"op": "remove", "id": "nobody"}]},
        {"nodes": [{"op": "add", **NEW, "id": "node-1"}]},
        {"nodes": [{"op": "remove", "id": f"node-{at}"} for at in range(90)]},
        {"edges": [{"op": "remove", "source": "node-1", "target": "node-1"}]},
        {"edges": [{"op": "add", "source": "node-1", "target": "nobody"}]},
        {"edges": [{"op": 7, "source": "node-1", "target": "node-2"}]},
    ],
)
def test_what_cannot_be_applied_changes_nothing(changing, body, tmp_path):
    client = changing()
    answer = client.post("/changes", json.dumps(body).encode())
    assert answer.status_code == 422, answer.text
    assert answer.json()["remedy"]
    assert not (tmp_path / "graph").exists()
    assert client.get("/about").json()["version"] == 0


def test_without_a_place_for_them_changes_are_refused(run):
    client = Client(make_app(opened(run.folder)))
    answer = client.post("/changes", BATCH)
    client.close()
    assert answer.status_code == 422
    assert "--graph" in answer.json()["remedy"]


def test_while_another_process_works_on_the_directory_a_batch_is_refused(changing, tmp_path):
    client = changing()
    with locked(tmp_path / "graph"):
        answer = client.post("/changes", BATCH)
    assert answer.status_code == 409, answer.text
    assert "Another process works on" in answer.json()["message"]
    assert not (tmp_path / "graph").exists()
    assert client.post("/changes", BATCH).status_code == 200


ANYTHING = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.just([1, "a"])
)
ID = st.sampled_from(["node-1", "new", "nobody", ""]) | ANYTHING
OP = st.sampled_from(["add", "change", "remove", "paint"]) | ANYTHING
NODE = st.fixed_dictionaries({"op": OP, "id": ID, **{f"x{at}": ANYTHING for at in range(4)}})
EDGE = st.fixed_dictionaries({"op": OP, "source": ID, "target": ID})


@pytest.fixture
def one_client(changing):
    return changing()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nodes=st.lists(NODE, max_size=2), edges=st.lists(EDGE, max_size=2))
def test_fuzzed_batches(one_client, nodes, edges):
    """Applied, or refused with what to do; the server answers afterwards, and a node that nobody removed is there."""
    answer = one_client.post("/changes", json.dumps({"nodes": nodes, "edges": edges}).encode())
    assert answer.status_code in (200, 422), answer.text
    assert answer.status_code == 200 or set(answer.json()) == {"error", "message", "remedy", "code"}
    assert one_client.get("/nodes/node-2").status_code == 200
