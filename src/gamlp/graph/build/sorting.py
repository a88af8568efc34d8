"""Sort edges into rows by buckets and radix.

A bucket holds 2^shift neighbouring rows, about 2¹⁵ entries, so that it is sorted inside the processor's cache. An entry
is one 64-bit key: (row within the bucket, column), and with weights one bit more at the end for its direction. Each
block of edges has its own place in each bucket, so that threads never meet and the order of the input is kept: weights
are always added up in the same order, the same for (i, j) and (j, i).

    bucketed     count → place                                              O(E) each
    sort_range   sort_bucket_range (sort and merge) → indptr → write
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gamlp.storage.files import Array
from gamlp.storage.huge_pages import empty
from gamlp.storage.numba_cache import cached_njit
from gamlp.storage.threads import Run, ranges

ENTRIES_A_BUCKET = 2**15
MOST_BUCKETS = 2**13
DIGIT = 11  # bits of the key in one pass of the radix sort

Edges = tuple[Array, Array, Array | None]  # source, target, weight
MaybeArray = Any  # an array or None; which of the two is known when it is compiled


@dataclass(frozen=True)
class Shape:
    """What the keys of all buckets have in common."""

    nodes: int
    shift: int  # a bucket holds 2^shift rows
    weighted: bool
    symmetric: bool
    self_loops: bool

    @property
    def columns(self) -> int:
        """Return the bits of a column."""
        return max(1, (self.nodes - 1).bit_length())

    @property
    def id_type(self) -> type[np.integer[Any]]:
        """Return the type of a node's number."""
        return np.int32 if self.nodes < 2**31 else np.int64

    def buffers(self, entries: int) -> tuple[Array, Array | None]:
        """Return room for the keys, and weights, of so many entries."""
        return empty((entries,), np.int64), empty((entries,), np.float32) if self.weighted else None


def bucketed(
    shape: Shape, edges: Edges, buffers: tuple[Array, Array | None] | None = None, *, run: Run, blocks: int
) -> tuple[Array, Array | None, Array]:
    """Put edges whose ends have been checked into buckets: return keys, weights, and where each bucket starts."""
    spans = ranges(len(edges[0]), -(-len(edges[0]) // blocks) or 1)
    counts = np.zeros((len(spans), (shape.nodes >> shape.shift) + 1), np.int64)
    kind = (shape.symmetric, shape.self_loops, shape.shift)
    run([partial(count, *edges[:2], *kind, *span, counts[block]) for block, span in enumerate(spans)])
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts  # where each block of edges writes in each bucket
    found = buffers or shape.buffers(int(starts[-1]))
    fixed = (edges, (*kind, shape.columns, int(shape.weighted)))
    run([partial(place, *fixed, *span, places[block], *found) for block, span in enumerate(spans)])
    return *found, starts


def sort_range(
    shape: Shape, keys: Array, weights: Array | None, starts: Array, first: int = 0, *, run: Run, blocks: int
) -> tuple[Array, Array, Array | None]:
    """Sort and merge the buckets from `first` on: return indptr of their rows, from 0, indices and weights."""
    rows = min((len(starts) - 1) << shape.shift, shape.nodes - (first << shape.shift))
    degrees = np.zeros(rows + 1, np.int64)
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], 8 * blocks + 1)[1:-1])  # to about equal entries
    cuts = np.unique(cuts[(cuts > 0) & (cuts < len(starts) - 1)])
    pieces = list(pairwise([0, *cuts.tolist(), len(starts) - 1]))
    fixed, spare = (keys, weights, starts), int(shape.weighted)
    bits = shape.shift + shape.columns + spare
    run([partial(sort_bucket_range, *fixed, *piece, shape.shift, bits, degrees) for piece in pieces])
    indptr = np.cumsum(degrees)
    indices = empty((int(indptr[-1]),), shape.id_type)
    merged = None if weights is None else empty(indices.shape, np.float32)
    rest = (indptr, shape.shift, shape.columns, spare, indices, merged)
    run([partial(write, *fixed, *rest, *piece) for piece in pieces])
    return indptr, indices, merged


