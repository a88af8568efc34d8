"""The engine in memory: column blocks outside, hops inside, two buffers of one block taking turns.

    y^(0) = D^(−r) X c,    y^(l) = D^(−1) A y^(l−1),    X^(l) = D^r y^(l) / c

Cost O(K·E·F) time and two buffers of the widest block beside the result (see `layout.column_blocks`).

c is 1 with float32. With float16 it holds one power of two per column that lifts the column's largest |y| to just
below 2¹⁵. Weights are never negative, so the rows of D^(−1)A sum to 1 and no later y is larger: nothing overflows, and
small features keep all 11 bits, even when a hub divides them by its degree.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gamlp.errors import NotFiniteError
from gamlp.progress import progress
from gamlp.propagate import kernels, layout
from gamlp.propagate.hops import too_large
from gamlp.propagate.plan import Plan
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import empty, prefaulted
from gamlp.storage.threads import Run, ranges

SEGMENTS_A_PIECE = 8


def compute(
    plan: Plan,
    features: Array,
    *,
    hops: int,
    rows: Array | None,
    last_only: bool,
    storage: str,
    run: Run,
    widest: int | None = None,
) -> Array:
    """Return X, ÂX, …, ÂᴷX for `rows`, (R, K+1, F), or ÂᴷX alone, (R, 1, F)."""
    width = features.shape[1]
    count = len(features) if rows is None else len(rows)
    values = empty((count, 1 if last_only else hops + 1, width), storage)
    if not last_only or hops == 0:
        _copy(features, rows, values, run)
    if hops:
        itemsize = np.dtype(storage).itemsize
        blocks = layout.column_blocks(
            width, widest or kernels.widest_block(), nodes=plan.adjacency.nodes, itemsize=itemsize
        )
        engine = Block(plan, max(block.stop - block.start for block in blocks), storage, run)
        with progress("propagate", total=len(blocks) * hops) as advance:
            for block in blocks:
                engine.enter(features, block)
                for hop in range(1, hops + 1):
                    engine.hop()
                    if not last_only or hop == hops:
                        engine.leave(rows, values, 0 if last_only else hop, block)
                    advance()
    return values


class Block:
    """One block of columns on its way through the hops."""

    def __init__(self, plan: Plan, widest: int, storage: str, run: Run) -> None:
        size = plan.adjacency.nodes * kernels.padded(widest)
        self.plan, self.run, self.storage = plan, run, storage
        self._buffers = run([lambda: prefaulted(empty((size,), storage))] * 2)
        self._shape(widest)

    def _shape(self, columns: int) -> None:
        """See the buffers as rows of so many columns, padded."""
        width = kernels.padded(columns)
        nodes = self.plan.adjacency.nodes
        self.x, self.next = (buffer[: nodes * width].reshape(nodes, width) for buffer in self._buffers)
        self.sums = np.empty((len(self.plan.segments), width), np.float32)
        self.columns = np.ones(columns, np.float32)
        self.shape = kernels.quads(width)

    def enter(self, features: Array, block: slice) -> None:
        """Set y = D^(−r) X c for these columns."""
        self._shape(block.stop - block.start)
        chunks = ranges(len(features), max(1, 2**18 // self.x.shape[1]))
        read = partial(_read, features, block)
        enter, x = self.plan.enter, layout.bits(self.x)

        def peak(first: int, last: int) -> Array:
            return np.asarray(np.abs(read(first, last) * enter[first:last, None]).max(axis=0))

        def pack(first: int, last: int) -> None:
            layout.pack(read(first, last), enter, self.columns, x, first)

        if self.storage == "float16":
            self.columns = lift(np.max(self.run([partial(peak, *chunk) for chunk in chunks]), axis=0))
        self.run([partial(pack, *chunk) for chunk in chunks])

    def hop(self) -> None:
        """Set y = D^(−1) A y."""
        plan, x, out = self.plan, layout.bits(self.x), layout.bits(self.next)
        entries = (plan.adjacency.indices, plan.adjacency.weights)
        segments = [
            partial(kernels.sum_segments, plan.segments, *entries, x, self.sums, *span, self.shape)
            for span in ranges(len(plan.segments), SEGMENTS_A_PIECE)
        ]
        fixed = (plan.adjacency.indptr, *entries, x, plan.self_loops, out, plan.inverse, plan.longest)
        self.run(segments + [partial(kernels.sum_rows, *fixed, *piece, self.shape) for piece in plan.pieces])
        if len(plan.hubs):
            kernels.join_segments(plan.hubs, plan.hub_starts, self.sums, out, plan.inverse, self.shape)
        self.x, self.next = self.next, self.x

    def leave(self, rows: Array | None, values: Array, hop: int, block: slice) -> None:
        """Write X^(l) = D^r y / c of the wanted rows into values[:, hop, block]."""
        fixed: tuple[Any, ...] = (layout.bits(self.x), rows, self.plan.leave, 1 / self.columns, layout.bits(values))
        pieces = [
            partial(layout.unpack, *fixed, hop, block.start, *span)
            for span in ranges(len(values), max(1, 2**18 // self.x.shape[1]))
        ]
        if sum(self.run(pieces)):
            raise too_large(f"After {hop} hops some features")


def _read(features: Array, block: slice, first: int, last: int) -> Array:
    return np.ascontiguousarray(features[first:last, block], dtype=np.float32)


def lift(peaks: Array) -> Array:
    """Return the power of two for each column that brings its peak just below 2¹⁵."""
    if not np.isfinite(peaks).all():
        raise NotFiniteError("Some features are NaN or infinite.\nFeatures must be finite numbers.")
    exponent = np.frexp(peaks)[1]
    return np.asarray(np.ldexp(np.float32(1), np.clip(15 - exponent, -100, 100)), dtype=np.float32)


def _copy(features: Array, rows: Array | None, values: Array, run: Run) -> None:
    """Write X itself, hop 0, a few MiB at a time."""

    def piece(first: int, last: int) -> None:
        wanted = slice(first, last) if rows is None else rows[first:last]
        with np.errstate(over="ignore"):
            values[first:last, 0] = features[wanted]
        if values.dtype == np.float16 and not np.isfinite(values[first:last, 0]).all():
            raise too_large("Some features")

    run([partial(piece, *span) for span in ranges(len(values), max(1, 2**20 // values.shape[2]))])
