"""Hops that read less: the last of a few rows, and the first of labels, which are mostly zeros."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.labels import initial_labels
from gamlp.propagate import LocalEngine, Normalization, Propagation, block, kernels
from gamlp.propagate.chunks import plan_chunks
from gamlp.propagate.sources import OneHotRows, SparseRows

NODES, CLASSES = 3000, 20
RNG = np.random.default_rng(5)
GRAPH = adjacency_from_edges(
    np.concatenate([RNG.integers(0, NODES, 6000), np.full(400, 7)]),  # node 7 is a hub
    np.concatenate([RNG.integers(0, NODES, 6000), RNG.integers(0, NODES, 400)]),
    nodes=NODES,
)
TRAIN = np.sort(RNG.choice(NODES, 40, replace=False))
RELIABLE = np.setdiff1d(RNG.choice(NODES, 15, replace=False), TRAIN)
LABELS = initial_labels(
    *(NODES, CLASSES, TRAIN, RNG.integers(0, CLASSES, 40)),
    reliable_ids=RELIABLE,
    reliable_probabilities=RNG.dirichlet(np.ones(CLASSES), len(RELIABLE)),
)
ROWS = np.array([2999, 7, 12, 12, 1500])  # in any order, one twice


def dense(normalization):
    """Return Â by its definition, float64."""
    matrix = np.zeros((NODES, NODES))
    matrix[np.repeat(np.arange(NODES), np.diff(GRAPH.indptr)), GRAPH.indices] = 1
    matrix += np.eye(NODES) * normalization.self_loops
    degree = matrix.sum(axis=1)
    safe, r = np.where(degree > 0, degree, 1), normalization.r
    return safe[:, None] ** (r - 1) * matrix * safe ** (-r) * (degree > 0)


@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.parametrize("normalization", [Normalization(0.0, self_loops=False), Normalization(0.5, self_loops=True)])
@pytest.mark.parametrize("memory", [None, 3 * 2**20])
def test_label_hops_are_powers_of_the_dense_matrix(monkeypatch, storage, normalization, memory):
    monkeypatch.setattr(block, "plan_chunks", partial(plan_chunks, longest=64))  # node 7 is in several segments
    used = []
    summed = kernels.sum_marked
    monkeypatch.setattr(kernels, "sum_marked", lambda *given: used.append(1) or summed(*given))
    spec = Propagation(3, normalization, rows=ROWS, storage=storage)
    found = LocalEngine(memory=memory).propagate(GRAPH, LABELS, spec).values
    assert used  # the first hop at least
    hat, state = dense(normalization), LABELS[:].astype(np.float64)
    for hop in range(4):
        assert_allclose(found[:, hop], state[ROWS], rtol=1e-5 if storage == "float32" else 2e-3, atol=1e-6)
        state = hat @ state


def test_the_bits_are_those_of_all_rows_and_of_dense_columns(monkeypatch):
    spec = Propagation(4, Normalization(0.0, self_loops=False))
    every = LocalEngine().propagate(GRAPH, LABELS[:], spec).values
    assert_array_equal(LocalEngine().propagate(GRAPH, LABELS, spec).values, every)
    some = Propagation(4, Normalization(0.0, self_loops=False), rows=ROWS, keep="last")
    assert_array_equal(LocalEngine().propagate(GRAPH, LABELS[:], some).values[:, 0], every[ROWS, -1])


def test_the_last_hop_sums_the_wanted_rows_alone(monkeypatch):
    summed = kernels.sum_wanted
    counts = []
    monkeypatch.setattr(kernels, "sum_wanted", lambda *given: counts.append(given[-2] - given[-3]) or summed(*given))
    features = RNG.normal(size=(NODES, 4)).astype(np.float32)
    LocalEngine().propagate(GRAPH, features, Propagation(2, rows=ROWS))
    assert sum(counts) == 4  # one row is named twice
    counts.clear()
    LocalEngine().propagate(GRAPH, features, Propagation(2, rows=np.arange(2000)))
    assert not counts  # most rows are wanted


def test_which_rows_are_filled():
    labels = OneHotRows(9, 4, np.array([5, 1, 8]), np.array([0, 3, 2]), SparseRows(9, 4, np.array([2]), [[0, 0, 1, 0]]))
    assert sorted(labels.filled(slice(0, 4))) == [1, 2, 5, 8]
    assert sorted(labels.filled(slice(0, 2))) == [5]
    assert sorted(labels.filled(slice(2, 3))) == [2, 8]
    assert_array_equal(labels.ids, [1, 2, 5, 8])
    assert_array_equal(labels[np.array([8, 0, 2, 5]), slice(0, 3)], [[0, 0, 1], [0, 0, 0], [0, 0, 1], [1, 0, 0]])
    assert_array_equal(labels[1:3], [[0, 0, 0, 1], [0, 0, 1, 0]])
    assert_array_equal(labels.only(np.arange(9) > 4)[:].sum(axis=1), [0, 0, 0, 0, 0, 1, 0, 0, 1])


def test_marks_are_given_up_when_many_rows_are_reached():
    assert block.marks(np.ones(80, np.uint8)) is None
    one = np.zeros(80, np.uint8)
    one[[0, 9]] = 1
    assert_array_equal(block.marks(one)[:3], [1, 2, 0])
