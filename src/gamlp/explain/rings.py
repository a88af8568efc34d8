"""Breadth-first search: the nodes at each distance from one node. O(E) at most, in O(N) memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.storage.files import Array

BLOCK = 2**22  # adjacency entries looked at in one go


def rings(adjacency: Adjacency, start: int, *, hops: int, limit: int | None = None) -> Iterator[Array]:
    """Yield the nodes at distance 0, 1, …, `hops` from `start`, each ring sorted.

    Hop l of a node averages over exactly the nodes of rings 0 … l. With a limit the search ends before a ring for which
    more than `limit` entries would have to be read.
    """
    seen = np.zeros(adjacency.nodes, dtype=bool)
    ring = np.array([start], dtype=np.int64)
    seen[ring] = True
    yield ring
    for _ in range(hops):
        lengths = adjacency.indptr[ring + 1] - adjacency.indptr[ring]
        if limit is not None and int(lengths.sum()) > limit:
            return
        ring = next_ring(adjacency, ring, lengths, seen)
        yield ring


def next_ring(adjacency: Adjacency, ring: Array, lengths: Array, seen: Array) -> Array:
    """Return the neighbours of `ring` that were not seen, and mark them as seen."""
    ends = np.cumsum(lengths)
    found = [np.zeros(0, dtype=np.int64)]
    first = 0
    while first < len(ring):
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + BLOCK, side="right")))
        part, counts = ring[first:last], lengths[first:last]
        offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        neighbours = adjacency.indices[np.repeat(adjacency.indptr[part], counts) + offsets]
        fresh = np.unique(neighbours[~seen[neighbours]]).astype(np.int64)
        seen[fresh] = True
        found.append(fresh)
        first = last
    return np.sort(np.concatenate(found))
