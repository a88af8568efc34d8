"""X^(∞) in closed form against a long iteration in float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import SettingsError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.build.hashing import mixed
from gamlp.graph.graph import Adjacency
from gamlp.propagate import Normalization
from gamlp.propagate.stationary import compare, components, is_symmetric, stationary_features

# a triangle with a tail (0–3), a weighted pair of triangles (4–8), an isolated node (9)
SOURCE = np.array([0, 1, 2, 2, 4, 5, 6, 6, 7, 8])
TARGET = np.array([1, 2, 0, 3, 5, 6, 4, 7, 8, 6])
WEIGHTS = np.array([1, 1, 1, 1, 2, 0.5, 1, 3, 1, 1.5])


def limit_by_iteration(adjacency, features, r, self_loops):
    n = adjacency.nodes
    dense = np.zeros((n, n))
    weights = np.ones(adjacency.entries) if adjacency.weights is None else adjacency.weights
    dense[np.repeat(np.arange(n), np.diff(adjacency.indptr)), adjacency.indices] = weights
    dense += self_loops * np.eye(n)
    d = dense.sum(axis=1)
    safe = np.where(d > 0, d, 1.0)
    normal = safe[:, None] ** (r - 1) * dense * safe[None, :] ** -r
    x = features.astype(np.float64)
    for _ in range(3000):
        x = normal @ x
    return x


@pytest.mark.parametrize("r", [0.0, 0.4, 0.5, 1.0])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_every_component_has_its_own_limit(r, self_loops, weights):
    adjacency = adjacency_from_edges(SOURCE, TARGET, nodes=10, weights=weights)
    features = np.random.default_rng(0).normal(size=(10, 3))
    limit = stationary_features(adjacency, features, Normalization(r, self_loops))
    assert limit.dtype == np.float32
    assert_allclose(limit, limit_by_iteration(adjacency, features, r, self_loops), rtol=1e-5, atol=1e-6)


def test_path_by_hand():
    path = adjacency_from_edges(np.array([0, 1]), np.array([1, 2]), nodes=3)  # degrees with self-loops 2, 3, 2
    limit = stationary_features(path, np.array([[1.0], [0.0], [0.0]]), Normalization(r=0.0))
    assert_allclose(limit, [[2 / 7]] * 3, rtol=1e-6)


def test_a_swinging_component_gives_its_mean():
    pair = adjacency_from_edges(np.array([0]), np.array([1]), nodes=3)  # 0 and 1 swap for ever; 2 is alone
    limit = stationary_features(pair, np.array([[1.0], [3.0], [5.0]]), Normalization(0.5, self_loops=False))
    assert_allclose(limit, [[2.0], [2.0], [0.0]])


def test_wanted_rows_and_components():
    adjacency = adjacency_from_edges(SOURCE, TARGET, nodes=10)
    features = np.random.default_rng(1).normal(size=(10, 2))
    whole = stationary_features(adjacency, features, Normalization())
    assert_array_equal(stationary_features(adjacency, features, Normalization(), rows=np.array([8, 0])), whole[[8, 0]])
    labels, count = components(adjacency)
    assert count == 3
    assert len(set(labels[:4])) == len(set(labels[4:9])) == 1


def test_symmetry_is_found_in_many_steps_without_a_word(monkeypatch):
    """The sums modulo 2⁶⁴ overflow on purpose: no warning, which tests take for an error."""
    monkeypatch.setattr("gamlp.propagate.stationary.ROWS_A_STEP", 2)
    random = np.random.default_rng(0)
    ends = random.integers(0, 300, (2, 900))
    assert is_symmetric(adjacency_from_edges(*ends, nodes=300))
    assert not is_symmetric(adjacency_from_edges(*ends, nodes=300, symmetric=False))


@pytest.mark.parametrize("step", [1, 3, 4])
def test_the_limit_does_not_depend_on_how_many_rows_are_read_together(monkeypatch, step):
    monkeypatch.setattr("gamlp.propagate.stationary.ROWS_A_STEP", step)
    adjacency = adjacency_from_edges(SOURCE, TARGET, nodes=10, weights=WEIGHTS)
    features = np.random.default_rng(2).normal(size=(10, 3))
    limit = stationary_features(adjacency, features, Normalization(0.4))
    assert_allclose(limit, limit_by_iteration(adjacency, features, 0.4, True), rtol=1e-5, atol=1e-6)


def test_without_an_edge_every_node_is_a_component_of_its_own():
    alone = adjacency_from_edges(np.zeros(0, np.int64), np.zeros(0, np.int64), nodes=3)
    labels, count = components(alone)
    assert (labels.tolist(), count) == ([0, 1, 2], 3)
    features = np.array([[1.0], [2.0], [3.0]])
    assert_array_equal(stationary_features(alone, features, Normalization()), features)
    assert_array_equal(stationary_features(alone, features, Normalization(self_loops=False)), np.zeros((3, 1)))


@pytest.mark.parametrize("step", [1, 2, 2**24])
@pytest.mark.parametrize(
    ("weights", "symmetric"),
    [
        ([0.1, 0.1, 2, 2], True),
        ([0.1, 0.10000001, 2, 2], True),  # rounded otherwise
        ([0.1, 0.1005, 2, 2], False),  # more one way by 0.5 %
        ([0.1, 0.1, 2, 2.001], False),
        ([0.1, 0.2, 2, 2], False),
        ([1e-9, 2e-9, 2, 2], False),  # however little it is
    ],
)
def test_weights_must_be_alike_both_ways(monkeypatch, weights, symmetric, step):
    """0 – 1 and 2 – 3, each way with a weight of its own."""
    monkeypatch.setattr("gamlp.propagate.stationary.ENTRIES_A_STEP", step)
    graph = Adjacency(np.arange(5), np.array([1, 0, 3, 2], np.int32), np.array(weights, np.float32))
    assert is_symmetric(graph) == symmetric


def test_one_way_edges_are_refused():
    chain = adjacency_from_edges(np.array([0, 1]), np.array([1, 2]), nodes=3, symmetric=False)
    with pytest.raises(SettingsError, match="not symmetric"):
        stationary_features(chain, np.ones((3, 1)), Normalization())


def test_the_sums_of_random_numbers_by_hand():
    """Σ a_i a_j² − a_i² a_j of one entry (1, 0) modulo 2⁶⁴, a the hash of the node's number from 1 on."""
    a, b = int(mixed(np.uint64(2))), int(mixed(np.uint64(1)))
    total = np.zeros(3, np.uint64)
    compare(np.array([0, 0, 1]), np.array([0]), total, 1, 0, 2)
    assert total.tolist() == [0, (a * b * b - a * a * b) % 2**64, 0]


def test_an_edge_joins_two_nodes_whichever_way_it_leads():
    one = adjacency_from_edges(np.array([2]), np.array([0]), nodes=3, symmetric=False)
    labels, count = components(one)
    assert count == 2
    assert labels[0] == labels[2] != labels[1]
