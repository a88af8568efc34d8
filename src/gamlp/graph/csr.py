"""Make an adjacency from a list of edges: both directions, no doubles, neighbours in order.

An edge (s, t) becomes an entry in row s; symmetric graphs get it in row t too. Doubled edges count once; with weights,
those of one direction are added up. A weighted symmetric graph takes the larger of its two directions,
A = max(B, Bᵀ), so that a list that names every edge both ways means the same as one that names it once.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gamlp.errors import IdError, NotFiniteError, ShapeError
from gamlp.files import Array
from gamlp.graph.graph import Adjacency


def adjacency_from_edges(
    source: Array,
    target: Array,
    *,
    nodes: int,
    weights: Array | None = None,
    symmetric: bool = True,
    self_loops: bool = False,
) -> Adjacency:
    """Return the N×N adjacency of the edges source[e] → target[e], (E',) each; self-loops are dropped unless wanted."""
    source, target, weights = _checked(source, target, nodes, weights)
    if not self_loops:
        kept = source != target
        source, target = source[kept], target[kept]
        weights = None if weights is None else weights[kept]
    values = np.ones(len(source), np.float32) if weights is None else weights
    matrix = sparse.coo_array((values, (source, target)), shape=(nodes, nodes)).tocsr()
    matrix.sum_duplicates()
    if symmetric:
        matrix = matrix.maximum(matrix.T.tocsr())
    matrix.sort_indices()
    index = np.int32 if nodes < 2**31 else np.int64
    return Adjacency(
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(index),
        weights=None if weights is None else matrix.data.astype(np.float32),
    )


def _checked(source: Array, target: Array, nodes: int, weights: Array | None) -> tuple[Array, Array, Array | None]:
    """Refuse edges that name no node, and lists of different lengths."""
    source, target = np.asarray(source), np.asarray(target)
    if source.ndim != 1 or source.shape != target.shape:
        raise ShapeError(
            f"The edges have {source.size:,} sources and {target.size:,} targets.\nEvery edge needs one of each."
        )
    for ends in (source, target):
        if len(ends) and not (0 <= (low := int(ends.min())) <= (high := int(ends.max())) < nodes):
            raise IdError(
                f"An edge names node {low if low < 0 else high:,}, the graph has {nodes:,} nodes.\n"
                f"Edge ends must lie between 0 and {nodes - 1:,}."
            )
    if weights is None:
        return source, target, None
    weights = np.asarray(weights, dtype=np.float32)
    if weights.shape != source.shape:
        raise ShapeError(f"There are {weights.size:,} edge weights for {len(source):,} edges.\nGive one per edge.")
    if not np.isfinite(weights).all() or bool((weights < 0).any()):
        raise NotFiniteError("Some edge weights are negative, NaN or infinite.\nWeights must be ≥ 0 and finite.")
    return source, target, weights
