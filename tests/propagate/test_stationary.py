"""X^(∞) in closed form against a long iteration in float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate import Normalization
from gamlp.propagate.stationary import components, is_symmetric, stationary_features

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
