"""Propagate on one machine: check what came in, choose the device, return Hops.

X^(0) = X,   X^(l) = Â X^(l−1),   l = 1 … K          cost O(K·E·F)
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse

from gamlp.errors import SettingsError, ShapeError
from gamlp.files import Array
from gamlp.graph.graph import Adjacency
from gamlp.propagate.hops import Hops
from gamlp.propagate.normalize import Normalization, degrees, power


def propagate(
    adjacency: Adjacency,
    features: Array,
    *,
    hops: int,
    normalization: Normalization = Normalization(),  # noqa: B008 — frozen
    rows: Array | None = None,
    keep: Literal["all", "last"] = "all",
    stationary: bool = False,
    storage: Literal["float32", "float16"] = "float32",
    device: str = "cpu",
) -> Hops:
    """Return X, ÂX, …, ÂᴷX.  adjacency (N, N), features (N, F) → values (len(rows) or N, K+1, F).

    `keep="last"` keeps ÂᴷX alone, values (R, 1, F). `stationary` adds X^(∞), (R, F).
    """
    if hops < 0:
        raise SettingsError(f"The number of hops is {hops}.\nExpected 0 or more.")
    operator = Propagator(adjacency, normalization, device=device)
    state = np.asarray(features, dtype=np.float32)
    wanted = slice(None) if rows is None else rows
    kept = [state[wanted]]
    for _ in range(hops):
        state = operator(state)
        kept = [*kept, state[wanted]] if keep == "all" else [state[wanted]]
    values = np.stack(kept, axis=1).astype(storage)
    limit = _stationary(adjacency, features, normalization)[wanted].astype(storage) if stationary else None
    return Hops(values=values, rows=rows, stationary=limit)


class Propagator:
    """Â as a function: x (N, F) float32 → Âx (N, F) float32."""

    def __init__(self, adjacency: Adjacency, normalization: Normalization, device: str = "cpu") -> None:
        degree = degrees(adjacency, self_loops=normalization.self_loops)
        nodes = adjacency.nodes
        weights = np.ones(adjacency.entries, np.float32) if adjacency.weights is None else adjacency.weights
        matrix = sparse.csr_array((weights, adjacency.indices, adjacency.indptr), shape=(nodes, nodes))
        if normalization.self_loops:
            matrix = matrix + sparse.eye_array(nodes, dtype=np.float32, format="csr")
        self._matrix = matrix
        self._left = power(degree, normalization.r - 1)[:, None].astype(np.float32)
        self._right = power(degree, -normalization.r)[:, None].astype(np.float32)

    def __call__(self, x: Array) -> Array:
        """Return Âx."""
        if len(x) != len(self._left):
            raise ShapeError(
                f"The matrix has {len(x):,} rows, the graph has {len(self._left):,} nodes.\nEvery node needs one row."
            )
        return np.asarray(self._left * (self._matrix @ (self._right * x)), dtype=np.float32)


def _stationary(adjacency: Adjacency, features: Array, normalization: Normalization) -> Array:
    degree = degrees(adjacency, self_loops=normalization.self_loops)
    nodes = adjacency.nodes
    ones = np.ones(adjacency.entries, np.int8)
    matrix = sparse.csr_array((ones, adjacency.indices, adjacency.indptr), shape=(nodes, nodes))
    count, component = sparse.csgraph.connected_components(matrix, directed=False)
    total = np.bincount(component, weights=degree, minlength=count)
    sums = np.zeros((count, features.shape[1]))
    np.add.at(sums, component, features * power(degree, 1 - normalization.r)[:, None])
    share = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    left = np.where(degree > 0, power(degree, normalization.r), 0)
    return np.asarray((left * share[component])[:, None] * sums[component])
