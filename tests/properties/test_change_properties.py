"""Random graphs and changes: the changed graph is the one that a fresh build makes, its states have the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import edge_lists, features_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from gamlp.errors import NotFiniteError
from gamlp.graph.build.changes import Changes, EdgeSet, apply_changes
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Graph
from gamlp.propagate import LocalEngine, Normalization, Propagation, changed_states
from gamlp.propagate.states import keep_states

NONE = np.zeros(0, np.int64)


def graph_of(adjacency, features):
    return Graph(adjacency, features, np.full(len(features), -1, np.int64), names=None)


def entries(adjacency):
    """Return {(row, column): weight}."""
    rows = np.repeat(np.arange(adjacency.nodes), np.diff(adjacency.indptr)).tolist()
    weights = [1.0] * adjacency.entries if adjacency.weights is None else adjacency.weights.tolist()
    return dict(zip(zip(rows, adjacency.indices.tolist(), strict=True), weights, strict=True))


@st.composite
def changes_of(draw, graph, *, directed, weighted):
    """Draw changes, and what the edges and features are afterwards, by a plain loop over dictionaries."""
    nodes, there = graph.nodes, entries(graph.adjacency)
    if not directed:
        there = {key: weight for key, weight in there.items() if key[0] <= key[1]}
    some = draw(st.lists(st.sampled_from(sorted(there)), unique=True, max_size=4)) if there else []
    gone = some[: draw(st.integers(0, len(some)))] if weighted else some
    other = some[len(gone) :]
    count = draw(st.integers(0, 3))
    removed = draw(st.lists(st.integers(0, nodes - 1), unique=True, max_size=min(2, nodes + count - 1)))
    ends = st.integers(0, nodes + count - 1).filter(lambda node: node not in removed)
    pairs = draw(st.lists(st.tuples(ends, ends), unique=True, max_size=5)) if nodes + count > len(removed) else []
    if not directed:
        pairs = list({(min(pair), max(pair)): None for pair in pairs})
    more = [pair for pair in pairs if pair[0] != pair[1] and pair not in there and pair not in gone]
    other = [pair for pair in other if not set(pair) & set(removed)]
    value = st.sampled_from([0.5, 1.0, 3.0, 1e-3])
    after = {key: weight for key, weight in there.items() if key not in gone}
    for pair in [*other, *more]:
        after[pair] = draw(value) if weighted else 1.0
    changed = sorted(set(draw(st.lists(st.integers(0, nodes - 1), max_size=2))) - set(removed))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    rows = random.standard_normal((len(changed), graph.features.shape[1])).astype(np.float32)
    added = random.standard_normal((count, graph.features.shape[1])).astype(np.float32)

    def edges(pairs):
        source, target = np.array(pairs, np.int64).reshape(-1, 2).T
        return EdgeSet(
            source, target, np.array([after.get(pair, 1) for pair in pairs], np.float32) if weighted else None
        )

    new = graph_of(adjacency_from_edges(NONE, NONE, nodes=count), added) if count else None
    made = Changes(
        new, np.array(changed, np.int64), rows, removed=np.array(sorted(removed), np.int64),
        edges_added=edges(more), edges_changed=edges(other), edges_removed=edges(gone),
    )  # fmt: skip
    features = np.array(graph.features)
    features[changed] = rows
    return made, after, np.concatenate([features, added])


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_changed_graph_and_its_states_are_those_of_a_fresh_build(data):
    directed = data.draw(st.booleans())
    given_edges = data.draw(edge_lists(14))
    weights, loops, r = given_edges.weights, data.draw(st.booleans()), data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    adjacency = adjacency_from_edges(
        given_edges.source, given_edges.target, nodes=given_edges.nodes, weights=weights, symmetric=not directed
    )
    graph = graph_of(adjacency, data.draw(features_of(given_edges.nodes)))
    changes, after, features = data.draw(changes_of(graph, directed=directed, weighted=weights is not None))
    new, moved = apply_changes(graph, changes, directed=directed)

    left = np.delete(np.arange(len(features)), changes.removed)
    number = {int(node): at for at, node in enumerate(left)}
    kept = {pair: weight for pair, weight in after.items() if pair[0] in number and pair[1] in number}
    ends = np.array([[number[node] for node in pair] for pair in kept], np.int64).reshape(-1, 2)
    values = None if weights is None else np.array(list(kept.values()), np.float32)
    fresh = adjacency_from_edges(*ends.T, nodes=len(left), weights=values, symmetric=not directed, self_loops=False)
    assert_array_equal(new.adjacency.indptr, fresh.indptr)
    assert_array_equal(new.adjacency.indices, fresh.indices)
    if weights is not None:
        assert_array_equal(new.adjacency.weights, fresh.weights)
    assert_array_equal(new.features, features[left])
    if changes.removed.size:
        assert new.names is not None
        assert_array_equal(new.names, left)

    storage = data.draw(st.sampled_from(["float32", "float16"]))
    spec = Propagation(3, Normalization(r, loops), storage=storage)
    old = keep_states(LocalEngine(), graph.adjacency, graph.features, spec)
    most, changed_states.MOST = changed_states.MOST, data.draw(st.sampled_from([changed_states.MOST, 1e9]))
    try:
        got, _ = changed_states.changed_states(
            LocalEngine(), old, new.adjacency, new.features, moved, directed=directed
        )
    finally:
        changed_states.MOST = most
    want = keep_states(LocalEngine(), fresh, features[left], spec)
    assert got.values.tobytes() == want.values.tobytes()
    assert bytes_of(lambda: got.hops(np.arange(len(left)))) == bytes_of(
        lambda: LocalEngine().propagate(fresh, features[left], spec).values
    )


def bytes_of(make):
    """Return the bytes of what is made, None where float16 cannot hold it, which is refused."""
    try:
        return make().tobytes()
    except NotFiniteError:
        return None


def test_what_float16_cannot_hold_is_refused_by_states_and_by_a_propagation():
    ends, weights = np.array([[0, 1], [1, 0]]), np.array([1e-3, 1e3], np.float32)
    adjacency = adjacency_from_edges(*ends.T, nodes=2, weights=weights, symmetric=False)
    features = np.array([[0.125], [0.1]], np.float32)
    spec = Propagation(1, Normalization(1.0, False), storage="float16")
    # node 1 hears 0.125 / 0.001 of node 0, times its own row sum of 1,000
    states = keep_states(LocalEngine(), adjacency, features, spec)
    for make in (lambda: states.hops(np.arange(2)), lambda: LocalEngine().propagate(adjacency, features, spec)):
        with pytest.raises(NotFiniteError, match="float16"):
            make()
