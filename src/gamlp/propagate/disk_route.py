"""How the adjacency is cut into chunks that are read one after the other, and what each node is scaled by.

A chunk is a span of rows with their entries, of about equal bytes. A row of more than `LONGEST` entries may lie in
several chunks, cut between its segments (see `plan`), so that a chunk's size is bounded whatever the graph.

Scales are made of the degrees when a chunk is read, instead of being held for all nodes: only the row sums of a
weighted graph, which cost a pass over the weights, stay in memory (8 bytes a node).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gamlp.errors import ShapeError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import Normalization, power
from gamlp.propagate.plan import LONGEST, cut_hubs
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import HUGE_PAGE
from gamlp.storage.threads import ranges


@dataclass(frozen=True)
class Chunk:
    """Rows first … last−1 that begin in it, entries start … stop−1, and the segments of hubs among these."""

    first: int
    last: int
    start: int
    stop: int
    segments: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Route:
    """The chunks of an adjacency, its hubs, and the means to scale its nodes."""

    adjacency: Adjacency
    normalization: Normalization
    chunks: list[Chunk]
    chunk_bytes: int
    longest: int
    hubs: Array  # (H,)
    hub_starts: Array  # (H+1,)
    segments: Array  # (segments, 3), see `plan.Plan`
    row_sums: Array | None  # (N,) of a weighted graph

    @property
    def most_rows(self) -> int:
        """Return how many rows a chunk has at most."""
        return max((chunk.last - chunk.first for chunk in self.chunks), default=0)

    @property
    def most_entries(self) -> int:
        """Return how many entries a chunk has at most."""
        return max((chunk.stop - chunk.start for chunk in self.chunks), default=0)

    @property
    def rows_a_read(self) -> int:
        """Return how many offsets are read at a time where nothing else is."""
        return _rows_a_read(self.chunk_bytes)

    def fits_in(self, memory: int) -> bool:
        """Say whether all chunks can be kept in so much memory beside the buffers for two of them.

        Keeping some spares little: a chunk is read from the cache of the system while another one is worked on.
        """
        entries, nodes = self.adjacency.entries, self.adjacency.nodes
        size = _entry_bytes(self.adjacency) * entries + 12 * nodes + HUGE_PAGE * len(self.chunks)
        return len(self.chunks) <= 2 or size <= memory

    def degrees(self, offsets: Array, first: int) -> Array:
        """Return the diagonal of D for rows from `first` on, float64; offsets (n+1,) are theirs."""
        sums = np.diff(offsets).astype(np.float64)
        if self.row_sums is not None:
            sums = self.row_sums[first : first + len(sums)]
        return sums + 1.0 if self.normalization.self_loops else sums

    def scale(self, degree: Array, exponent: float) -> Array:
        """Return dᵖ as float32."""
        return power(degree, exponent).astype(np.float32)

    def hub_degrees(self) -> Array:
        """Return the diagonal of D for the hubs."""
        if self.row_sums is not None:
            sums = self.row_sums[self.hubs]
        else:
            sums = np.asarray(self.adjacency.indptr[self.hubs + 1] - self.adjacency.indptr[self.hubs], np.float64)
        return sums + 1.0 if self.normalization.self_loops else sums


def route(adjacency: Adjacency, normalization: Normalization, *, chunk_bytes: int, longest: int = LONGEST) -> Route:
    """Look once over the offsets, and over the weights of a weighted graph, and cut the adjacency into chunks."""
    hubs = _hubs(adjacency, longest, _rows_a_read(chunk_bytes))
    starts, segments = cut_hubs(adjacency.indptr, hubs, longest, own=normalization.self_loops)
    return Route(
        adjacency=adjacency,
        normalization=normalization,
        chunk_bytes=chunk_bytes,
        chunks=_chunks(adjacency, segments, chunk_bytes, longest),
        longest=longest,
        hubs=hubs,
        hub_starts=starts,
        segments=segments,
        row_sums=None if adjacency.weights is None else _row_sums(adjacency, adjacency.weights),
    )


def _rows_a_read(chunk_bytes: int) -> int:
    return max(2**10, chunk_bytes // 64)


def _hubs(adjacency: Adjacency, longest: int, step: int) -> Array:
    """Return the long rows, and refuse offsets that would lead a kernel astray."""
    source, found = ArrayReader(adjacency.indptr), [np.empty(0, np.int64)]
    buffer = np.empty(step + 1, adjacency.indptr.dtype)
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
    entry = _entry_bytes(adjacency)

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


def _entry_bytes(adjacency: Adjacency) -> int:
    """Return what an entry takes: its index, and its weight if it has one."""
    return adjacency.indices.dtype.itemsize + (0 if adjacency.weights is None else adjacency.weights.dtype.itemsize)


def _row_sums(adjacency: Adjacency, weights: Array) -> Array:
    """Return the sums of the rows, float64, adding as `normalize.degrees` does."""
    sums = np.zeros(adjacency.nodes)
    for first, last in ranges(adjacency.nodes, 2**16):
        offsets = np.asarray(adjacency.indptr[first : last + 1])
        filled = np.flatnonzero(np.diff(offsets))
        if len(filled):
            part = np.asarray(weights[offsets[0] : offsets[-1]])
            sums[first + filled] = np.add.reduceat(part, offsets[filled] - offsets[0], dtype=np.float64)
    return sums
