"""The whole graph or a part of it, as a network sees it: A (N, N) is normalised in scipy, each method in its way.

    symmetric   D^(−1/2) (A+I) D^(−1/2)           GCN and its kin
    mean        D^(−1) A                          GraphSAGE, GraphSAINT; the row of an isolated node is zero
    enhanced    Â + λ·diag(Â), Â = D^(−1) (A+I)   Cluster-GCN
    looped      A+I, every entry 1                gat, unimp and deepergcn, which find their own weights

Methods that find their own weights refuse those of edges (`check_weights`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency, Graph
from gamlp.message_passing.features import Features, features_of
from gamlp.message_passing.sparse import SparseMatrix

Matrix = Any  # a scipy.sparse.csr_array
ENHANCEMENT = np.float32(0.1)  # λ


@dataclass(frozen=True, eq=False)
class View:
    """n nodes with their normalised adjacency; holds no label but the ones that are input.

    features (n, F) dense or sparse; adjacency (n, n), row i weighs what node i receives; edges (2, E) the same
    entries as (source, target); given (n,) the labels that are input, −1 = none.
    """

    features: Features
    adjacency: SparseMatrix
    edges: torch.Tensor
    given: torch.Tensor

    def with_given(self, given: torch.Tensor) -> View:
        """Return the view with other labels as input."""
        return replace(self, given=given.to(self.given.device))


def view_of(features: Any, matrix: Matrix, device: str = "cpu") -> View:
    """Make a view from scaled features and a normalised matrix; no label is given."""
    entries = matrix.tocoo()
    edges = torch.from_numpy(np.stack([entries.col, entries.row]).astype(np.int64))
    given = torch.full((matrix.shape[0],), -1)
    adjacency = SparseMatrix.of(matrix).to(device)
    return View(features_of(features).to(device), adjacency, edges.to(device), given.to(device))


def matrix_of(adjacency: Adjacency) -> Matrix:
    """Return the adjacency as a scipy matrix."""
    weights = adjacency.weights
    values = np.ones(adjacency.entries, np.float32) if weights is None else np.asarray(weights, np.float32)
    parts = (values, np.asarray(adjacency.indices), np.asarray(adjacency.indptr))
    return sp.csr_array(parts, shape=(adjacency.nodes, adjacency.nodes))


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
    """Return D^(−1) A."""
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
    return (matrix + sp.diags_array((matrix.diagonal() == 0).astype(np.float32))).tocsr()


def power(degrees: Any, exponent: float) -> Any:
    """Return degrees^exponent, 0 where the degree is 0."""
    return np.where(degrees > 0, np.where(degrees > 0, degrees, 1.0) ** exponent, 0.0).astype(np.float32)
