"""Small graphs, and Â as a dense float64 matrix written straight from its definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import Normalization
from gamlp.storage.files import Array


def from_dense(matrix: Array) -> Adjacency:
    rows, columns = np.nonzero(matrix)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(matrix)))]).astype(np.int64)
    return Adjacency(indptr, columns.astype(np.int32))


def to_dense(adjacency: Adjacency) -> Array:
    matrix = np.zeros((adjacency.nodes, adjacency.nodes))
    for node in range(adjacency.nodes):
        matrix[node, adjacency.indices[adjacency.indptr[node] : adjacency.indptr[node + 1]]] = 1
    return matrix


@pytest.fixture
def graph_of() -> Callable[[int, list[tuple[int, int]]], Adjacency]:
    """Make an undirected graph from its number of nodes and its edges."""

    def make(nodes: int, edges: list[tuple[int, int]]) -> Adjacency:
        matrix = np.zeros((nodes, nodes))
        for a, b in edges:
            matrix[a, b] = matrix[b, a] = 1
        return from_dense(matrix)

    return make


@pytest.fixture
def random_graph() -> Adjacency:
    """40 nodes, about 120 edges; nodes 38 and 39 are isolated."""
    random = np.random.default_rng(7)
    matrix = np.triu(random.random((40, 40)) < 0.16, 1)
    matrix[:, 38:] = matrix[38:] = 0
    return from_dense(matrix | matrix.T)


@pytest.fixture
def dense_hat() -> Callable[[Adjacency, Normalization], Array]:
    """Â = D^(r−1) A D^(−r) by its definition, isolated nodes with zero rows."""

    def make(adjacency: Adjacency, normalization: Normalization) -> Array:
        matrix = to_dense(adjacency) + (np.eye(adjacency.nodes) if normalization.self_loops else 0)
        degree = matrix.sum(axis=1)
        hat = np.zeros_like(matrix)
        for i, j in zip(*np.nonzero(matrix), strict=True):
            hat[i, j] = degree[i] ** (normalization.r - 1) * matrix[i, j] * degree[j] ** (-normalization.r)
        return hat

    return make
