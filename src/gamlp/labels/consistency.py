"""SCR (Zhang et al. 2021): on nodes without labels, agree with the average of one's own past weights.

The teacher has the student's shape; after update t its weights are (mean teacher, Tarvainen & Valpola 2017)

    θ' ← d θ' + (1 − d) θ,    d = min(decay, t / (t + 1)):  the plain mean of the first weights, then a moving one

It predicts without dropout. Its probabilities P are sharpened, and rows it is unsure of are left out:

    P̃_ij = P_ij^(1/T) / Σ_j P_ij^(1/T),      U = { i : max_j P_ij > ε },      L_con = 1/|U| Σ_{i in U} D(P̃_i, Q_i)

with Q the student's softmax and D one of the divergences of `distillation`. No gradient reaches the teacher. The loss
counts λ·exp(−5(1 − t/ramp)²) at step t: little while the teacher knows little.
"""

from __future__ import annotations

import math
from copy import deepcopy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from gamlp.labels.distillation import Divergence, squared_difference
from gamlp.targets.base import TargetKind
from gamlp.targets.registry import SINGLE


class AveragedTeacher(nn.Module):
    """The moving average of a network's weights and buffers; its state_dict has all that a checkpoint needs."""

    updates: Tensor

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.average = deepcopy(network).requires_grad_(False)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        object.__setattr__(self, "_student", network)  # past nn.Module: the student's weights are not the teacher's
        self.eval()

    @torch.no_grad()
    def update(self) -> None:
        """Take in the student's present weights; call after each optimizer step."""
        student: nn.Module = object.__getattribute__(self, "_student")
        self.updates += 1
        decay = min(self.decay, 1 - 1 / (int(self.updates) + 1))
        means, values = (chain(network.parameters(), network.buffers()) for network in (self.average, student))
        for mean, now in zip(means, values, strict=True):
            if mean.is_floating_point():
                mean.lerp_(now, 1 - decay)
            else:
                mean.copy_(now)  # counters have no average

    @torch.no_grad()
    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return what the averaged network returns, without dropout and without a gradient."""
        return self.average(*inputs, **named)

    def train(self, mode: bool = True) -> AveragedTeacher:
        """Stay in evaluation mode: a teacher is never trained."""
        return super().train(False)


def consistency_loss(
    student_logits: Tensor,
    teacher_probabilities: Tensor,
    *,
    threshold: float = 0.0,
    temperature: float = 1.0,
    divergence: Divergence = squared_difference,
    kind: TargetKind = SINGLE,
) -> Tensor:
    """Return L_con of rows without labels, (B, C), (B, C) → scalar; 0 where the teacher is sure of none.

    Of several labels a node, U is of nodes and labels: those of which the teacher is sure, yes or no.
    """
    answers = kind.questions(teacher_probabilities.detach())  # (B, Q, K)
    sure = answers.amax(dim=-1) > threshold
    if not bool(sure.any()):
        return student_logits.sum() * 0
    target = sharpen(answers[sure], temperature)
    return divergence(target, kind.log_answers(student_logits)[sure]).mean()


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """Return P^(1/T) divided by its row sums, in logarithms, so that a small T does not underflow to 0/0."""
    return torch.softmax(probabilities.log() / temperature, dim=-1)


def ramp_up(step: int, steps: int) -> float:
    """Return the loss's weight at `step`, from exp(−5) at 0 to 1 from `steps` on."""
    progress = 1.0 if steps <= 0 else min(max(step / steps, 0.0), 1.0)
    return math.exp(-5 * (1 - progress) ** 2)
