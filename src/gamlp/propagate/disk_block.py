"""One block of columns carried through all hops, with the adjacency streaming by.

    y^(0) = D^(−r) X c,    y^(l) = D^(−1) A y^(l−1),    X^(l) = D^r y^(l) / c          as in `memory`

In memory are the two states of the block, 2·N·(padded width) values, and two chunks of the adjacency: one being worked
on, the next being read; where there is room, all of them, read once. The wanted rows of a hop are written while the
next hop is computed. Blocks do not know each other: one may be computed again, or elsewhere, and gives the
same bits, those of the engine in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.propagate import disk_kernels, kernels, layout
from gamlp.propagate.disk_parts import Sink
from gamlp.propagate.disk_route import Chunk, Route, route
from gamlp.propagate.hops import too_large
from gamlp.propagate.memory import SEGMENTS_A_PIECE, lift
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.plan import equal_work
from gamlp.storage.array_reader import ArrayReader, close_all
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import empty, prefaulted
from gamlp.storage.threads import Run, available, background, prefetch, ranges, workers

CHUNK_BYTES = 2**26
VALUES_A_PIECE = 2**18  # handed to a thread at a time
READERS = 4  # threads that read features: more would read in small pieces

Loaded = tuple[Chunk, Array, Array, Array | None, Array]  # chunk, offsets, indices, weights, scale


def propagate_block(
    adjacency: Adjacency,
    features: Any,
    columns: slice,
    *,
    hops: int,
    normalization: Normalization,
    rows: Array | None = None,
    last_only: bool = False,
    storage: str = "float32",
    threads: int | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    advance: Callable[[], None] = lambda: None,
) -> Array:
    """Return X, ÂX, …, ÂᴷX of some columns, at most 16·widest_block() of them: (R, K+1, w), or ÂᴷX alone, (R, 1, w).

    The adjacency's and the features' arrays may be memory-mapped; both have been checked. `rows` must be sorted;
    `advance` is called after each hop.
    """
    width = columns.stop - columns.start
    count = adjacency.nodes if rows is None else len(rows)
    values = np.empty((count, 1 if last_only else hops + 1, width), storage)

    def keep(hop: int, first: int, part: Array) -> None:
        values[first : first + len(part), 0 if last_only else hop] = part

    threads = threads or available()
    with workers(threads) as run:
        way = route(adjacency, normalization, chunk_bytes=chunk_bytes)
        block = StreamedBlock(way, width, storage, run, threads=threads, rows=rows)
        try:
            block.carry(features, columns, hops=hops, last_only=last_only, sink=keep, advance=advance)
        finally:
            block.close()
    return values


class StreamedBlock:
    """The two states of a block and the chunks that stream by; serves one block after the other."""

    def __init__(
        self,
        way: Route,
        widest: int,
        storage: str,
        run: Run,
        *,
        threads: int,
        rows: Array | None = None,
        spare: int = 0,
    ) -> None:
        self.way, self.storage, self.run, self.rows = way, storage, run, rows
        self.readers, self.pieces = min(threads, READERS), 1 if threads == 1 else 8 * threads
        size = (way.adjacency.nodes * kernels.padded(widest),)
        self._states = run([lambda: prefaulted(empty(size, storage))] * 2)
        self._shape(widest)
        self._offsets = ArrayReader(way.adjacency.indptr)
        self._indices = ArrayReader(way.adjacency.indices)
        self._weights = None if way.adjacency.weights is None else ArrayReader(way.adjacency.weights)
        self._keep, self._kept = way.fits_in(spare), dict[int, Loaded]()
        streaming = [] if self._keep else [(way.most_rows, way.most_entries)] * 2
        self._buffers = [self._chunk_buffers(*size) for size in streaming]
        self._read: list[Array] = []  # features on their way
        self._leave = None if rows is None else self._wanted_scales(rows)

    def close(self) -> None:
        """Let the files go."""
        close_all([self._offsets, self._indices, self._weights])

    def carry(
        self,
        features: Any,
        columns: slice,
        *,
        hops: int,
        last_only: bool,
        sink: Sink,
        advance: Callable[[], None],
    ) -> None:
        """Carry these columns through all hops, and give each hop's wanted rows to the sink, in order.

        A hop leaves while the next one reads the same state; the one after that writes over it.
        """
        self.enter(features, columns, sink if not last_only or hops == 0 else None)
        with background() as start:
            for hop in range(1, hops + 1):
                self.hop()
                if not last_only or hop == hops:
                    start(self.leave, hop, self.x, sink)
                advance()
        for source in (self._offsets, self._indices, self._weights):
            if source is not None:
                source.check_unchanged()

    def _shape(self, columns: int) -> None:
        """See the states as rows of so many columns, padded."""
        nodes, width = self.way.adjacency.nodes, kernels.padded(columns)
        self.x, self.next = (state[: nodes * width].reshape(nodes, width) for state in self._states)
        self.sums = np.empty((len(self.way.segments), width), np.float32)
        self.columns = np.ones(columns, np.float32)
        self.shape = kernels.quads(width)

    def enter(self, features: Any, columns: slice, sink: Sink | None) -> None:
        """Set y = D^(−r) X c for these columns; X itself goes to the sink.

        Each thread reads a chunk of rows and packs it while it is near; then come the next ones.
        """
        source, width = ArrayReader(features), columns.stop - columns.start
        room = self.way.chunk_bytes // 2 // READERS
        chunks = ranges(self.way.adjacency.nodes, max(1, room // source.bytes_a_row(width)))
        rounds = [chunks[at : at + self.readers] for at in range(0, len(chunks), self.readers)]
        buffers = self._feature_buffers(chunks[0][1] * width)

        def load(first: int, last: int, buffer: Array) -> tuple[Array, Array]:
            offsets = np.empty(last - first + 1, self.way.adjacency.indptr.dtype)
            degree = self.way.degrees(self._offsets.rows(first, last + 1, offsets), first)
            return source.block(first, last, columns, buffer), self.way.scale(degree, -self.way.normalization.r)

        def peak(first: int, last: int, buffer: Array) -> Array:
            return _peak(*load(first, last, buffer))

        def pack(first: int, last: int, buffer: Array) -> Array:
            values, scale = load(first, last, buffer)
            _pack(values, scale, self.columns, layout.bits(self.x)[first:last])
            return values

        def at_once(work: Callable[..., Array], round_: list[tuple[int, int]]) -> list[Array]:
            return self.run([partial(work, *span, buffer) for span, buffer in zip(round_, buffers, strict=False)])

        self._shape(width)
        if self.storage == "float16":
            self.columns = lift(np.max([found for each in rounds for found in at_once(peak, each)], axis=0))
        for each in rounds:
            for (first, _), values in zip(each, at_once(pack, each), strict=True):
                if sink is not None:
                    self._keep_features(first, values, sink)
        source.check_unchanged()
        source.close()

    def hop(self) -> None:
        """Set y = D^(−1) A y, one chunk of rows after the other."""
        for loaded in prefetch(map(self._load, range(len(self.way.chunks)))):
            self._sum(*loaded)
        if len(self.way.hubs):
            scale = self.way.scale(self.way.hub_degrees(), -1)
            out = layout.bits(self.next)
            disk_kernels.join_hubs(self.way.hubs, self.way.hub_starts, self.sums, out, scale, self.shape)
        self.x, self.next = self.next, self.x

    def leave(self, hop: int, state: Array, sink: Sink) -> None:
        """Give X^(l) = D^r y / c of the wanted rows to the sink."""
        width, count = len(self.columns), self.way.adjacency.nodes if self.rows is None else len(self.rows)
        inverse, x = 1 / self.columns, layout.bits(state)
        size = max(1, self.way.chunk_bytes // 8 // state[:1].nbytes)
        scratch = np.empty(size + 1, self.way.adjacency.indptr.dtype)
        for first, last in ranges(count, size):
            if self.rows is None or self._leave is None:
                degree = self.way.degrees(self._offsets.rows(first, last + 1, scratch), first)
                part, scale = x[first:last], self.way.scale(degree, self.way.normalization.r)
            else:
                part, scale = x[self.rows[first:last]], self._leave[first:last]
            values = np.empty((last - first, 1, width), self.storage)
            unpack = partial(layout.unpack, part, None, scale, inverse, layout.bits(values), 0, 0)
            if sum(self.run([partial(unpack, *span) for span in ranges(len(part), VALUES_A_PIECE // width + 1)])):
                raise too_large(f"After {hop} hops some features")
            sink(hop, first, values[:, 0])

    def _feature_buffers(self, size: int) -> list[Array]:
        """Return a buffer of at least so many values for each thread, those of the block before if they will do."""
        if not self._read or len(self._read[0]) < size:
            self._read = [empty((size,), np.float32) for _ in range(self.readers)]
        return self._read

    def _chunk_buffers(self, rows: int, entries: int) -> tuple[Array, Array, Array | None]:
        adjacency = self.way.adjacency
        return (
            np.empty(rows + 1, adjacency.indptr.dtype),
            empty((entries,), adjacency.indices.dtype),
            None if adjacency.weights is None else empty((entries,), adjacency.weights.dtype),
        )

    def _load(self, at: int) -> Loaded:
        """Read chunk `at`, to be kept if there is room, else into the buffers that the one before does not use."""
        if at in self._kept:
            return self._kept[at]
        chunk = self.way.chunks[at]
        sizes = chunk.last - chunk.first, chunk.stop - chunk.start
        offsets, indices, weights = self._chunk_buffers(*sizes) if self._keep else self._buffers[at % 2]
        offsets = self._offsets.rows(chunk.first, chunk.last + 1, offsets)
        scale = self.way.scale(self.way.degrees(offsets, chunk.first), -1)
        offsets -= chunk.start
        indices = self._indices.rows(chunk.start, chunk.stop, indices)
        if self._weights is not None and weights is not None:
            weights = self._weights.rows(chunk.start, chunk.stop, weights)
        loaded = chunk, offsets, indices, weights, scale
        if self._keep:
            self._kept[at] = loaded
        return loaded

    def _sum(self, chunk: Chunk, offsets: Array, indices: Array, weights: Array | None, scale: Array) -> None:
        x, out, (begin, end) = layout.bits(self.x), layout.bits(self.next), chunk.segments
        segments = self.way.segments[begin:end] - np.array([chunk.start, chunk.start, 0])
        fixed = (offsets, indices, weights, x, self.way.normalization.self_loops, out, scale, self.way.longest)
        self.run(
            [
                partial(kernels.sum_segments, segments, indices, weights, x, self.sums[begin:end], *span, self.shape)
                for span in ranges(end - begin, SEGMENTS_A_PIECE)
            ]
            + [
                partial(disk_kernels.sum_chunk, *fixed, chunk.first, *piece, self.shape)
                for piece in (equal_work(offsets, self.pieces) if len(offsets) > 1 else [])
            ]
        )

    def _keep_features(self, first: int, values: Array, sink: Sink) -> None:
        """Give hop 0 of the wanted rows among first … to the sink."""
        begin = first
        if self.rows is not None:
            begin, end = np.searchsorted(self.rows, [first, first + len(values)])
            values = values[self.rows[begin:end] - first]
        with np.errstate(over="ignore"):
            kept = values.astype(self.storage, copy=False)
        if self.storage == "float16" and not np.isfinite(kept).all():
            raise too_large("Some features")
        if len(kept):
            sink(0, int(begin), kept)

    def _wanted_scales(self, rows: Array) -> Array:
        """Return d^r of the wanted rows, (R,) float32."""
        result = np.empty(len(rows), np.float32)
        size = self.way.rows_a_read
        scratch = np.empty(size + 1, self.way.adjacency.indptr.dtype)
        for first, last in ranges(self.way.adjacency.nodes, size):
            begin, end = np.searchsorted(rows, [first, last])
            degree = self.way.degrees(self._offsets.rows(first, last + 1, scratch), first)
            result[begin:end] = self.way.scale(degree, self.way.normalization.r)[rows[begin:end] - first]
        return result


def _pack(values: Array, scale: Array, columns: Array, x: Array) -> None:
    if values.flags.c_contiguous:
        layout.pack(values, scale, columns, x, 0)
    else:
        disk_kernels.pack_columns(values.T, scale, columns, x, 0, len(values))


def _peak(values: Array, scale: Array) -> Array:
    """Return the largest |x|·scale of each column; infinite or NaN if one of them is."""
    if values.flags.c_contiguous:
        return np.asarray(disk_kernels.peaks(values, scale, 0, len(values)))
    return np.asarray(disk_kernels.peaks_of_columns(values.T, scale, 0, len(values)))
