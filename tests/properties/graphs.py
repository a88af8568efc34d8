"""Random graphs of every odd shape, and float64 references written from the equations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

Matrix = np.ndarray


class Edges(NamedTuple):
    """A list of edges as a user may give it: doubled, to itself, in any order, or empty."""

    nodes: int
    source: Matrix
    target: Matrix
    weights: Matrix | None


@st.composite
def edge_lists(draw: st.DrawFn, most: int = 12) -> Edges:
    """Draw one node or several, no edges or many; a hub now and then; weights, zero among them, now and then."""
    nodes = draw(st.integers(1, most))
    ends = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=3 * nodes))
    if draw(st.booleans()):
        hub = draw(ends)
        pairs += [(hub, other) for other in range(nodes)]
    pairs += pairs[: draw(st.integers(0, 3))]  # doubled
    weights = None
    if draw(st.booleans()):
        some = st.sampled_from([0.0, 0.5, 1.0, 2.0, 1e-3, 1e3])
        weights = np.array(draw(st.lists(some, min_size=len(pairs), max_size=len(pairs))), np.float32)
    ends_of = np.array(pairs, np.int64).reshape(-1, 2)
    return Edges(nodes, ends_of[:, 0], ends_of[:, 1], weights)


@st.composite
def features_of(draw: st.DrawFn, nodes: int) -> Matrix:
    """Draw features: numbers of ordinary size, or all the same."""
    width = draw(st.integers(1, 9))
    if draw(st.booleans()):
        return np.full((nodes, width), draw(st.sampled_from([0.0, 1.0, -3.5])), np.float32)
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).normal(size=(nodes, width)).astype(np.float32)


def dense(edges: Edges, *, loops: bool) -> Matrix:
    """Return A as a matrix: doubled edges once, weights of one direction added, the larger of both directions."""
    total = np.zeros((edges.nodes, edges.nodes))
    for at, (source, target) in enumerate(zip(edges.source, edges.target, strict=True)):
        if source != target or loops:
            total[source, target] = 1 if edges.weights is None else total[source, target] + float(edges.weights[at])
    return np.maximum(total, total.T)


def normalised(matrix: Matrix, r: float, *, self_loops: bool) -> Matrix:
    """Return D^(r−1) A D^(−r), entry by entry; 0 to a negative power is 0."""
    matrix = matrix + np.eye(len(matrix)) * self_loops
    degree = matrix.sum(axis=1)
    result = np.zeros_like(matrix)
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            if matrix[i, j] and degree[i] and degree[j]:
                result[i, j] = degree[i] ** (r - 1) * matrix[i, j] * degree[j] ** -r
    return result


def propagated(matrix: Matrix, features: Matrix, hops: int) -> Matrix:
    """Return X, ÂX, …, ÂᴷX, (N, K+1, F) in float64."""
    result = [features.astype(np.float64)]
    for _ in range(hops):
        result.append(matrix @ result[-1])
    return np.stack(result, axis=1)
