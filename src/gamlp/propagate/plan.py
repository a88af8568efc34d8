"""Everything about a graph and a normalisation that does not depend on the features, worked out once.

With y = D^(−r) x, the hop x' = D^(r−1) A D^(−r) x becomes y' = D^(−1) A y: one division per row, and no weight in the
inner loop of an unweighted graph, whatever r is. x = D^r y at the end.

Work is shared out in ranges of rows of equal (entries + 4·rows). A row of more than `LONGEST` entries is cut into
segments of that many, summed apart and then together in order, so that a hub stalls no thread and the result does not
depend on how many there are.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import Normalization, degrees, power
from gamlp.storage.files import Array

LONGEST = 8192  # changing it changes the last bits of hubs
SMALLEST = 2**14  # work that is worth handing to a thread


@dataclass(frozen=True, eq=False)
class Plan:
    """The scales of the nodes and the pieces of the work."""

    adjacency: Adjacency
    self_loops: bool
    inverse: Array  # (N,) 1/d, 0 for isolated nodes
    enter: Array  # (N,) d^(−r): y = enter · x
    leave: Array  # (N,) d^r: x = leave · y
    pieces: list[tuple[int, int]]  # ranges of rows of equal work
    longest: int  # entries of a row that one thread sums in one go
    hubs: Array  # (H,) longer rows
    hub_starts: Array  # (H+1,) the segments of hub h are hub_starts[h] … hub_starts[h+1]−1
    segments: Array  # (segments, 3) first entry, end, and the hub's own row in its first segment if it has a self-loop


def plan(adjacency: Adjacency, normalization: Normalization, *, threads: int, longest: int = LONGEST) -> Plan:
    """Return how to apply Â with this many threads."""
    degree = degrees(adjacency, self_loops=normalization.self_loops)
    hubs = np.flatnonzero(np.diff(adjacency.indptr) > longest)
    starts, segments = cut_hubs(adjacency.indptr, hubs, longest, own=normalization.self_loops)
    return Plan(
        adjacency=adjacency,
        self_loops=normalization.self_loops,
        inverse=power(degree, -1).astype(np.float32),
        enter=power(degree, -normalization.r).astype(np.float32),
        leave=power(degree, normalization.r).astype(np.float32),
        pieces=equal_work(adjacency.indptr, 16 * threads if threads > 1 else 1),
        longest=longest,
        hubs=hubs,
        hub_starts=starts,
        segments=segments,
    )


def equal_work(indptr: Array, count: int) -> list[tuple[int, int]]:
    """Cut the rows into at most `count` ranges of about equal (entries + 4·rows), none much below SMALLEST."""
    nodes = len(indptr) - 1
    total = int(indptr[-1]) + 4 * nodes
    count = max(1, min(count, total // SMALLEST))

    def work(node: int) -> int:
        return int(indptr[node]) + 4 * node

    cuts = [bisect_left(range(nodes), total * piece // count, key=work) for piece in range(count)]
    return [(first, last) for first, last in zip(cuts, [*cuts[1:], nodes], strict=True) if first < last]


def cut_hubs(indptr: Array, hubs: Array, longest: int, *, own: bool) -> tuple[Array, Array]:
    """Cut every hub's row into segments of `longest` entries."""
    counts = -(-(indptr[hubs + 1] - indptr[hubs]) // longest)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    hub = np.repeat(np.arange(len(hubs)), counts)
    order = np.arange(len(hub)) - starts[hub]
    first = indptr[hubs[hub]] + order * longest
    end = np.minimum(first + longest, indptr[hubs[hub] + 1])
    return starts, np.stack([first, end, np.where((order == 0) & own, hubs[hub], -1)], axis=1).astype(np.int64)
