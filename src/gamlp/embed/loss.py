"""What training makes small: true triples score high, false ones low, and the most convincing false ones count most.

Self-adversarial loss (Sun et al. 2019) of true scores s and false scores f, one row of f for each s:

    L = ½ Σᵢ [ −log σ(sᵢ) − Σⱼ wᵢⱼ log σ(−fᵢⱼ) ],   w = softmax over j of temperature · f, taken as constant

Its gradients are short enough to write down: ∂L/∂sᵢ = −½ σ(−sᵢ), ∂L/∂fᵢⱼ = ½ wᵢⱼ σ(fᵢⱼ). Cost: O(B·n).
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


def loss(true: Tensor, false: Tensor, *, temperature: float) -> Tensor:
    """Return L, a scalar; true (…, m), false (…, m, n)."""
    weights = (temperature * false).softmax(-1).detach()
    return -(logsigmoid(true).sum() + (weights * logsigmoid(-false)).sum()) / 2


def loss_gradients(true: Tensor, false: Tensor, *, temperature: float) -> tuple[Tensor, Tensor]:
    """Return the gradients of L, of the shapes of true and false."""
    weights = (false if temperature == 1 else temperature * false).softmax(-1)
    return true.neg().sigmoid_().mul_(-0.5), weights.mul_(false.sigmoid()).mul_(0.5)
