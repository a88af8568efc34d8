"""Runs of other kinds: nodes that are numbers, features without names, weights; methods that read whole graphs."""

from dataclasses import replace

import numpy as np
import pytest
from serving import opened, train, train_on

from gamlp.errors import SettingsError
from gamlp.graph.store import save_graph


@pytest.fixture(scope="module")
def numbered(make_planted, tmp_path_factory):
    """A run on a graph directory with weights, whose nodes are their numbers."""
    folder = tmp_path_factory.mktemp("numbered")
    graph = make_planted(nodes=60, features=3, degree=4, labelled=6)
    weights = np.ones(graph.adjacency.entries, np.float32)
    save_graph(replace(graph, adjacency=replace(graph.adjacency, weights=weights)), folder / "graph")
    train_on([folder / "graph"], folder / "run", method="gamlp-jk")
    return folder / "run"


def test_numbers_weights_and_features_without_names(client_of, numbered):
    client = client_of(opened(numbered).service)
    found = client.get("/nodes/7?features=true").json()
    assert found["id"] == "7"
    assert len(found["features"]["features"]) == 3
    body = {"nodes": [{"id": 60, **found["features"]}], "edges": [{"source": 60, "target": 7, "weight": 2.0}]}
    answer = client.post("/predict", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["nodes"][0]["id"] == 60
    facts = client.get("/about").json()
    assert (facts["numbered"], facts["unused"], facts["weighted"]) == (True, 60, True)
    for wrong in (
        {**body, "edges": [{"source": 60, "target": 7}]},
        {**body, "nodes": [{**body["nodes"][0], "id": "x"}]},
    ):
        assert client.post("/predict", wrong).status_code == 422
    assert client.get("/nodes/60").status_code == 404


def test_a_heavier_edge_counts_more(client_of, numbered):
    client = client_of(opened(numbered).service)
    answers = []
    for weight in (1.0, 100.0):
        edges = [{"source": 60, "target": 3, "weight": weight}, {"source": 60, "target": 4, "weight": 1.0}]
        answers.append(client.post("/predict", {"nodes": [{"id": 60, "features": [0, 0, 0]}], "edges": edges}).json())
    assert answers[0] != answers[1]


def test_several_labels_a_node(client_of, make_planted, tmp_path):
    """A node's labels are named together; a neighbour that trained has its own, the others none."""
    graph = make_planted(nodes=60, features=3, degree=4, labelled=6)
    labels = np.stack([graph.labels == 0, np.arange(60) % 2 == 0], axis=1).astype(np.int8)
    save_graph(replace(graph, labels=labels, classes=("left", "even")), tmp_path / "graph")
    train_on([tmp_path / "graph"], tmp_path / "run", method="gamlp-jk")
    client = client_of(opened(tmp_path / "run").service)
    found = client.get("/nodes/7").json()
    names = [name for name, chance in found["probabilities"].items() if chance > 0.5]
    assert found["predicted"] == ";".join(names)
    assert {one["label"] for one in found["neighbours"]} <= {None, "", "left", "even", "left;even"}
    body = {"nodes": [{"id": 60, "features": [1.0, 0.0, -1.0]}], "edges": [{"source": 60, "target": 7}]}
    answer = client.post("/predict", body)
    assert answer.status_code == 200, answer.text
    said = answer.json()["nodes"][0]
    assert said["predicted"] == ";".join(name for name, chance in said["probabilities"].items() if chance > 0.5)


def test_labels_that_spread_have_no_hops_to_weigh(client_of, make_planted, tmp_path):
    graph = make_planted(nodes=60, features=3, degree=4, labelled=6)
    client = client_of(opened(train(graph, tmp_path, method="label-propagation").folder).service)
    edges = [{"source": "a", "target": "node-7"}]
    answer = client.post("/predict", {"nodes": [{"id": "a", "x0": 1, "x1": 1, "x2": 1}], "edges": edges})
    assert answer.status_code == 200, answer.text
    (found,) = answer.json()["nodes"]
    assert found["weights"] is None
    assert sum(found["probabilities"].values()) == pytest.approx(1)


def test_a_method_on_whole_graphs_tells_of_its_nodes_and_refuses_new_ones(client_of, make_planted, tmp_path):
    run = train(make_planted(nodes=60, features=3, degree=4, labelled=6), tmp_path, method="gcn")
    client = client_of(opened(run.folder).service)
    found = client.get("/nodes/node-7")
    assert found.status_code == 200
    assert found.json()["rings"][0]["weight"] is None
    answer = client.post("/predict", {"nodes": [{"id": "a", "x0": 1, "x1": 1, "x2": 1}]})
    assert answer.status_code == 422
    assert "--exact" in answer.json()["remedy"]
    assert client.get("/about").json()["takes_new"] is False


def test_requests_that_the_memory_cannot_hold_are_refused_at_the_start(numbered):
    from gamlp.cli.options import ComputeOptions
    from gamlp.cli.serve import opened
    from gamlp.serve.limits import Limits

    few, many = Limits(edges=1_000), Limits(edges=10**9)
    assert opened(numbered, None, None, ComputeOptions(memory="1GiB"), few).service.living is not None
    with pytest.raises(SettingsError, match="--limit edges="):
        opened(numbered, None, None, ComputeOptions(memory="1GiB"), many)
