"""The chunks of an adjacency as the kernels take them: views of arrays in memory, or read from files ahead of use.

A file is read into two buffers in turn, one being worked on while the other is filled; where there is room for all
chunks they are read once and kept. Keeping some spares little: a chunk is read from the cache of the system while
another one is worked on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gamlp.propagate.chunks import Chunk, ChunkPlan, entry_bytes, equal_work
from gamlp.propagate.node_scales import NodeScales
from gamlp.storage.array_reader import ArrayReader, close_all
from gamlp.storage.files import Array, is_whole_file
from gamlp.storage.huge_pages import HUGE_PAGE, empty
from gamlp.storage.threads import prefetch


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
        arrays = (adjacency.indptr, adjacency.indices, adjacency.weights)
        self._views = plan.chunk_bytes is None or not any(map(is_whole_file, arrays))
        self._offsets, self._indices = ArrayReader(adjacency.indptr), ArrayReader(adjacency.indices)
        self._weights = None if adjacency.weights is None else ArrayReader(adjacency.weights)
        self.kept: dict[int, LoadedChunk] = {}
        self._keep = len(plan.chunks) <= 2 or self._bytes <= spare
        streaming = not self._views and not self._keep
        self._buffers = [self._empty(plan.most_rows, plan.most_entries) for _ in range(2 * streaming)]

    def __iter__(self) -> Iterator[LoadedChunk]:
        return prefetch(map(self._load, range(len(self.plan.chunks))))

    def check_unchanged(self) -> None:
        """Refuse to go on with files that someone wrote to in the meantime."""
        for source in (self._offsets, self._indices, self._weights):
            if source is not None:
                source.check_unchanged()

    def close(self) -> None:
        """Let the files go."""
        close_all([self._offsets, self._indices, self._weights])

    @property
    def _bytes(self) -> int:
        """Return what all chunks take when they are kept."""
        adjacency = self.plan.adjacency
        if self._views:
            return 4 * adjacency.nodes
        entries, padding = entry_bytes(adjacency) * adjacency.entries, HUGE_PAGE * len(self.plan.chunks)
        return entries + 12 * adjacency.nodes + padding

    def _load(self, at: int) -> LoadedChunk:
        if at in self.kept:
            return self.kept[at]
        chunk = self.plan.chunks[at]
        offsets, indices, weights = self._view(chunk) if self._views else self._read(at, chunk)
        scale = self.scales.power(chunk.first, chunk.last, -1, offsets)
        tasks = equal_work(offsets, self.tasks) if len(offsets) > 1 else []
        loaded = LoadedChunk(chunk, offsets, indices, weights, scale, tasks)
        if self._keep:
            self.kept[at] = loaded
        return loaded

    def _view(self, chunk: Chunk) -> tuple[Array, Array, Array | None]:
        adjacency, entries = self.plan.adjacency, slice(chunk.start, chunk.stop)
        offsets, indices = adjacency.indptr[chunk.first : chunk.last + 1], adjacency.indices[entries]
        weights = None if adjacency.weights is None else np.asarray(adjacency.weights[entries])
        return np.asarray(offsets), np.asarray(indices), weights

    def _read(self, at: int, chunk: Chunk) -> tuple[Array, Array, Array | None]:
        sizes = chunk.last - chunk.first, chunk.stop - chunk.start
        offsets, indices, weights = self._empty(*sizes) if self._keep else self._buffers[at % 2]
        offsets = self._offsets.rows(chunk.first, chunk.last + 1, offsets)
        indices = self._indices.rows(chunk.start, chunk.stop, indices)
        if self._weights is not None and weights is not None:
            weights = self._weights.rows(chunk.start, chunk.stop, weights)
        return offsets, indices, weights

    def _empty(self, rows: int, entries: int) -> tuple[Array, Array, Array | None]:
        adjacency = self.plan.adjacency
        return (
            np.empty(rows + 1, adjacency.indptr.dtype),
            empty((entries,), adjacency.indices.dtype),
            None if adjacency.weights is None else empty((entries,), adjacency.weights.dtype),
        )
