"""How each method normalises the adjacency A (N, N), in scipy: on the whole graph, or on each cluster.

    symmetric   D^(−1/2) (A+I) D^(−1/2)           GCN and its kin
    mean        D^(−1) A                          GraphSAGE, GraphSAINT
    enhanced    Â + λ·diag(Â), Â = D^(−1) (A+I)   Cluster-GCN
    looped      A+I, every entry 1                gat, unimp and deepergcn, which find their own weights

These three refuse edge weights (`check_weights`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency, Graph

Matrix = Any  # a scipy.sparse.csr_array
ENHANCEMENT = np.float32(0.1)  # λ


def matrix_of(adjacency: Adjacency) -> Matrix:
    """Return the adjacency as a scipy matrix."""
    weights = adjacency.weights
    values = np.ones(adjacency.entries, np.float32) if weights is None else np.asarray(weights, np.float32)
    shape = (adjacency.nodes, adjacency.nodes)
    return sp.csr_array((values, np.asarray(adjacency.indices), np.asarray(adjacency.indptr)), shape=shape)


def check_weights(name: str, graph: Graph) -> None:
    """Refuse edge weights where a method cannot use them; those of a graph with relations only count its relations."""
    if graph.adjacency.weights is not None and graph.targets is None:
        raise SettingsError(
            f"{name} takes no edge weights, and the edges of {graph.name or 'the graph'} have some.\n"
            "It finds weights of its own: leave those of the graph out, or use a method with them, such as gcn or sgc."
        )


def symmetric(matrix: Matrix) -> Matrix:
    """Return D^(−1/2) (A+I) D^(−1/2)."""
    loops = with_loops(matrix)
    scale = sp.diags_array(power(loops.sum(axis=1), -0.5))
    return (scale @ loops @ scale).tocsr()


def mean(matrix: Matrix) -> Matrix:
    """Return D^(−1) A; the row of an isolated node is zero."""
    return (sp.diags_array(power(matrix.sum(axis=1), -1.0)) @ matrix).tocsr()


def enhanced(matrix: Matrix) -> Matrix:
    """Return Â + λ·diag(Â) with Â = D^(−1) (A+I)."""
    average = mean(with_loops(matrix))
    return (average + sp.diags_array(ENHANCEMENT * average.diagonal())).tocsr()


def looped(matrix: Matrix) -> Matrix:
    """Return A+I with every entry 1."""
    loops = with_loops(matrix)
    return sp.csr_array((np.ones_like(loops.data), loops.indices, loops.indptr), shape=loops.shape)


def with_loops(matrix: Matrix) -> Matrix:
    """Give a self-loop of weight 1 to every node without one."""
    missing = (matrix.diagonal() == 0).astype(np.float32)
    return (matrix + sp.diags_array(missing)).tocsr()


def power(degrees: Any, exponent: float) -> Any:
    """Return degrees^exponent, 0 where the degree is 0."""
    return np.where(degrees > 0, np.where(degrees > 0, degrees, 1.0) ** exponent, 0.0).astype(np.float32)
