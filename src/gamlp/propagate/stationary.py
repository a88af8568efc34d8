"""X^(∞), where propagation ends: in closed form, one pass over the nodes instead of a long iteration.

Within a connected component (paper, section 3.2.2, with the component's own sum in place of 2m + n),

    Â^∞_ij = d_i^r d_j^(1−r) / Σ_k d_k,        d the row sums of A + I, or of A without self-loops

so X^(∞)_i = d_i^r · s, where s is one row per component: O(N·F). The adjacency must be symmetric, which is looked at
first: with random numbers a and b for the nodes, Σ A_ij a_i b_j = Σ A_ij a_j b_i. Without self-loops isolated nodes get
zeros, and a bipartite component, which swings between two states for ever, gets their mean.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csgraph, csr_array

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import ROWS_A_STEP, Normalization, degrees, power, row_sums
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges


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
    random, nodes = np.random.default_rng(0), adjacency.nodes
    a, b = random.integers(0, 2**64, (2, nodes), dtype=np.uint64)
    difference, into = np.uint64(0), np.zeros(nodes)
    for first, last in ranges(nodes, ROWS_A_STEP):
        offsets = np.asarray(adjacency.indptr[first : last + 1])
        ids = np.asarray(adjacency.indices[offsets[0] : offsets[-1]])
        counts = np.diff(offsets)
        difference += (np.repeat(a[first:last], counts) * b[ids] - np.repeat(b[first:last], counts) * a[ids]).sum()
        if adjacency.weights is not None:
            into += np.bincount(ids, weights=adjacency.weights[offsets[0] : offsets[-1]], minlength=nodes)
    if difference != 0:
        return False
    return adjacency.weights is None or bool(np.allclose(into, row_sums(adjacency), rtol=1e-4, atol=0))


def components(adjacency: Adjacency) -> tuple[Array, int]:
    """Return the connected component of each node, (N,), and how many there are."""
    if adjacency.entries == 0:
        return np.arange(adjacency.nodes), adjacency.nodes
    ones = np.broadcast_to(np.int8(1), adjacency.indices.shape)
    matrix = csr_array((ones, adjacency.indices, adjacency.indptr), shape=(adjacency.nodes,) * 2)
    count, component = csgraph.connected_components(matrix, directed=False)
    return component, int(count)
