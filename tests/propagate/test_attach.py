"""Hops of new nodes: by hand, against the whole graph in float64, and what is left out on purpose."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import IdError, NotFiniteError, SettingsError, ShapeError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.build.new_nodes import NewNodes
from gamlp.graph.graph import Graph
from gamlp.propagate import LocalEngine, Normalization, Propagation
from gamlp.propagate import attach as attaching
from gamlp.propagate.attach import attach
from gamlp.propagate.states import keep_states

NONE = np.zeros(0, np.int64)


def nodes_alone(features, **more):
    """Return nodes without edges."""
    features = np.asarray(features, np.float32)
    adjacency = adjacency_from_edges(NONE, NONE, nodes=len(features))
    return Graph(adjacency, features, np.full(len(features), -1), **more)


def new_nodes(features, pairs, weights=None):
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    return NewNodes(nodes_alone(features), source, target, weights)


def attached(adjacency, features, new, *, directed=False, **options):
    """Return the hops of new nodes."""
    states = keep_states(LocalEngine(), adjacency, np.asarray(features, np.float32), Propagation(**options))
    return attach(states, new.beside(adjacency.nodes, directed=directed), new.nodes.features, directed=directed)


def test_a_leaf_of_a_path_by_hand():
    """0 – 1 and a new node 2 beside 1; the mean over neighbours: hop 2 of the new node is half its own features."""
    adjacency = adjacency_from_edges(np.array([0]), np.array([1]), nodes=2)
    new = new_nodes([[8.0]], [(1, 2)])
    found = attached(adjacency, [[4.0], [1.0]], new, hops=3, normalization=Normalization(0.0, self_loops=False))
    # the path 0 – 1 – 2 with 4, 1, 8: hop 1 is 1, (4 + 8)/2, 1; hop 2 is 6, 1, 6; hop 3 is 1, 6, 1
    assert_allclose(found.values[0, :, 0], [8, 1, 6, 1])


def test_new_nodes_among_each_other_by_hand():
    """Two new nodes that only have each other swing between their features."""
    adjacency = adjacency_from_edges(np.array([0]), np.array([1]), nodes=2)
    new = new_nodes([[2.0], [6.0]], [(2, 3)])
    found = attached(adjacency, [[0.0], [0.0]], new, hops=2, normalization=Normalization(0.0, self_loops=False))
    assert_allclose(found.values[:, :, 0], [[2, 6, 2], [6, 2, 6]])


@pytest.mark.parametrize(("r", "loops", "weighted"), list(product((0.0, 0.5, 1.0), (True, False), (True, False))))
def test_followed_everywhere_it_is_the_whole_graph(monkeypatch, r, loops, weighted):
    """With no share left out, the hops are those of the graph that has the new nodes, in float64."""
    monkeypatch.setattr(attaching, "SHARE", 0.0)
    random = np.random.default_rng(3)
    old, new, edges, hops = 30, 6, 70, 5
    source, target = random.integers(0, old + new, (2, edges))
    keep = source != target
    source, target = source[keep], target[keep]
    weights = random.uniform(0.5, 2, len(source)).astype(np.float32) if weighted else None
    inside = (source < old) & (target < old)
    part = [None if values is None else values[inside] for values in (source, target, weights)]
    adjacency = adjacency_from_edges(part[0], part[1], nodes=old, weights=part[2])
    features = random.standard_normal((old + new, 3)).astype(np.float32)
    some = None if weights is None else weights[~inside]
    found = attached(
        *(adjacency, features[:old], NewNodes(nodes_alone(features[old:]), source[~inside], target[~inside], some)),
        hops=hops,
        normalization=Normalization(r, loops),
        stationary=False,
    )
    dense = np.zeros((old + new,) * 2)
    for at, (one, other) in enumerate(zip(source, target, strict=True)):
        dense[one, other] = 1 if weights is None else dense[one, other] + float(weights[at])
    dense = np.maximum(dense, dense.T) + loops * np.eye(old + new)
    degree = dense.sum(axis=1)
    inverse, right = (np.where(degree > 0, np.where(degree > 0, degree, 1) ** p, 0) for p in (r - 1, -r))
    state = features.astype(np.float64)
    for hop in range(hops + 1):
        assert_allclose(found.values[:, hop], state[old:], atol=2e-6)
        state = inverse[:, None] * (dense @ (right[:, None] * state))


def test_what_is_left_out_is_small_and_hubs_are_not_opened(monkeypatch):
    """A new node beside a hub: the hub's other neighbours are not followed, and the last hop is off by a little."""
    star = adjacency_from_edges(np.zeros(200, np.int64), np.arange(1, 201), nodes=201)
    features = np.random.default_rng(0).standard_normal((201, 2)).astype(np.float32)
    new = new_nodes([[1.0, -1.0]], [(0, 201)])
    usual = attached(star, features, new, hops=4).values
    monkeypatch.setattr(attaching, "SHARE", 0.0)
    exact = attached(star, features, new, hops=4).values
    assert_array_equal(usual[:, :3], exact[:, :3])  # the first ring is always followed
    assert 0 < np.abs(usual - exact).max() < 0.02


def test_the_limit_of_a_new_node_is_that_of_its_component():
    """A triangle of 1, 2, 3 and an edge of 10, 20, one new node beside each, one alone; the mean over neighbours."""
    adjacency = adjacency_from_edges(np.array([0, 1, 2, 3]), np.array([1, 2, 0, 4]), nodes=5)
    new = new_nodes([[0.0], [0.0], [7.0]], [(0, 5), (3, 6)])
    features = [[1.0], [2.0], [3.0], [10.0], [20.0]]
    found = attached(adjacency, features, new, hops=1, stationary=True, normalization=Normalization(0.0, False))
    assert found.stationary is not None
    assert_allclose(found.stationary[:, 0], [2, 15, 0])  # alone without self-loops there is nothing


def test_edges_that_are_not_of_new_nodes_are_refused():
    old = nodes_alone([[1.0], [2.0]])
    with pytest.raises(SettingsError, match=r"joins two nodes that are in the graph already"):
        new_nodes([[0.0]], [(0, 1)]).check(old)
    with pytest.raises(IdError, match=r"names node 5"):
        new_nodes([[0.0]], [(0, 5)]).check(old)
    with pytest.raises(SettingsError, match=r"have weights"):
        new_nodes([[0.0]], [(0, 2)], np.ones(1, np.float32)).check(old)
    weighted = adjacency_from_edges(np.array([0]), np.array([1]), nodes=2, weights=np.ones(1, np.float32))
    some = Graph(weighted, np.ones((2, 1), np.float32), np.full(2, -1))
    with pytest.raises(SettingsError, match=r"Add a column weight"):
        new_nodes([[0.0]], [(0, 2)]).check(some)
    with pytest.raises(NotFiniteError, match=r"negative"):
        new_nodes([[0.0]], [(0, 2)], -np.ones(1, np.float32)).check(some)
    with pytest.raises(ShapeError, match=r"Every edge needs both"):
        NewNodes(nodes_alone([[0.0]]), np.array([0, 2]), np.array([2])).check(old)
