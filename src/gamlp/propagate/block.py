"""One block of columns through all hops: the loop of every engine that runs on processors.

    y^(0) = D^(−r) X c,    y^(l) = D^(−1) A y^(l−1),    X^(l) = D^r y^(l) / c

Two states of the block take turns, 2·N·(padded width) values, and the adjacency comes by in chunks (`chunk_reader`).
c is 1 with float32. With float16 it holds one power of two per column that brings the column's largest |y| just below
2¹⁵. Weights are never negative, so the rows of D^(−1)A sum to 1 and no later y is larger: nothing overflows, and small
features keep all 11 bits, even when a hub divides them by its degree.

With a restart a third state holds X itself, and every hop ends with

    y^(l) ← clip( α y^(l) + (1 − α) D^(−r) X c )            the bounds scaled as y is

A node without a degree has y = 0 for r > 0; its X^(l) = clip((1 − α) X) is written from the third state.

Two hops need less than all of the adjacency's reads. Of the last one only the wanted rows are summed. The first ones
of a source that is mostly zero, as labels are, read only the rows that something has reached (`sum_marked`), as long as
these are fewer than a `DENSE` share; a zero that is not added changes no bit of a sum.

Blocks do not know each other: one may be computed again, or elsewhere, and gives the same bits, whatever the number of
threads, the width of the block and the size of the chunks. Cost O(K·E·w) time for w columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gamlp.propagate import kernels, layout
from gamlp.propagate.budget import Budget
from gamlp.propagate.chunks import ChunkPlan, ChunkReader, LoadedChunk, plan_chunks, rows_a_read
from gamlp.propagate.layout import bits
from gamlp.propagate.normalize import NodeScales
from gamlp.propagate.sinks import Sink, Target, as_stored, too_large
from gamlp.propagate.sources import VALUES_AT_ONCE, ColumnReader, ColumnSource
from gamlp.propagate.spec import Job, Propagation
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import empty, prefaulted
from gamlp.storage.threads import Run, background, ranges, workers

AT_ONCE = 8  # segments that a thread sums
DENSE = 0.25  # share of rows from which on all of them are read
FEW = 0.5  # share of wanted rows up to which the last hop sums these alone


def run_blocks(
    job: Job, sink: Sink, budget: Budget, numbers: Sequence[int], *, threads: int, advance: Callable[[], None]
) -> None:
    """Compute the blocks of these numbers here, one after the other, into the sink."""
    spec = replace(job.spec, rows=job.spec.sorted_rows[0]) if sink.in_order else job.spec
    plan = plan_chunks(job.adjacency, self_loops=spec.normalization.self_loops, chunk_bytes=budget.chunk_bytes)
    wanted = [(number, budget.blocks[number]) for number in numbers]
    widest = max(columns.stop - columns.start for _, columns in wanted)
    with workers(threads) as run, closing(Block(plan, spec, widest, run, threads=threads, spare=budget.spare)) as block:
        for number, columns in wanted:
            with sink.block(number, columns) as rows:
                block.compute(job.columns, columns, rows, advance)


class Block:
    """The states of a block and the chunks that come by; serves one block after the other."""

    def __init__(
        self, plan: ChunkPlan, spec: Propagation, widest: int, run: Run, *, threads: int, spare: int = 0
    ) -> None:
        """Within a memory limit spec.rows must be sorted."""
        self.plan, self.spec, self.run, free = plan, spec, run, plan.chunk_bytes is None
        step = rows_a_read(plan.chunk_bytes)
        self.scales = NodeScales(plan.adjacency, spec.normalization, hold=free, step=step)
        tasks = 1 if threads == 1 else (16 if free else 8) * threads
        self.chunks = ChunkReader(plan, self.scales, spare=spare, tasks=tasks)
        self.reader = ColumnReader(plan.chunk_bytes, run, threads=threads)
        states = 0 if not spec.hops else 2 if spec.restart is None else 3
        size = (plan.adjacency.nodes * kernels.padded(widest),)
        self._states = run([lambda: prefaulted(empty(size, spec.storage))] * states)
        self._r = spec.normalization.r
        self._hub_scale = self.scales.of(plan.hubs, -1)
        self._row_scale = None if spec.rows is None else self.scales.of(spec.rows, self._r)
        self._wanted = last_rows(spec.rows, plan.adjacency.nodes)
        self._marked: Array | None = None  # a bit for each row of x that may not be zero; None = all may

    def close(self) -> None:
        """Let the files go."""
        self.chunks.close()
        self.scales.close()

    def compute(self, source: Any, columns: slice, sink: Sink, advance: Callable[[], None]) -> None:
        """Bring these columns through all hops, and give the wanted rows of each to the sink.

        A hop is written to a file while the next one reads the same state; the one after that writes over it.
        """
        self.load(source, columns, sink if 0 in self.spec.kept_hops else None)
        with background() as start:
            for hop in range(1, self.spec.hops + 1):
                self.step(self._wanted if hop == self.spec.hops else None)
                if hop in self.spec.kept_hops:
                    if sink.in_order:
                        start(self.store, hop, self.x, sink)
                    else:
                        self.store(hop, self.x, sink)
                advance()
        self.chunks.check_unchanged()

    def _shape(self, columns: int) -> None:
        """See the states as rows of so many columns, padded."""
        nodes, width = self.plan.adjacency.nodes, kernels.padded(columns)
        shaped = [state[: nodes * width].reshape(nodes, width) for state in self._states]
        none = np.empty((0, width), self.spec.storage)
        self.x, self.next, self.start = [*shaped, none, none, none][:3]
        self.sums = np.empty((len(self.plan.segments), width), np.float32)
        self.columns = self.start_columns = np.ones(columns, np.float32)  # c of y, and of X in the third state
        self.shape, self._step = kernels.quads(width), max(1, VALUES_AT_ONCE // width)  # rows that a thread works on

    def load(self, source: Any, columns: slice, sink: Sink | None = None) -> None:
        """Set y = D^(−r) X c for these columns; X itself goes to the third state, and to the sink if there is one."""
        self._shape(columns.stop - columns.start)
        self._mark(source, columns)
        if self.spec.storage == "float16" and len(self.x):
            self.columns, self.start_columns = self._column_scales(source, columns)
        later = sink is not None and sink.in_order  # in order, and not as the threads finish

        def pack(first: int, values: Array) -> Array | None:
            last = first + len(values)
            if len(self.x):
                layout.pack(values, self.scales.power(first, last, -self._r), self.columns, bits(self.x)[first:last])
            if len(self.start):
                ones = np.ones(len(values), np.float32)
                layout.pack(values, ones, self.start_columns, bits(self.start)[first:last])
            if later:
                return values
            self._store_features(first, values, sink)
            return None

        for first, values in self.reader.each(source, columns, pack):
            if values is not None:
                self._store_features(first, values, sink)

    def _column_scales(self, source: Any, columns: slice) -> tuple[Array, Array]:
        """Return c of y, and of X in the third state: powers of two that bring the largest |value| just below 2¹⁵."""

        def peaks(first: int, values: Array) -> tuple[Array, Array]:
            scaled = layout.peaks(values, self.scales.power(first, first + len(values), -self._r))
            return scaled, layout.peaks(values, np.ones(len(values), np.float32)) if len(self.start) else scaled

        found = [pair for _, pair in self.reader.each(source, columns, peaks)]
        of_y, of_x = (layout.column_scales(np.max([pair[which] for pair in found], axis=0)) for which in (0, 1))
        return of_y, of_x

    def step(self, wanted: Array | None = None) -> None:
        """Set y = D^(−1) A y, one chunk of rows after the other, and return to the start where that is asked for.

        With `wanted`, sorted, the other rows are left as they are.
        """
        reached = None if self._marked is None else np.zeros(self.plan.adjacency.nodes, np.uint8)
        for loaded in self.chunks:
            self._sum(loaded, wanted, reached)
        if len(self.plan.hubs):
            out = bits(self.next)
            kernels.join_segments(self.plan.hubs, self.plan.hub_starts, self.sums, out, self._hub_scale, self.shape)
        self.x, self.next = self.next, self.x
        if reached is not None:
            reached[self.plan.hubs] = 1
            self._marked = marks(reached)
        self._restart()

    def _mark(self, source: Any, columns: slice) -> None:
        """Mark the rows that these columns fill, where the source can tell and few of them are."""
        self._marked = None
        plain = self.plan.adjacency.weights is None and self.spec.restart is None and len(self.x)
        filled = source.filled(columns) if plain and isinstance(source, ColumnSource) else None
        if filled is not None:
            reached = np.zeros(self.plan.adjacency.nodes, np.uint8)
            reached[filled] = 1
            self._marked = marks(reached)

    def store(self, hop: int, state: Array, sink: Sink) -> None:
        """Give X^(l) = D^r y / c of the wanted rows to the sink."""
        rows, x, inverse = self.spec.rows, bits(state), 1 / self.columns
        count = len(x) if rows is None else len(rows)
        for first, last in ranges(count, min(sink.rows_at_once, max(1, count))):
            if rows is None or self._row_scale is None:
                nodes, scale, part = None, self.scales.power(first, last, self._r), x[first:last]
            else:
                nodes, scale, part = rows[first:last], self._row_scale[first:last], x
            with sink.target(hop, first, last) as target:
                place = bits(target.values), target.hop, target.column
                unpack = partial(layout.unpack, part, nodes, scale, inverse, *place)
                if sum(self.run([partial(unpack, *some) for some in ranges(last - first, self._step)])):
                    raise too_large(f"After {hop} hops some features")
                self._store_isolated(first, nodes, scale, target)

    def _sum(self, loaded: LoadedChunk, wanted: Array | None, reached: Array | None) -> None:
        chunk, offsets, indices, weights, scale, tasks = loaded
        x, out, (begin, end) = bits(self.x), bits(self.next), chunk.segments
        arrays = (chunk.first, chunk.start, offsets, indices, weights, scale)
        hubs = partial(kernels.sum_segments, self.plan.segments[begin:end], arrays, x, self.sums[begin:end])
        rows = partial(kernels.sum_rows, arrays, x, self.plan.self_loops, out, self.plan.longest)
        if wanted is not None:
            begin_row, end_row = np.searchsorted(wanted, [chunk.first, chunk.last])
            some = wanted[begin_row:end_row]
            rows = partial(kernels.sum_wanted, *rows.args, some)
            tasks = ranges(len(some), max(1, -(-len(some) // max(1, len(tasks)))))
        elif reached is not None:
            rows = partial(kernels.sum_marked, *rows.args, self._marked, reached)
        work = [(hubs, some) for some in ranges(end - begin, AT_ONCE)] + [(rows, some) for some in tasks]
        self.run([partial(kernel, *some, self.shape) for kernel, some in work])

    def _restart(self) -> None:
        """Set y = clip(α y + (1 − α) D^(−r) X c), and the fixed rows to what they began with."""
        restart = self.spec.restart
        if restart is None:
            return
        x, start, alpha = bits(self.x), bits(self.start), np.float32(restart.alpha)
        columns = self.columns / self.start_columns
        bounds = np.array([[restart.low], [restart.high]], np.float32) * self.columns

        def some(first: int, last: int) -> None:
            scale = self.scales.power(first, last, -self._r)
            layout.return_to_start(x[first:last], start[first:last], None, scale, columns, alpha, bounds)

        self.run([partial(some, *rows) for rows in ranges(len(x), self._step)])
        if restart.fixed is not None and len(restart.fixed):
            anywhere = np.array([[-np.inf], [np.inf]], np.float32) * self.columns
            scale = self.scales.of(restart.fixed, -self._r)
            layout.return_to_start(x, start, restart.fixed, scale, columns, np.float32(0), anywhere)

    def _store_isolated(self, first: int, nodes: Array | None, scale: Array, target: Target) -> None:
        """Write X^(l) = clip((1 − α) X), or X where it is fixed, of the nodes whose degree is 0, and so d^r."""
        restart = self.spec.restart
        if restart is None or not len(alone := np.flatnonzero(scale == 0)):
            return
        nodes = first + alone if nodes is None else nodes[alone]
        began = self.start[nodes][:, : len(self.columns)].astype(np.float32) / self.start_columns
        values = (np.float32(1 - restart.alpha) * began).clip(restart.low, restart.high)
        if restart.fixed is not None:
            values = np.where(np.isin(nodes, restart.fixed)[:, None], began, values)
        columns = slice(target.column, target.column + len(self.columns))
        target.values[alone, target.hop, columns] = as_stored(values, self.spec.storage)

    def _store_features(self, first: int, values: Array, sink: Sink | None) -> None:
        """Give hop 0 of the wanted rows among first … to the sink, if there is one."""
        at: Any = slice(first, first + len(values))
        rows, order = self.spec.sorted_rows
        if sink is not None and rows is not None:
            begin, end = np.searchsorted(rows, [at.start, at.stop])
            values = values[rows[begin:end] - first]
            at = slice(begin, end) if order is None else order[begin:end]
        if sink is not None and len(values):
            sink.put(0, at, as_stored(values, self.spec.storage))


def marks(reached: Array) -> Array | None:
    """Return a bit for each row that was reached, (N,) uint8 → (⌈N/8⌉,); None where that is a `DENSE` share."""
    if np.count_nonzero(reached) > DENSE * len(reached):
        return None
    return np.packbits(reached, bitorder="little")


def last_rows(rows: Array | None, nodes: int) -> Array | None:
    """Return the rows that the last hop is wanted of, sorted, each once; None where that is most of them."""
    if rows is None or len(rows) > FEW * nodes:
        return None
    return rows if bool((np.diff(rows) > 0).all()) else np.unique(rows)
