"""Adjacency and engines on graphs of every odd shape, against float64 matrices."""

import numpy as np
from graphs import dense, edge_lists, features_of, normalised, propagated
from hypothesis import given, settings
from hypothesis import strategies as st

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate import LocalEngine, Normalization, Propagation, Restart
from gamlp.propagate.stationary import stationary_features

QUICK = settings(max_examples=40, deadline=None, derandomize=True)


def as_matrix(adjacency):
    found = np.zeros((adjacency.nodes, adjacency.nodes))
    for row in range(adjacency.nodes):
        for at in range(adjacency.indptr[row], adjacency.indptr[row + 1]):
            found[row, adjacency.indices[at]] += 1 if adjacency.weights is None else adjacency.weights[at]
    return found


@QUICK
@given(edges=edge_lists(), loops=st.booleans())
def test_an_edge_list_becomes_its_matrix(edges, loops):
    adjacency = adjacency_from_edges(*edges[1:3], nodes=edges.nodes, weights=edges.weights, self_loops=loops)
    np.testing.assert_allclose(as_matrix(adjacency), dense(edges, loops=loops), rtol=1e-6)
    for row in range(edges.nodes):
        assert (np.diff(adjacency.indices[adjacency.indptr[row] : adjacency.indptr[row + 1]]) > 0).all()


@QUICK
@given(data=st.data(), edges=edge_lists(), r=st.sampled_from([0.0, 0.3, 0.5, 1.0]), self_loops=st.booleans())
def test_hops_are_those_of_the_matrix_with_and_without_a_limit(data, edges, r, self_loops):
    features = data.draw(features_of(edges.nodes))
    hops = data.draw(st.integers(0, 4))
    rows = data.draw(st.none() | st.lists(st.integers(0, edges.nodes - 1), min_size=1, max_size=5, unique=True))
    alpha = data.draw(st.none() | st.sampled_from([0.0, 0.6, 1.0]))
    adjacency = adjacency_from_edges(*edges[1:3], nodes=edges.nodes, weights=edges.weights)
    step = normalised(dense(edges, loops=False), r, self_loops=self_loops)
    expected = propagated(step, features, hops)
    if alpha is not None:
        values = [features.astype(np.float64)]
        for _ in range(hops):
            values.append((alpha * step @ values[-1] + (1 - alpha) * values[0]).clip(-2, 3))
        expected = np.stack(values, axis=1)
    restart = None if alpha is None else Restart(alpha, -2, 3)
    wanted = None if rows is None else np.array(rows)
    spec = Propagation(hops, Normalization(r, self_loops), rows=wanted, restart=restart)
    found = LocalEngine().propagate(adjacency, features, spec)
    expected = expected if rows is None else expected[rows]
    np.testing.assert_allclose(found.values, expected, rtol=2e-4, atol=1e-5 * max(1, np.abs(expected).max()))
    limited = LocalEngine(memory=3 * 2**20).propagate(adjacency, features, spec)
    np.testing.assert_array_equal(limited.values, found.values)


@QUICK
@given(data=st.data(), edges=edge_lists(most=8))
def test_the_stationary_state_is_what_propagation_tends_to(data, edges):
    features = data.draw(features_of(edges.nodes))
    adjacency = adjacency_from_edges(*edges[1:3], nodes=edges.nodes)
    found = stationary_features(adjacency, features, Normalization(0.5, True))
    unweighted = edges._replace(weights=None)
    step = normalised(dense(unweighted, loops=False), 0.5, self_loops=True)
    far = np.linalg.matrix_power(step, 2**14) @ features.astype(np.float64)
    np.testing.assert_allclose(found, far, rtol=1e-4, atol=1e-4)
