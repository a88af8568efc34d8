"""Which neighbours of a node matter: how much of its first hop comes from each.

    x_i^(1) = Σ_j Â_ij x_j,    Â_ij ∝ w_ij d_j^(−r),    the share of j: Â_ij over the sum of the row

With self-loops a node is its own neighbour, and has a share too. Cost: one look at the degrees of its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import Normalization, power
from gamlp.storage.files import Array
from gamlp.targets.registry import kind_of


@dataclass(frozen=True)
class Share:
    """What one neighbour gives to hop 1."""

    node: int
    share: float


def hop_shares(
    adjacency: Adjacency, node: int, own: Normalization, known: Array, predicted: int, most: int = 10
) -> list[Share]:
    """Return the neighbours with the largest shares in the first hop of a node, largest first.

    Of equal shares, neighbours known to have the predicted class come first, then those with another label: `known`
    (N,), or (N, T) of several labels a node, −1 = unknown.
    """
    row = slice(int(adjacency.indptr[node]), int(adjacency.indptr[node + 1]))
    ids = np.asarray(adjacency.indices[row], np.int64)
    weights = np.ones(len(ids)) if adjacency.weights is None else np.asarray(adjacency.weights[row], np.float64)
    if own.self_loops:
        ids, weights = np.append(ids, node), np.append(weights, 1.0)
    parts = weights * power(degrees_of(adjacency, ids) + own.self_loops, -own.r)
    total = float(parts.sum())
    told = kind_of(known).known(known[ids]).astype(np.int8)
    told += (known[ids] == predicted) if known.ndim == 1 else (known[ids, predicted] == 1)
    best = np.lexsort((ids, -told, -parts.astype(np.float32)))[:most]
    return [Share(int(ids[at]), float(parts[at]) / total) for at in best if total]


def degrees_of(adjacency: Adjacency, ids: Array) -> Array:
    """Return the row sums of some nodes, (n,) float64."""
    starts, ends = adjacency.indptr[ids], adjacency.indptr[ids + 1]
    if adjacency.weights is None:
        return np.asarray(ends - starts, np.float64)
    rows = zip(starts.tolist(), ends.tolist(), strict=True)
    return np.array([np.asarray(adjacency.weights[first:last], np.float64).sum() for first, last in rows])
