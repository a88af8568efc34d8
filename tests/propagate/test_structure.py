"""Features of graphs without any, against a slow reference; the same within a limit, and for a node in two graphs."""

import numpy as np
import pytest

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.structure import DIMENSION, NEAR, RandomSigns, structure_features

SOURCE, TARGET = np.array([0, 0, 1, 3, 4, 4]), np.array([1, 2, 2, 4, 5, 6])  # a triangle, a star, node 7 alone


def unit(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def slow(adjacency, names):
    """The equation of the module, with a dense matrix in float64."""
    matrix = np.zeros((adjacency.nodes, adjacency.nodes))
    for node in range(adjacency.nodes):
        for at in range(adjacency.indptr[node], adjacency.indptr[node + 1]):
            matrix[node, adjacency.indices[at]] = 1
    degree = matrix.sum(axis=1)
    mean = np.divide(matrix, degree[:, None], out=np.zeros_like(matrix), where=degree[:, None] > 0)
    signs = RandomSigns(names, np.ones(len(names), np.float32))[:].astype(np.float64)
    state, total = signs / np.sqrt(np.maximum(degree, 1))[:, None], 0
    for _ in range(32):
        state = unit(mean @ state)
        total = total + state
    return np.column_stack([total, np.log(1 + degree)])


def test_structure_by_the_equation_and_within_a_limit():
    adjacency, names = adjacency_from_edges(SOURCE, TARGET, nodes=8), np.array([f"n{at}" for at in range(8)])
    found = structure_features(LocalEngine(), adjacency, names)
    np.testing.assert_allclose(found, slow(adjacency, names), atol=1e-5)
    assert not found[7].any()  # no neighbours: nothing is known
    np.testing.assert_array_equal(structure_features(LocalEngine(memory=2**26), adjacency, names), found)
    apart = structure_features(LocalEngine(), adjacency, names, apart=True)
    near, far, degree = np.split(apart, [DIMENSION, 2 * DIMENSION], axis=1)
    np.testing.assert_allclose(np.hstack([near + far, degree]), found, atol=1e-5)
    assert np.linalg.norm(near[0]) <= NEAR + 1e-5  # so many rows of length 1


def test_an_id_is_the_seed_of_its_signs():
    one, other = np.ones(3, np.float32), np.ones(2, np.float32)
    signs = RandomSigns(np.array(["a", "b", "c"]), one)
    assert set(np.unique(signs[:])) == {-1, 1}
    assert abs(signs[:].mean()) < 0.1
    np.testing.assert_array_equal(signs[1:3], RandomSigns(np.array(["b", "c"]), other)[:])
    np.testing.assert_array_equal(signs[1:3, 5:9], signs[:][1:3, 5:9])
    numbers = RandomSigns(np.arange(3), one)
    np.testing.assert_array_equal(RandomSigns(np.array([2, 0]), other)[:], numbers[np.array([2, 0])])
    many = RandomSigns(np.arange(2000), np.ones(2000, np.float32))[:]
    products = many @ many.T / DIMENSION
    assert np.abs(products - np.eye(2000)).max() < 0.5  # different nodes: nearly orthogonal


def test_the_estimator_takes_an_adjacency_alone():
    from gamlp import GAMLPClassifier

    rng = np.random.default_rng(0)
    labels = np.arange(120) % 2
    source = rng.integers(0, 120, 500)
    adjacency = np.zeros((120, 120))
    adjacency[source, (source + 2 * rng.integers(1, 60, 500)) % 120] = 1  # only within a class
    known = np.where(np.arange(120) < 60, labels, -1)
    for method in ("gamlp-jk-labels", "sgc"):
        model = GAMLPClassifier(method, epochs=20).fit(None, known, adjacency)
        assert (model.predict(None, adjacency)[60:] == labels[60:]).mean() > 0.9


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_count_in_the_mean_and_not_in_the_degree(weighted):
    weights = np.full(len(SOURCE), 3, np.float32) if weighted else None
    adjacency = adjacency_from_edges(SOURCE, TARGET, nodes=8, weights=weights)
    found = structure_features(LocalEngine(), adjacency, None)
    np.testing.assert_allclose(found, slow(adjacency, np.arange(8)), atol=1e-5)
