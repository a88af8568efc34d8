"""X^(∞), where propagation ends: in closed form, one pass over the nodes instead of a long iteration.

Within a connected component (paper, section 3.2.2, with the component's own sum in place of 2m + n),

    Â^∞_ij = d_i^r d_j^(1−r) / Σ_k d_k,        d the row sums of A + I, or of A without self-loops

so X^(∞)_i = d_i^r · s, where s is one row per component: O(N·F). The adjacency must be symmetric, which is looked at
first: with a random number a for each node, Σ A_ij a_i a_j² = Σ A_ij a_i² a_j. Without self-loops isolated nodes get
zeros, and a bipartite component, which swings between two states for ever, gets their mean.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csgraph, csr_array

from gamlp.errors import SettingsError
from gamlp.graph.build.hashing import mixed
from gamlp.graph.graph import Adjacency
from gamlp.propagate.chunks import equal_work
from gamlp.propagate.normalize import ROWS_A_STEP, Normalization, degrees, power, row_sums
from gamlp.storage.files import Array
from gamlp.storage.numba_cache import cached_njit
from gamlp.storage.threads import available, ranges, workers

ENTRIES_A_STEP = 2**24


def stationary_features(
    adjacency: Adjacency, features: Array, normalization: Normalization, *, rows: Array | None = None
) -> Array:
    """Return X^(∞) of `rows` (R, F) float32; features (N, F)."""
    if not is_symmetric(adjacency):
        raise SettingsError(
            "X^(∞) was asked for, and the adjacency is not symmetric: some edges lead one way, or weigh more one way.\n"
            "It needs an undirected graph: read it without --directed, or use a combiner other than smoothing."
        )
    degree = degrees(adjacency, self_loops=normalization.self_loops)
    component, count = components(adjacency)
    total = np.bincount(component, weights=degree, minlength=count)
    share = np.divide(power(degree, 1 - normalization.r), total[component], where=degree > 0, out=np.zeros_like(degree))
    sums = np.zeros((count, features.shape[1]))  # Σ_j share_j x_j over each component
    for first, last in ranges(len(features), ROWS_A_STEP):
        present, place = np.unique(component[first:last], return_inverse=True)
        weights = csr_array((share[first:last], place, np.arange(last - first + 1)))
        sums[present] += weights.T @ np.asarray(features[first:last], dtype=np.float64)
    scale = np.where(degree > 0, power(degree, normalization.r), 0.0)
    wanted = np.arange(adjacency.nodes) if rows is None else rows
    result = np.empty((len(wanted), features.shape[1]), np.float32)
    for first, last in ranges(len(wanted), ROWS_A_STEP):
        nodes = wanted[first:last]
        result[first:last] = scale[nodes, None] * sums[component[nodes]]
    return result


def is_symmetric(adjacency: Adjacency) -> bool:
    """Say whether A = Aᵀ: the entries by random numbers modulo 2⁶⁴, the weights by the sums of rows and columns."""
    indptr, total = np.asarray(adjacency.indptr), np.zeros(8 * available(), np.uint64)
    with workers() as run:
        tasks = enumerate(equal_work(indptr, len(total)))
        run([partial(compare, indptr, adjacency.indices, total, at, *some) for at, some in tasks])
    if total.sum() != 0:  # of an array it wraps in silence
        return False
    if adjacency.weights is None:
        return True
    into = np.zeros(adjacency.nodes)
    for first, last in ranges(adjacency.entries, ENTRIES_A_STEP):
        into += np.bincount(adjacency.indices[first:last], adjacency.weights[first:last], minlength=len(into))
    return bool(np.allclose(into, row_sums(adjacency), rtol=1e-4, atol=0))


@cached_njit
def compare(indptr: Array, indices: Array, total: Array, at: int, first: int, last: int) -> None:
    """Put Σ a_i a_j² − a_i² a_j over the entries of rows first … last−1 into total[at]."""
    found = np.uint64(0)
    for row in range(first, last):
        once, squared, own = np.uint64(0), np.uint64(0), mixed(np.uint64(row + 1))
        for entry in range(indptr[row], indptr[row + 1]):
            other = mixed(np.uint64(indices[entry] + 1))
            once += other
            squared += other * other
        found += own * squared - own * own * once
    total[at] = found


def components(adjacency: Adjacency) -> tuple[Array, int]:
    """Return the connected component of each node, (N,), and how many there are."""
    if adjacency.entries == 0:
        return np.arange(adjacency.nodes), adjacency.nodes
    ones = np.broadcast_to(np.int8(1), adjacency.indices.shape)
    matrix = csr_array((ones, adjacency.indices, adjacency.indptr), shape=(adjacency.nodes,) * 2)
    count, component = csgraph.connected_components(matrix, directed=False)
    return component, int(count)