def shift_of(nodes: int, entries: int) -> int:
    """Return the power of two of rows in a bucket."""
    buckets = min(MOST_BUCKETS, max(1, entries // ENTRIES_A_BUCKET))
    return max(0, (-(-nodes // buckets) - 1).bit_length())


@cached_njit
def count(
    source: Array, target: Array, both: bool, loops: bool, shift: int, first: int, last: int, counts: Array
) -> None:
    """Add the entries of the edges first … last−1 to the counts of their buckets."""
    for e in range(first, last):
        if source[e] != target[e]:
            counts[source[e] >> shift] += 1
            if both:
                counts[target[e] >> shift] += 1
        elif loops:
            counts[source[e] >> shift] += 1


@cached_njit
def place(edges: Any, kind: Any, first: int, last: int, places: Array, keys: Array, values: MaybeArray) -> None:
    """Write the keys of the edges first … last−1 into their buckets, from `places` on."""
    source, target, weights = edges
    both, loops, shift, columns, spare = kind
    inside = (1 << shift) - 1
    for e in range(first, last):
        s, t = np.int64(source[e]), np.int64(target[e])
        if s == t and not loops:
            continue
        at = places[s >> shift]
        places[s >> shift] = at + 1
        keys[at] = ((s & inside) << columns | t) << spare
        if values is not None:
            values[at] = weights[e]
        if both and s != t:
            at = places[t >> shift]
            places[t >> shift] = at + 1
            keys[at] = ((t & inside) << columns | s) << spare | spare
            if values is not None:
                values[at] = weights[e]


@cached_njit
def sort_bucket_range(
    keys: Array, values: MaybeArray, starts: Array, first: int, last: int, shift: int, bits: int, degrees: Array
) -> None:
    """Sort each bucket, merge equal entries to its front, and count each row's entries into degrees[row + 1]."""
    longest = 0
    for b in range(first, last):
        longest = max(longest, starts[b + 1] - starts[b])
    spare_keys = np.empty(longest, np.int64)
    spare_values = np.empty(0 if values is None else longest, np.float32)
    for b in range(first, last):
        entries = keys[starts[b] : starts[b + 1]]
        if values is None:
            _sort(entries, spare_keys, None, None, bits)
            kept = _merge(entries)
        else:
            totals = values[starts[b] : starts[b + 1]]
            _sort(entries, spare_keys, totals, spare_values, bits)
            kept = _merge_weights(entries, totals)
        rest = bits - shift
        for e in range(kept):
            degrees[(b << shift) + (entries[e] >> rest) + 1] += 1


@cached_njit
def _sort(keys: Array, other: Array, values: MaybeArray, other_values: MaybeArray, bits: int) -> None:
    """Sort by the lowest `bits` bits, keeping the order of equals; `other` is room for as many."""
    passes = (bits + DIGIT - 1) // DIGIT
    digit = (bits + passes - 1) // passes
    mask = (1 << digit) - 1
    here = np.empty(1 << digit, np.int64)
    source, goal = keys, other
    source_values, goal_values = values, other_values
    for turn in range(passes):
        low = turn * digit
        here[:] = 0
        for e in range(keys.shape[0]):
            here[(source[e] >> low) & mask] += 1
        total = 0
        for d in range(here.shape[0]):
            total, here[d] = total + here[d], total
        for e in range(keys.shape[0]):
            key = source[e]
            at = here[(key >> low) & mask]
            here[(key >> low) & mask] = at + 1
            goal[at] = key
            if values is not None:
                goal_values[at] = source_values[e]
        source, goal = goal, source
        source_values, goal_values = goal_values, source_values
    if passes % 2:
        keys[:] = other[: keys.shape[0]]
        if values is not None:
            values[:] = other_values[: keys.shape[0]]


@cached_njit
def _merge(keys: Array) -> int:
    """Move the different keys to the front; return how many."""
    kept = 0
    for e in range(keys.shape[0]):
        if e == 0 or keys[e] != keys[e - 1]:
            keys[kept] = keys[e]
            kept += 1
    return kept


@cached_njit
def _merge_weights(keys: Array, values: Array) -> int:
    """Move the different entries to the front, each with the larger of its two directions' sums; return how many."""
    kept, e = 0, 0
    while e < keys.shape[0]:
        entry, best = keys[e] >> 1, np.float32(0)
        while e < keys.shape[0] and keys[e] >> 1 == entry:
            key, total = keys[e], np.float32(0)
            while e < keys.shape[0] and keys[e] == key:
                total += values[e]
                e += 1
            best = max(best, total)
        keys[kept], values[kept] = entry << 1, best
        kept += 1
    return kept


@cached_njit
def write(
    keys: Array,
    values: MaybeArray,
    starts: Array,
    indptr: Array,
    shift: int,
    columns: int,
    spare: int,
    indices: Array,
    weights: MaybeArray,
    first: int,
    last: int,
) -> None:
    """Write the columns, and weights, of the merged buckets to their rows' places."""
    mask = (1 << columns) - 1
    nodes = indptr.shape[0] - 1
    for b in range(first, last):
        begin = indptr[min(b << shift, nodes)]
        for e in range(indptr[min((b + 1) << shift, nodes)] - begin):
            indices[begin + e] = (keys[starts[b] + e] >> spare) & mask
            if weights is not None:
                weights[begin + e] = values[starts[b] + e]
