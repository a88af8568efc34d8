"""The inner loop over a chunk of the adjacency: as `kernels`, with the chunk's own rows and entries counted from 0.

And features into the kernel's layout from files by columns: as `layout.pack`, without turning them over first.

The sums run in the same order as there, so the bits are the same. numba keeps what it compiled until this file's date
changes: after a change in `kernels` or `halves` touch this file too.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gamlp.propagate.kernels import gather
from gamlp.propagate.layout import stored
from gamlp.storage.files import Array

TILE = 128  # rows written together, while they stay in a near cache


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def sum_chunk(
    offsets: Array,
    indices: Array,
    weights: Array | None,
    x: Array,
    own: bool,
    out: Array,
    scale: Array,
    longest: int,
    row: int,
    first: int,
    last: int,
    shape: tuple[int, ...],
) -> None:
    """Write rows row+first … row+last−1 of out = diag(scale) (A + own·I) x, but those of more than `longest` entries.

    offsets, indices, weights and scale are the chunk's, which begins with row `row`; x and out are whole.
    """
    for i in range(first, last):
        if offsets[i + 1] - offsets[i] <= longest:
            node = row + i if own else -1
            gather(indices, weights, offsets[i], offsets[i + 1], x, node, out, row + i, scale[i], shape)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def join_hubs(hubs: Array, starts: Array, sums: Array, out: Array, scale: Array, shape: tuple[int, ...]) -> None:
    """Write out[hubs[h]] = scale[h] · Σ of the sums starts[h] … starts[h+1]−1."""
    order = np.arange(sums.shape[0])
    for h in range(hubs.shape[0]):
        gather(order, None, starts[h], starts[h + 1], sums, -1, out, hubs[h], scale[h], shape)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def pack_columns(values: Array, scale: Array, columns: Array, x: Array, first: int, last: int) -> None:
    """Write x[i, f] = values[f, i] · scale[i] · columns[f] for rows first … last−1, and zeros into the padding."""
    for start in range(first, last, TILE):
        stop = min(start + TILE, last)
        for f in range(values.shape[0]):
            for i in range(start, stop):
                x[i, f] = stored(x, values[f, i] * scale[i] * columns[f])
        for f in range(values.shape[0], x.shape[1]):
            for i in range(start, stop):
                x[i, f] = 0


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def peaks(values: Array, scale: Array, first: int, last: int) -> Array:
    """Return the largest |values[i, f]|·scale[i] of each column f over some rows.

    Without their sign, floats are in the order of their bits as integers; infinities and NaN come last.
    """
    found = np.zeros(values.shape[1], np.int32)
    for i in range(first, last):
        for f in range(values.shape[1]):
            found[f] = max(found[f], np.float32(values[i, f] * scale[i]).view(np.int32) & np.int32(0x7FFFFFFF))
    return found.view(np.float32)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def peaks_of_columns(values: Array, scale: Array, first: int, last: int) -> Array:
    """Return the same from values (F, N) by columns."""
    found = np.zeros(values.shape[0], np.int32)
    for f in range(values.shape[0]):
        largest = np.int32(0)
        for i in range(first, last):
            largest = max(largest, np.float32(values[f, i] * scale[i]).view(np.int32) & np.int32(0x7FFFFFFF))
        found[f] = largest
    return found.view(np.float32)
