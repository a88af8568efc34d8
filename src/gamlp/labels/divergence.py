"""How far a student's probabilities Q are from a target P, row by row.

    squared difference  Σ_j (P_j − Q_j)²          Kullback-Leibler  Σ_j P_j log(P_j / Q_j),  with 0·log 0 = 0

Q comes as its logarithm, which log_softmax gives without underflow.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Divergence = Callable[[Tensor, Tensor], Tensor]  # target P (B, C), log Q (B, C) → (B,)


def squared_difference(target: Tensor, student_log: Tensor) -> Tensor:
    """Return Σ_j (P_j − Q_j)² by rows: bounded, so it forgives a wrong teacher."""
    return (target - student_log.exp()).square().sum(dim=1)


def kl_divergence(target: Tensor, student_log: Tensor) -> Tensor:
    """Return Σ_j P_j log(P_j / Q_j) by rows, finite for hard targets too."""
    return (torch.xlogy(target, target) - target * student_log).sum(dim=1)
