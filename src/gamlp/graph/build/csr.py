"""Make an adjacency from a list of edges: both directions, no doubles, neighbours in order.

An edge (s, t) becomes an entry in row s; symmetric graphs get it in row t too. Doubled edges count once; with weights,
those of one direction are added up. A weighted symmetric graph takes the larger of its two directions,
A = max(B, Bᵀ), so that a list that names every edge both ways means the same as one that names it once.

Cost O(E), by buckets of neighbouring rows (`sorting`).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gamlp.errors import IdError, ShapeError
from gamlp.graph.graph import Adjacency, check_ends, check_weights
from gamlp.storage.files import Array
from gamlp.storage.threads import Run, available, ranges, workers


def adjacency_from_edges(
    source: Array,
    target: Array,
    *,
    nodes: int,
    weights: Array | None = None,
    symmetric: bool = True,
    self_loops: bool = False,
    threads: int | None = None,
) -> Adjacency:
    """Return the N×N adjacency of the edges source[e] → target[e], (E',) each; self-loops are dropped unless wanted."""
    from gamlp.graph.build import sorting

    threads = threads or available()
    with workers(threads) as run:
        source, target = _ends(source, target, nodes, run)
        if weights is not None:
            weights = np.asarray(weights, dtype=np.float32)
            check_weights(weights, len(source))
        shift = sorting.shift_of(nodes, len(source) * (1 + symmetric))
        shape = sorting.Shape(nodes, shift, weights is not None, symmetric, self_loops)
        blocks = 4 * threads if threads > 1 else 1
        buckets = sorting.bucketed(shape, (source, target, weights), run=run, blocks=blocks)
        return Adjacency(*sorting.sort_range(shape, *buckets, run=run, blocks=blocks))


def _ends(source: Array, target: Array, nodes: int, run: Run) -> tuple[Array, Array]:
    """Refuse lists of different lengths, and edges that name no node."""
    source, target = np.asarray(source), np.asarray(target)
    if source.ndim != 1 or source.shape != target.shape:
        raise ShapeError(f"The edges have {source.size:,} sources and {target.size:,} targets.\nEvery edge needs both.")
    for ends in (source, target):
        if ends.dtype.kind not in "iu" and len(ends):
            raise IdError(f"The ends of the edges are of type {ends.dtype}.\nExpected whole numbers from 0 on.")
        run([partial(check_ends, ends[first:last], nodes) for first, last in ranges(len(ends), 2**20)])
    return _plain(source), _plain(target)


def _plain(ends: Array) -> Array:
    """Return long lists of int32 and all of int64 as they are, others as int64: each type is compiled for itself."""
    if len(ends) < 2**20 or ends.dtype not in (np.int32, np.int64):
        return ends.astype(np.int64)
    return np.ascontiguousarray(ends)
