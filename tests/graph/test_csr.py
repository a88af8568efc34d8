"""Edge lists to adjacencies, against hand-made rows and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from gamlp.errors import IdError, NotFiniteError, ShapeError
from gamlp.graph.build import sorting
from gamlp.graph.build.csr import adjacency_from_edges


def edges(*pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def dense(adjacency):
    values = np.ones(adjacency.entries, np.float32) if adjacency.weights is None else adjacency.weights
    shape = (adjacency.nodes, adjacency.nodes)
    return sparse.csr_array((values, adjacency.indices, adjacency.indptr), shape=shape).toarray()


def by_scipy(source, target, nodes, weights, symmetric, self_loops):
    values = np.ones(len(source), np.float32) if weights is None else weights.astype(np.float32)
    matrix = sparse.coo_array((values, (source, target)), shape=(nodes, nodes)).toarray()
    if weights is None:
        matrix = np.minimum(matrix, 1)
    if not self_loops:
        np.fill_diagonal(matrix, 0)
    return np.maximum(matrix, matrix.T) if symmetric else matrix


def test_doubles_loops_and_order_by_hand():
    adjacency = adjacency_from_edges(*edges((2, 0), (0, 1), (1, 0), (0, 1), (3, 3)), nodes=5)
    assert_array_equal(adjacency.indptr, [0, 2, 3, 4, 4, 4])
    assert_array_equal(adjacency.indices, [1, 2, 0, 0])
    assert adjacency.weights is None
    assert adjacency.indptr.dtype == np.int64
    assert adjacency.indices.dtype == np.int32


def test_directions_and_loops_are_kept_when_asked():
    directed = adjacency_from_edges(*edges((2, 0), (0, 1), (3, 3)), nodes=4, symmetric=False, self_loops=True)
    assert_array_equal(directed.indptr, [0, 1, 1, 2, 3])
    assert_array_equal(directed.indices, [1, 0, 3])


def test_weights_add_up_in_a_direction_and_the_larger_direction_counts():
    ends = edges((0, 1), (0, 1), (1, 0), (1, 2), (2, 2))
    adjacency = adjacency_from_edges(*ends, nodes=3, weights=np.array([1.0, 2.0, 2.5, 4.0, 7.0]), self_loops=True)
    assert_array_equal(dense(adjacency), [[0, 3, 0], [3, 0, 4], [0, 4, 7]])


def test_an_edge_named_both_ways_weighs_the_same_as_named_once():
    once = adjacency_from_edges(*edges((0, 1), (1, 2)), nodes=3, weights=np.array([2.0, 3.0]))
    both = adjacency_from_edges(*edges((0, 1), (1, 2), (1, 0), (2, 1)), nodes=3, weights=np.array([2.0, 3, 2, 3]))
    assert_array_equal(dense(once), dense(both))


@settings(deadline=None, max_examples=40)
@given(
    nodes=st.integers(1, 40),
    count=st.integers(0, 200),
    seed=st.integers(0, 2**16),
    weighted=st.booleans(),
    symmetric=st.booleans(),
    self_loops=st.booleans(),
    threads=st.integers(1, 3),
)
def test_any_list_equals_scipy(nodes, count, seed, weighted, symmetric, self_loops, threads):
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, nodes, (2, count))
    weights = rng.integers(1, 9, count).astype(np.float32) if weighted else None
    adjacency = adjacency_from_edges(
        source, target, nodes=nodes, weights=weights, symmetric=symmetric, self_loops=self_loops, threads=threads
    )
    adjacency.check()
    for i in range(nodes):
        row = adjacency.indices[adjacency.indptr[i] : adjacency.indptr[i + 1]]
        assert (np.diff(row) > 0).all()
    assert_array_equal(dense(adjacency), by_scipy(source, target, nodes, weights, symmetric, self_loops))


@pytest.mark.parametrize("weighted", [False, True])
def test_many_buckets_and_a_hub_equal_scipy(weighted):
    rng = np.random.default_rng(0)
    nodes, count = 3000, 600_000
    source, target = rng.integers(0, nodes, (2, count))
    target[: count // 3] = 77
    weights = rng.integers(1, 5, count).astype(np.float32) if weighted else None
    assert sorting.shift_of(nodes, 2 * count) < 8  # several buckets
    adjacency = adjacency_from_edges(source, target, nodes=nodes, weights=weights, threads=3)
    alone = adjacency_from_edges(source, target, nodes=nodes, weights=weights, threads=1)
    assert_array_equal(adjacency.indices, alone.indices)
    assert_array_equal(dense(adjacency), by_scipy(source, target, nodes, weights, True, False))


def test_weights_are_the_same_in_both_directions_to_the_last_bit():
    rng = np.random.default_rng(1)
    source, target = rng.integers(0, 20, (2, 5000))
    matrix = dense(adjacency_from_edges(source, target, nodes=20, weights=rng.random(5000), threads=2))
    assert_array_equal(matrix, matrix.T)


def test_ids_of_any_whole_type():
    expected = adjacency_from_edges(*edges((0, 1), (1, 2)), nodes=3).indices
    for kind in (np.int32, np.uint16, np.uint64):
        assert_array_equal(adjacency_from_edges(*edges((0, 1), (1, 2)).astype(kind), nodes=3).indices, expected)


def test_very_many_nodes_get_long_ids():
    """2³¹ nodes do not fit a test: the last step is asked directly."""
    starts, indptr = np.array([0, 2]), np.array([0, 1, 2])
    keys = np.array([2**33 + 5, (1 << 34) | 7])
    indices = np.empty(2, np.int64)
    sorting.write(keys, None, starts, indptr, 1, 34, 0, indices, None, 0, 1)
    assert_array_equal(indices, [2**33 + 5, 7])


@pytest.mark.parametrize(("pair", "found"), [((0, 3), "node 3"), ((-1, 0), "node -1")])
def test_an_edge_that_names_no_node_is_refused(pair, found):
    with pytest.raises(IdError, match=found):
        adjacency_from_edges(*edges((0, 1), pair), nodes=3)


def test_lists_that_do_not_fit_together_are_refused():
    with pytest.raises(ShapeError, match="2 sources and 1 targets"):
        adjacency_from_edges(np.array([0, 1]), np.array([1]), nodes=2)
    with pytest.raises(ShapeError, match="1 edge weights for 2 edges"):
        adjacency_from_edges(np.array([0, 1]), np.array([1, 0]), nodes=2, weights=np.array([1.0]))
    with pytest.raises(NotFiniteError):
        adjacency_from_edges(np.array([0]), np.array([1]), nodes=2, weights=np.array([np.nan]))
    with pytest.raises(IdError, match="float64"):
        adjacency_from_edges(np.array([0.0]), np.array([1.0]), nodes=2)
