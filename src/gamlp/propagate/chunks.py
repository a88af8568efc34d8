"""How the adjacency is cut into chunks of rows, which are worked on one after the other, and its hubs into segments.

Without a memory limit there is one chunk, the whole. Within one, a chunk is a range of rows with their entries, of
about equal bytes. A row of more than `LONGEST` entries is cut into segments of that many, summed apart and then
together in order, so that a hub stalls no thread and the result does not depend on how many there are; it may lie in
several chunks, cut between its segments, so that a chunk's size is bounded whatever the graph.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gamlp.errors import ShapeError
from gamlp.graph.graph import Adjacency
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

LONGEST = 8192  # entries of a row that one thread sums in one go; changing it changes the last bits of hubs
SMALLEST = 2**14  # work that is worth handing to a thread
ROWS_A_READ = 2**20


@dataclass(frozen=True)
class Chunk:
    """Rows first … last−1 that begin in it, entries start … stop−1, and the segments of hubs among these."""

    first: int
    last: int
    start: int
    stop: int
    segments: tuple[int, int]


@dataclass(frozen=True, eq=False)
class ChunkPlan:
    """The chunks of an adjacency and its hubs."""

    adjacency: Adjacency
    self_loops: bool
    chunk_bytes: int | None  # None: one chunk, whatever its size
    chunks: list[Chunk]
    longest: int
    hubs: Array  # (H,) rows of more than `longest` entries
    hub_starts: Array  # (H+1,) the segments of hub h are hub_starts[h] … hub_starts[h+1]−1
    segments: Array  # (segments, 3) first entry, end, and the hub's own row in its first segment if it has a self-loop

    @property
    def most_rows(self) -> int:
        """Return how many rows a chunk has at most."""
        return max((chunk.last - chunk.first for chunk in self.chunks), default=0)

    @property
    def most_entries(self) -> int:
        """Return how many entries a chunk has at most."""
        return max((chunk.stop - chunk.start for chunk in self.chunks), default=0)


def plan_chunks(
    adjacency: Adjacency, *, self_loops: bool, chunk_bytes: int | None = None, longest: int = LONGEST
) -> ChunkPlan:
    """Look once over the offsets and cut the adjacency into chunks of so many bytes."""
    hubs = _hubs(adjacency, longest, ROWS_A_READ if chunk_bytes is None else rows_a_read(chunk_bytes))
    starts, segments = cut_hubs(adjacency.indptr, hubs, longest, own=self_loops)
    size = chunk_bytes or entry_bytes(adjacency) * adjacency.entries + 8 * adjacency.nodes + 1
    chunks = _chunks(adjacency, segments, size, longest)
    return ChunkPlan(adjacency, self_loops, chunk_bytes, chunks, longest, hubs, starts, segments)


def rows_a_read(chunk_bytes: int) -> int:
    """Return how many offsets are read at a time where nothing else is."""
    return max(2**10, chunk_bytes // 64)


def entry_bytes(adjacency: Adjacency) -> int:
    """Return what an entry takes: its index, and its weight if it has one."""
    return adjacency.indices.dtype.itemsize + (0 if adjacency.weights is None else adjacency.weights.dtype.itemsize)


def equal_work(offsets: Array, count: int) -> list[tuple[int, int]]:
    """Cut rows into at most `count` ranges of about equal (entries + 4·rows), none much below SMALLEST."""
    rows, base = len(offsets) - 1, int(offsets[0])
    total = int(offsets[-1]) - base + 4 * rows
    count = max(1, min(count, total // SMALLEST))

    def work(row: int) -> int:
        return int(offsets[row]) - base + 4 * row

    cuts = [bisect_left(range(rows), total * task // count, key=work) for task in range(count)]
    return [(first, last) for first, last in zip(cuts, [*cuts[1:], rows], strict=True) if first < last]


def cut_hubs(indptr: Array, hubs: Array, longest: int, *, own: bool) -> tuple[Array, Array]:
    """Cut every hub's row into segments of `longest` entries."""
    counts = -(-(indptr[hubs + 1] - indptr[hubs]) // longest)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    hub = np.repeat(np.arange(len(hubs)), counts)
    order = np.arange(len(hub)) - starts[hub]
    first = indptr[hubs[hub]] + order * longest
    end = np.minimum(first + longest, indptr[hubs[hub] + 1])
    return starts, np.stack([first, end, np.where((order == 0) & own, hubs[hub], -1)], axis=1).astype(np.int64)


def _hubs(adjacency: Adjacency, longest: int, step: int) -> Array:
    """Return the long rows, and refuse offsets that would lead a kernel astray."""
    source, found = ArrayReader(adjacency.indptr), [np.empty(0, np.int64)]
    buffer = np.empty(min(step, adjacency.nodes) + 1, adjacency.indptr.dtype)
    ends = [0, 0]
    for first, last in ranges(adjacency.nodes, step):
        offsets = source.rows(first, last + 1, buffer)
        counts = np.diff(offsets)
        ends = [int(offsets[0]) if first == 0 else ends[0], int(offsets[-1])]
        if counts.min() < 0:
            ends = [-1, -1]
            break
        found.append(first + np.flatnonzero(counts > longest))
    source.close()
    if ends != [0, adjacency.entries]:
        raise ShapeError(
            f"The row offsets of the adjacency do not rise from 0 to its {adjacency.entries:,} entries.\n"
            "Expected CSR form: one offset per node and one more, never falling."
        )
    return np.concatenate(found)


def _chunks(adjacency: Adjacency, segments: Array, chunk_bytes: int, longest: int) -> list[Chunk]:
    """Cut at rows, or inside a hub between two segments, where `chunk_bytes` are full."""
    indptr = adjacency.indptr
    entry = entry_bytes(adjacency)

    def size(row: int) -> int:
        return entry * int(indptr[row]) + 8 * row

    cuts = [(0, 0)]  # (the first row that begins here, the first entry)
    for full in range(chunk_bytes, size(adjacency.nodes), chunk_bytes):
        row = bisect_right(range(adjacency.nodes), full, key=size) - 1
        start, stop = int(indptr[row]), int(indptr[row + 1])
        inside = (full - size(row)) // entry // longest * longest if stop - start > longest else 0
        cuts.append((row + 1, start + inside) if 0 < inside < stop - start else (row, start))
    cuts = [*sorted(set(cuts)), (adjacency.nodes, adjacency.entries)]
    return [
        Chunk(row, end, start, stop, (int(among[0]), int(among[1])))
        for (row, start), (end, stop) in pairwise(cuts)
        for among in [np.searchsorted(segments[:, 0], [start, stop])]
    ]
