"""The hops of nodes that a graph does not have yet, from the kept states of their neighbours.

For a new node i beside the N nodes of a graph, with neighbours j among these and among the other new nodes,

    x_i^(l) = Σ_j Â'_ij x'_j^(l−1),     Â'_ij = d'_i^(r−1) w_ij d'_j^(−r)

with the degrees d' of the graph that has the new nodes. In states (`states`), with δ = y' − y what an old node feels:

    new   d'_i y'_i^(l) = Σ_old w_ij y'_j^(l−1) + Σ_new w_ij y'_j^(l−1)                 (+ y'_i^(l−1) with self-loops)
    old   d'_j y'_j^(l) = d_j y_j^(l) + Σ_new w_ji y'_i^(l−1) + Σ_old w_jk δ_k^(l−1)    (+ δ_j^(l−1) with self-loops)
          y'_j^(0) = (d_j / d'_j)^r y_j^(0)

The kept y_j^(l) stands for all that comes to j from nodes that feel nothing: none of their rows is read. This is exact
where every δ is followed. Followed are old nodes that are joined to new ones; and from ring to ring, as far as a walk
of K steps comes back, those that a step leads towards new nodes with a share of more than SHARE:

    s_j = Σ_new w_ji / d'_j,     s_k = Σ_j w_kj s_j / d_k > SHARE

What is left out: that other old nodes feel the new ones. docs/living-graph.md has what that changes, measured. Where
edges lead one way, who stands behind a node is not known, and the first ring alone is followed.

X^(∞) of a new node is d'_i^r s with the s of the component it joins, where it joins several their mean by the weights
of the edges; new nodes that join none have one of their own.

Cost: (followed nodes)·K·F, whatever N is; their rows are read where they lie, on disk or in memory. The sums are not an
engine's: an engine sums one array along one adjacency, and here rows of old nodes sum δ and those of new ones y', hop
by hop, a hundred rows in all. A call of an engine takes a millisecond, two of them a hop; these sums take microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csgraph, csr_array

from gamlp.graph.build.changed_adjacency import some_rows
from gamlp.graph.build.new_nodes import Beside
from gamlp.graph.graph import Adjacency
from gamlp.propagate.hops import Hops
from gamlp.propagate.normalize import degrees, power
from gamlp.propagate.sinks import as_stored
from gamlp.propagate.states import States, hops_of
from gamlp.storage.files import Array
from gamlp.storage.numba_cache import cached_njit

SHARE = 0.02


def attach(states: States, beside: Beside, features: Array, *, directed: bool = False) -> Hops:
    """Return X^(0) … X^(K) of n new nodes, (n, K+1, F), and X^(∞) where it is kept; features (n, F) are scaled."""
    spec, own = states.spec, states.spec.normalization
    near = follow(states, beside, directed=directed)
    old, n, loops = len(near.old), len(features), np.float32(own.self_loops)
    factor = power(near.degree, -own.r)
    inverse = power(near.degree, -1.0).astype(np.float32)[:, None]
    kept = np.asarray(states.values[near.old], np.float32)  # (m, K+1, F)
    now = np.empty((old + n, features.shape[1]), np.float32)  # y'^(l) of old nodes, then of new ones
    now[:old] = kept[:, 0] * (factor[:old] * power(states.degree[near.old], own.r)).astype(np.float32)[:, None]
    alone = np.flatnonzero(states.degree[near.old] == 0)  # had no degree, and so no y
    now[alone] = states.columns[near.old[alone], :] * factor[alone].astype(np.float32)[:, None] * states.factors
    now[old:] = features * factor[old:].astype(np.float32)[:, None] * states.factors
    values = np.empty((n, spec.hops + 1, features.shape[1]), np.float32)
    values[:, 0] = now[old:]
    before = states.degree[near.old].astype(np.float32)[:, None]
    for hop in range(1, spec.hops + 1):
        felt = now.copy()  # δ of old nodes, y' of new ones
        felt[:old] -= kept[:, hop - 1]
        total = summed(near.indptr, near.indices, near.weights, old, now, felt)
        total += loops * felt
        total[:old] += before * kept[:, hop]
        now = total * inverse
        values[:, hop] = now[old:]
    scale = power(near.degree[old:], own.r).astype(np.float32)
    found = hops_of(values.astype(spec.storage), scale, states.factors)
    found[:, 0] = as_stored(features, spec.storage)
    if states.limit is None:
        return Hops(found)
    limit = stationary(states, near, values[:, 0]) * scale[:, None] / states.factors
    return Hops(found, None, limit.astype(spec.storage))


@cached_njit
def summed(indptr: Array, indices: Array, weights: Array, old: int, now: Array, felt: Array) -> Array:
    """Return Σ_j w_ij felt_j of the rows below `old`, Σ_j w_ij now_j of the others, (m + n, F)."""
    total = np.zeros_like(now)
    for row in range(len(now)):
        source = felt if row < old else now
        for entry in range(indptr[row], indptr[row + 1]):
            neighbour, weight = indices[entry], weights[entry]
            for column in range(now.shape[1]):
                total[row, column] += weight * source[neighbour, column]
    return total


@dataclass(frozen=True, eq=False)
class Near:
    """The old nodes that are followed and the new ones, in this order, and the adjacency among them, by rows."""

    old: Array  # (m,) ascending
    degree: Array  # (m + n,) d'
    indptr: Array  # (m + n + 1,)
    indices: Array
    weights: Array  # float32


def follow(states: States, beside: Beside, *, directed: bool) -> Near:
    """Return the nodes whose change is followed, and how they hang together."""
    m, loops, local = len(beside.old), float(states.spec.normalization.self_loops), beside.adjacency
    added = degrees(local, self_loops=False)
    degree = np.where(np.arange(len(added)) < m, 0.0, loops) + added
    degree[:m] += states.degree[beside.old]
    share = np.divide(added[:m], degree[:m], where=degree[:m] > 0, out=np.zeros(m))
    old, active = (beside.old, beside.old[:0]) if directed else rings(states, beside.old, share)
    place = np.concatenate([np.searchsorted(old, beside.old), len(old) + np.arange(len(added) - m)])
    whole = np.concatenate([states.degree[old], degree[m:]])
    whole[place[:m]] = degree[:m]
    ones = np.ones(local.entries, np.float32) if local.weights is None else local.weights
    own = (np.repeat(place, np.diff(local.indptr)), place[local.indices], ones)
    row, column, weights = (
        np.concatenate(pair) for pair in zip(own, among(states.adjacency, old, active), strict=True)
    )
    order = np.argsort(row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(whole)))])
    return Near(old, whole, starts, column[order], weights[order])


def rings(states: States, ids: Array, share: Array) -> tuple[Array, Array]:
    """Return the old nodes that are followed, from those joined to new ones on, and those with more than SHARE."""
    known, active = ids, [ids[share > SHARE]]
    share = share[share > SHARE]
    for _ in range((states.spec.hops + 1) // 2 - 1):
        if not len(active[-1]):
            break
        starts, columns, weights = some_rows(states.adjacency, active[-1])
        given = np.repeat(share, np.diff(starts)) * (1 if weights is None else weights)
        found, back = np.unique(columns, return_inverse=True)
        reach = np.bincount(back, weights=given, minlength=len(found)) / states.degree[found]
        joins = (reach > SHARE) & ~np.isin(found, known, assume_unique=True)
        active.append(found[joins])
        share = reach[joins]
        known = np.union1d(known, found[joins])
    return known, np.sort(np.concatenate(active))


def among(adjacency: Adjacency, old: Array, active: Array) -> tuple[Array, Array, Array]:
    """Return the entries of active rows among the nodes `old`: their places, rows and columns, and the weights."""
    starts, columns, weights = some_rows(adjacency, active)
    place = np.minimum(np.searchsorted(old, columns), max(0, len(old) - 1))
    kept = old[place] == columns if len(old) else np.zeros(0, bool)
    row = np.repeat(np.searchsorted(old, active), np.diff(starts))[kept]
    return row, place[kept], np.ones(len(row), np.float32) if weights is None else weights[kept]


def stationary(states: States, near: Near, first: Array) -> Array:
    """Return D^(−r) X^(∞) c of the new nodes, (n, F): one row for all that are joined to each other."""
    assert states.limit is not None
    m, degree = len(near.old), near.degree[len(near.old) :]
    of_new = csr_array((near.weights, near.indices, near.indptr), shape=(len(near.degree),) * 2)[m:]
    count, group = csgraph.connected_components(of_new[:, m:], directed=False)
    groups = csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(count, len(group)))
    to_old = groups @ of_new[:, :m].astype(np.float64)
    joined, own = to_old.sum(axis=1), groups @ degree
    sums = to_old @ np.asarray(states.limit[near.old], np.float64)
    sums = np.where(joined[:, None] > 0, sums, groups @ (degree[:, None] * first))
    total = np.where(joined > 0, joined, own)[:, None]
    return np.asarray(np.divide(sums, total, where=total > 0, out=np.zeros_like(sums))[group], dtype=np.float32)
