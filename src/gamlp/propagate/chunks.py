"""How the adjacency is cut into chunks of rows, which are worked on one after the other, and its hubs into segments.

Without a memory limit there is one chunk, the whole. Within one, a chunk is a range of rows with their entries, of
about equal bytes. A row of more than `LONGEST` entries is cut into segments of that many, summed apart and then
together in order, so that a hub stalls no thread and the result does not depend on how many there are; it may lie in
several chunks, cut between its segments, so that a chunk's size is bounded whatever the graph.

Chunks come as the kernels take them: views of arrays in memory, or read from files ahead of use into two buffers in
turn, one being worked on while the other is filled; where there is room for all chunks they are read once and kept.
Keeping some spares little: a chunk is read from the cache of the system while another one is worked on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gamlp.errors import ShapeError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import NodeScales
from gamlp.storage.array_reader import ArrayReader, close_all
from gamlp.storage.files import Array, is_whole_file
from gamlp.storage.huge_pages import HUGE_PAGE, empty
from gamlp.storage.threads import prefetch, ranges

LONGEST = 8192  # entries of a row that one thread sums in one go; changing it changes the last bits of hubs
SMALLEST = 2**14  # work that is worth handing to a thread


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


def plan_chunks(
    adjacency: Adjacency, *, self_loops: bool, chunk_bytes: int | None = None, longest: int = LONGEST
) -> ChunkPlan:
    """Look once over the offsets; cut the adjacency into chunks of so many bytes, hubs into segments of `longest`."""
    hubs, indptr = _hubs(adjacency, longest, rows_a_read(chunk_bytes)), adjacency.indptr
    counts = -(-(indptr[hubs + 1] - indptr[hubs]) // longest)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    hub = np.repeat(np.arange(len(hubs)), counts)
    order = np.arange(len(hub)) - starts[hub]
    first = indptr[hubs[hub]] + order * longest
    end = np.minimum(first + longest, indptr[hubs[hub] + 1])
    own = np.where((order == 0) & self_loops, hubs[hub], -1)
    segments = np.stack([first, end, own], axis=1).astype(np.int64)
    size = chunk_bytes or entry_bytes(adjacency) * adjacency.entries + 8 * adjacency.nodes + 1
    chunks = _chunks(adjacency, segments, size, longest)
    return ChunkPlan(adjacency, self_loops, chunk_bytes, chunks, longest, hubs, starts, segments)


class LoadedChunk(NamedTuple):
    """A chunk with its arrays; offsets count from the first entry of the adjacency, the others from the chunk's own."""

    chunk: Chunk
    offsets: Array  # (rows+1,)
    indices: Array
    weights: Array | None
    scale: Array  # (rows,) 1/d
    tasks: list[tuple[int, int]]  # ranges of rows of equal work


class ChunkReader:
    """Gives all chunks, in order, once for each hop."""

    def __init__(self, plan: ChunkPlan, scales: NodeScales, *, spare: int = 0, tasks: int = 1) -> None:
        """`spare` bytes may be used to keep chunks; each is handed out in so many tasks."""
        self.plan, self.scales, self.tasks = plan, scales, tasks
        adjacency = plan.adjacency
        arrays = [adjacency.indptr, adjacency.indices, *([] if adjacency.weights is None else [adjacency.weights])]
        self._views = plan.chunk_bytes is None or not any(map(is_whole_file, arrays))
        self._readers = [ArrayReader(array) for array in arrays]
        self.kept: dict[int, LoadedChunk] = {}
        read = 0 if self._views else entry_bytes(adjacency) * adjacency.entries + HUGE_PAGE * len(plan.chunks)
        self._keep = len(plan.chunks) <= 2 or read + (4 if self._views else 12) * adjacency.nodes <= spare
        rows = max((chunk.last - chunk.first for chunk in plan.chunks), default=0)
        entries = max((chunk.stop - chunk.start for chunk in plan.chunks), default=0)
        buffers = 0 if self._views or self._keep else 2
        self._buffers = [self._empty(rows, entries) for _ in range(buffers)]

    def __iter__(self) -> Iterator[LoadedChunk]:
        return prefetch(map(self._load, range(len(self.plan.chunks))))

    def check_unchanged(self) -> None:
        """Refuse to go on with files that someone wrote to in the meantime."""
        for reader in self._readers:
            reader.check_unchanged()

    def close(self) -> None:
        """Let the files go."""
        close_all(self._readers)

    def _load(self, at: int) -> LoadedChunk:
        if at in self.kept:
            return self.kept[at]
        chunk = self.plan.chunks[at]
        offsets, indices, *weights = self._arrays(at, chunk)
        scale = self.scales.power(chunk.first, chunk.last, -1, offsets)
        tasks = equal_work(offsets, self.tasks) if len(offsets) > 1 else []
        loaded = LoadedChunk(chunk, offsets, indices, weights[0] if weights else None, scale, tasks)
        if self._keep:
            self.kept[at] = loaded
        return loaded

    def _arrays(self, at: int, chunk: Chunk) -> list[Array]:
        """Return the offsets, indices and, where there are any, weights of a chunk."""
        spans = [(chunk.first, chunk.last + 1), (chunk.start, chunk.stop), (chunk.start, chunk.stop)]
        pairs = list(zip(self._readers, spans, strict=False))
        if self._views:
            return [np.asarray(reader.array[first:last]) for reader, (first, last) in pairs]
        rows, entries = chunk.last - chunk.first, chunk.stop - chunk.start
        buffers = self._empty(rows, entries) if self._keep else self._buffers[at % 2]
        return [reader.rows(*span, buffer) for (reader, span), buffer in zip(pairs, buffers, strict=True)]

    def _empty(self, rows: int, entries: int) -> list[Array]:
        offsets, *others = (reader.array.dtype for reader in self._readers)
        return [np.empty(rows + 1, offsets), *(empty((entries,), dtype) for dtype in others)]


def rows_a_read(chunk_bytes: int | None) -> int:
    """Return how many offsets are read at a time where nothing else is."""
    return 2**20 if chunk_bytes is None else max(2**10, chunk_bytes // 64)


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


def _hubs(adjacency: Adjacency, longest: int, step: int) -> Array:
    """Return the long rows, and refuse offsets that would lead a kernel astray."""
    source, found = ArrayReader(adjacency.indptr), [np.empty(0, np.int64)]
    buffer = np.empty(min(step, adjacency.nodes) + 1, adjacency.indptr.dtype)
    end = 0
    for first, last in ranges(adjacency.nodes, step):
        offsets = source.rows(first, last + 1, buffer)
        counts = np.diff(offsets)
        end = int(offsets[-1]) if int(offsets[0]) == end and counts.min() >= 0 else -1
        found.append(first + np.flatnonzero(counts > longest))
    source.close()
    if end != adjacency.entries:
        raise ShapeError(
            f"The row offsets of the adjacency do not rise from 0 to its {adjacency.entries:,} entries.\n"
            "Expected CSR form: one offset per node and one more, never falling."
        )
    return np.concatenate(found)


def _chunks(adjacency: Adjacency, segments: Array, chunk_bytes: int, longest: int) -> list[Chunk]:
    """Cut at rows, or inside a hub between two segments, where `chunk_bytes` are full."""
    indptr, entry = adjacency.indptr, entry_bytes(adjacency)

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
