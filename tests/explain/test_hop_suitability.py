"""Which number of hops suits a node, on data where the answer is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gamlp.errors import SplitError
from gamlp.explain.figures.chart import write_charts
from gamlp.explain.figures.hop_suitability import charts, draws, hop_suitability, hops_of, train_linear
from gamlp.explain.finished_run import open_run
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.propagate.scaling import Scaling
from gamlp.settings import Settings
from gamlp.storage.files import read_json, write_json


def blank_tests() -> Graph:
    """Twelve pairs: one end tells its class by its features and trains, the other has none and is asked."""
    count = 12
    labels = np.arange(count) % 2
    features = np.zeros((2 * count, 2), dtype=np.float32)
    features[np.arange(count), labels] = 1
    return Graph(
        adjacency=adjacency_from_edges(np.arange(count), np.arange(count) + count, nodes=2 * count),
        features=features,
        labels=np.concatenate([labels, labels]),
        classes=("a", "b"),
        split=Split(np.arange(count), np.arange(0), np.arange(count, 2 * count)),
        name="pairs",
    ).check()


def test_nodes_without_features_need_a_hop(run_of):
    graph = blank_tests()
    shares = np.full((24, 2), 0.5)
    run = open_run(graph, run_of(graph, probabilities=shares, attention=np.full((24, 3), 1 / 3)))
    found = hop_suitability(run, runs=10, sample=8)
    assert found.shares.shape == (3, 8)
    assert (found.shares[1] == 1).all()  # one hop brings the neighbour's features
    # at hop 0 all are alike, so in each run all get one class: the shares of the two classes add up to 1
    a, b = (found.shares[0][graph.labels[found.nodes] == label] for label in (0, 1))
    assert len(set(a)) == len(set(b)) == 1
    assert a[0] + b[0] == pytest.approx(1)


def test_a_run_does_not_depend_on_the_others():
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 5)).astype(np.float32)
    labels = random.integers(0, 3, 40)
    asked = random.normal(size=(30, 5)).astype(np.float32)
    few = train_linear(x, labels, asked, classes=3, runs=2, seed=1)
    many = train_linear(x, labels, asked, classes=3, runs=4, seed=1)
    assert few.shape == (2, 30)
    assert (few == many[:2]).all()
    assert (many[0] != many[1]).any()  # their samples differ


def test_each_run_draws_as_many_nodes_as_there_are():
    start, counts = draws(17, 4, 3, runs=6, seed=0)
    assert start.shape == (4, 18)
    assert counts.sum(dim=0).tolist() == [17.0] * 6
    assert (counts[:, 0] != counts[:, 1]).any()


def test_the_figure_is_written(run_of, tmp_path):
    graph = blank_tests()
    run = open_run(graph, run_of(graph, probabilities=np.full((24, 2), 0.5), attention=np.full((24, 2), 0.5)))
    files = write_charts(charts(hop_suitability(run, runs=2, sample=3)), tmp_path)
    assert [file.name for file in files] == ["hop-suitability.png", "hop-suitability.svg", "hop-suitability.csv"]
    assert files[2].read_text(encoding="utf-8").startswith("id,node,hop 0,hop 1,hop 2\n")  # the run's setting hops = 2


def test_unlabelled_test_nodes_are_refused(run_of):
    graph = blank_tests()
    graph.labels[12:] = -1
    run = open_run(graph, run_of(graph, probabilities=np.full((24, 2), 0.5), attention=None))
    with pytest.raises(SplitError, match="No test node has a label"):
        hop_suitability(run)


def test_the_hops_are_those_of_the_run(planted, run_of):
    """Scaled and reduced to components as the run did, by the slow way: dense Â, SVD of the scaled features."""
    shares, rows = np.full((planted.nodes, 3), 1 / 3), np.arange(0, planted.nodes, 7)
    folder = run_of(planted, probabilities=shares, attention=shares)
    record = read_json(folder / "run.json")
    record["settings"] = {"hops": 2, "components": 3, "feature_scaling": "row", "self_loops": True}
    write_json(folder / "run.json", record)
    found = hops_of(open_run(planted, folder), rows)
    scaling = Scaling.fit("row", planted.features, components=3)
    hop = scaling(planted.features).astype(np.float64)
    indptr, indices = planted.adjacency.indptr, planted.adjacency.indices
    dense = np.eye(planted.nodes)
    dense[np.repeat(np.arange(planted.nodes), np.diff(indptr)), indices] = 1
    degree = dense.sum(axis=1)
    dense /= np.sqrt(np.outer(degree, degree))
    expected = np.stack([hop, dense @ hop, dense @ dense @ hop], axis=1)
    assert found.shape == (len(rows), 3, 3)
    assert_allclose(found, expected[rows], atol=1e-5)


def test_a_method_without_hops_has_the_usual_ones(planted, run_of):
    shares = np.full((planted.nodes, 3), 1 / 3)
    folder = run_of(planted, probabilities=shares, attention=None, method="label-propagation")
    record = read_json(folder / "run.json")
    record["settings"] = {}
    write_json(folder / "run.json", record)
    assert hops_of(open_run(planted, folder), np.arange(4)).shape == (4, Settings().hops + 1, planted.features.shape[1])
