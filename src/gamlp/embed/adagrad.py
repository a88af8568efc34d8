"""Adagrad on the rows that a step touches: no gradient of the whole table, no pass over it.

For a row x with gradient g of width d, all gradients of the step for the same row added up first,

    v ← v + ‖g‖² / d,   x ← x − rate · g / (√v + ε)

where g also has 3·λ·x|x|, the gradient of the regularization λ·Σ|x|³, once for each time that the row is an end or the
relation of a true triple. One number v a row instead of d halves the memory of Adagrad. Ids are sorted, so that each
row is read and written once; sums are taken in the order of the ids' places. Cost: O(touched rows · d).
"""

# Compiled functions take plain positional arguments, and numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gamlp.storage.files import Array
from gamlp.storage.numba_cache import cached_njit

EPSILON = 1e-10


def update_rows(
    table: Array, sums: Array, ids: Sequence[Array], gradients: Sequence[Array], *, rate: float, regularization: float
) -> None:
    """Move rows of `table` (N, d) in place, by lists of ids (M,), which may repeat, and their gradients (M, d).

    `sums` (N,) are the rows' v. One to three lists; the third, of drawn entities, is not regularized.
    """
    nothing = gradients[0][:0]
    first, second, third = [*gradients, nothing, nothing][:3]
    joined = np.concatenate(ids)
    order = np.argsort(joined, kind="stable")
    _update(table, sums, joined[order], order, first, second, third, np.float32(rate), np.float32(3 * regularization))


@cached_njit(fastmath={"contract", "reassoc", "nsz"}, boundscheck=False)
def _update(table, sums, rows, order, first, second, third, rate, pull):
    width = table.shape[1]
    total = np.empty(width, np.float32)
    at = 0
    while at < len(rows):
        row = rows[at]
        total[:] = 0
        times = 0
        while at < len(rows) and rows[at] == row:
            place = order[at]
            if place < len(first):
                part = first[place]
                times += 1
            elif place < len(first) + len(second):
                part = second[place - len(first)]
                times += 1
            else:
                part = third[place - len(first) - len(second)]
            for column in range(width):
                total[column] += part[column]
            at += 1
        square = np.float32(0)
        pulled = pull * np.float32(times)
        for column in range(width):
            total[column] += pulled * table[row, column] * abs(table[row, column])
            square += total[column] * total[column]
        sums[row] += square / np.float32(width)
        factor = rate / (np.sqrt(sums[row]) + np.float32(EPSILON))
        for column in range(width):
            table[row, column] -= factor * total[column]
