"""Trees walked row by row on a CPU: one compiled loop in place of a look-up of all trees a level (`model.trees`)."""

# Compiled functions take plain positional arguments, and numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from gamlp.model.cpu.kernels import CHUNK, compiled, run


def walk(rows: Tensor, trees: Any) -> Tensor:
    """Take every row to its leaf in every tree, and add up.  (B, (K+1)·F) → (B, C)."""
    names = ("feature", "threshold", "left", "right", "value", "target")
    logits: Tensor = trees.start.repeat(len(rows), 1)
    run(walk_rows, rows.contiguous().numpy(), *(getattr(trees, name).numpy() for name in names), logits.numpy())
    return logits


@compiled
def walk_rows(first, last, rows, feature, threshold, left, right, value, target, logits):
    """Add the leaf of each tree (T, M) to the logits (B, C) of its target; a leaf leads to itself."""
    for row in range(first * CHUNK, min(last * CHUNK, len(rows))):
        for tree in range(len(target)):
            place = np.int64(0)
            while left[tree, place] != right[tree, place]:
                below = rows[row, feature[tree, place]] <= threshold[tree, place]
                place = left[tree, place] if below else right[tree, place]
            logits[row, target[tree]] += value[tree, place]
