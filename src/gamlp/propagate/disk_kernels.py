"""The inner loop over a chunk of the adjacency: as `kernels`, with the chunk's own rows and entries counted from 0.

The sums run in the same order as there, so the bits are the same. numba keeps what it compiled until this file's date
changes: after a change in `kernels` or `halves` touch this file too.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gamlp.files import Array
from gamlp.propagate.kernels import gather


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
