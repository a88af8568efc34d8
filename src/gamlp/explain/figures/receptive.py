"""How much of the graph a node sees within l hops: the reason why one number of hops does not fit all nodes.

A node in a dense region reaches most of the graph in a few hops, one in a sparse region almost nothing (paper, figure
1, right). Shares are found by breadth-first search, O(E) a start at most; the whole search takes O(N) memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gamlp.explain.figures.chart import ACCENT, SECOND, Axes, Chart, legend_above
from gamlp.graph.graph import Adjacency
from gamlp.storage.files import Array

BLOCK = 2**22  # adjacency entries looked at in one go


@dataclass(frozen=True, eq=False)
class Reach:
    """What a group of starting nodes reaches."""

    region: str
    starts: Array  # (S,) node ids
    degrees: Array  # (S,)
    shares: Array  # (S, L+1): the share of all nodes within l hops, the node itself included


def charts(regions: Sequence[Reach]) -> list[Chart]:
    """Draw the share of the graph within each number of hops, a line per node and a thick one for the mean."""
    if not regions:
        return []
    hops = regions[0].shares.shape[1]
    rows = [
        (reach.region, int(start), int(degree), *(f"{share:.8f}" for share in shares))
        for reach in regions
        for start, degree, shares in zip(reach.starts, reach.degrees, reach.shares, strict=True)
    ]

    def draw(axes: Axes) -> None:
        for reach, colour, marker in zip(regions, (ACCENT, SECOND), "os", strict=False):
            axes.plot(100 * reach.shares.T, color=colour, alpha=0.2, linewidth=1)
            low, high = int(reach.degrees.min()), int(reach.degrees.max())
            spread = f"{low:,}" if low == high else f"{low:,}–{high:,}"
            mean = 100 * reach.shares.mean(axis=0)
            axes.plot(mean, color=colour, marker=marker, linewidth=2.2, label=f"{reach.region}: degree {spread}")
        axes.set(xlabel="hops", ylabel="share of the graph, %", xticks=range(hops))
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        legend_above(axes)

    header = ("region", "node", "degree", *(f"within {hop}" for hop in range(hops)))
    return [Chart("receptive-field", "How far nodes see", header, rows, draw)]


def receptive_fields(adjacency: Adjacency, *, hops: int, sample: int = 10, seed: int = 0) -> list[Reach]:
    """Return the reach of connected nodes, of the lowest quarter (sparse) and highest hundredth (dense) by degree."""
    degrees = np.diff(adjacency.indptr)
    connected = np.flatnonzero(degrees > 0)
    if not len(connected):
        return []
    random = np.random.default_rng([seed, 0xF1E1D])
    low, high = np.quantile(degrees[connected], [0.25, 0.99], method="nearest")
    regions = {"sparse": connected[degrees[connected] <= low], "dense": connected[degrees[connected] >= high]}
    found = []
    for region, ids in regions.items():
        starts = np.sort(random.choice(ids, min(sample, len(ids)), replace=False))
        shares = np.array([share_within(adjacency, int(start), hops=hops) for start in starts])
        found.append(Reach(region, starts, degrees[starts], shares))
    return found


def share_within(adjacency: Adjacency, start: int, *, hops: int) -> Array:
    """Return the share of all nodes within 0 … `hops` hops of `start`; (L+1,)."""
    return np.cumsum([len(ring) for ring in rings(adjacency, start, hops=hops)]) / adjacency.nodes


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
    cuts = np.searchsorted(np.cumsum(lengths), np.arange(BLOCK, lengths.sum(), BLOCK))
    found = [np.zeros(0, dtype=np.int64)]
    for part, counts in zip(np.split(ring, cuts), np.split(lengths, cuts), strict=True):
        offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        neighbours = adjacency.indices[np.repeat(adjacency.indptr[part], counts) + offsets]
        fresh = np.unique(neighbours[~seen[neighbours]]).astype(np.int64)
        seen[fresh] = True
        found.append(fresh)
    return np.sort(np.concatenate(found))
