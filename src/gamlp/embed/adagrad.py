"""Adagrad on the rows that a step touches: no gradient of the whole table, no pass over it.

For a row x with gradient g of width d, all rows of the step that are the same entity added up first,

    v ← v + ‖g‖² / d,   x ← x − rate · g / (√v + ε)

One number v a row instead of d halves the memory of Adagrad (as the published runs do). Cost: O(touched rows · d).
"""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-10


def update_rows(table: Tensor, sums: Tensor, ids: Tensor, gradients: Tensor, *, rate: float) -> None:
    """Move the rows `ids` (M,), which may repeat, of `table` (N, d) in place; `sums` (N,) are v, gradients (M, d)."""
    rows, places = torch.unique(ids, return_inverse=True)
    total = table.new_zeros(len(rows), table.shape[1]).index_add_(0, places, gradients)
    squares = sums[rows] + total.square().mean(1)
    sums[rows] = squares
    total *= (-rate / (squares.sqrt() + EPSILON))[:, None]
    table.index_add_(0, rows, total)
