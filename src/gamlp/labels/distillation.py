"""The last stage as a teacher (paper, Reliable Label Distillation).

    L_KD = Σ_{i in V_r} Σ_j α_i P_ij log(P_ij / Q_ij),    α_i = max_j P_ij

P are the teacher's probabilities (softened with T), Q the student's softmax. Two differences from the paper, both as
in the published runs: the mean over the rows stands in place of the sum, so that γ does not depend on the batch size;
and Q is the softmax at T = 1, where the paper's notation would divide the student's logits by T as well (a caller can).
"""

from __future__ import annotations

import torch
from torch import Tensor

from gamlp.labels.divergence import kl_divergence


def distillation_loss(student_logits: Tensor, teacher: Tensor) -> Tensor:
    """Return the confidence-weighted divergence of the student from its teacher: (B, C), (B, C) → scalar.

    Finite for hard teachers too (0·log 0 = 0), and 0 for an empty batch.
    """
    if not len(teacher):
        return student_logits.sum() * 0
    confidence = teacher.amax(dim=1)  # α (B,)
    divergence = kl_divergence(teacher, torch.log_softmax(student_logits, dim=1))  # (B,)
    return (confidence * divergence).mean()
