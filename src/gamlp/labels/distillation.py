"""How far a student's probabilities Q are from a target P, and the last stage as a teacher.

    squared difference  Σ_j (P_j − Q_j)²          Kullback-Leibler  Σ_j P_j log(P_j / Q_j),  with 0·log 0 = 0

Q comes as its logarithm, which log_softmax gives without underflow. Reliable Label Distillation (paper) is

    L_KD = Σ_{i in V_r} Σ_j α_i P_ij log(P_ij / Q_ij),    α_i = max_j P_ij

P are the teacher's probabilities (softened with T), Q the student's softmax. Two differences from the paper, both as
in the published runs: the mean over the rows stands in place of the sum, so that γ does not depend on the batch size;
and Q is the softmax at T = 1, where the paper's notation would divide the student's logits by T as well (a caller can).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gamlp.targets.base import TargetKind
from gamlp.targets.registry import SINGLE

Divergence = Callable[[Tensor, Tensor], Tensor]  # target P (…, K), log Q (…, K) → (…)


def squared_difference(target: Tensor, student_log: Tensor) -> Tensor:
    """Return Σ_j (P_j − Q_j)² by rows: bounded, so it forgives a wrong teacher."""
    return (target - student_log.exp()).square().sum(dim=-1)


def kl_divergence(target: Tensor, student_log: Tensor) -> Tensor:
    """Return Σ_j P_j log(P_j / Q_j) by rows, finite for hard targets too."""
    return (torch.xlogy(target, target) - target * student_log).sum(dim=-1)


def distillation_loss(student_logits: Tensor, teacher: Tensor, *, kind: TargetKind = SINGLE) -> Tensor:
    """Return L_KD, (B, C), (B, C) → scalar; finite for hard teachers too, and 0 for an empty batch.

    Of several labels a node, L_KD is the mean over the labels of that of yes and no; gaps of the teacher (NaN) are 0.
    """
    if not len(teacher):
        return student_logits.sum() * 0
    target = kind.questions(teacher)  # (B, Q, K)
    confidence = target.amax(dim=-1)  # α (B, Q)
    return (confidence * kl_divergence(target, kind.log_answers(student_logits))).mean()
