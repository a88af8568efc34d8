"""Adam (Kingma & Ba 2015), with weight decay in the gradient; its sums are torch's own fused operation.

    g ← g + λθ,    m ← β₁m + (1−β₁)g,    v ← β₂v + (1−β₂)g²,    θ ← θ − η·(m / (1−β₁ᵗ)) / (√(v / (1−β₂ᵗ)) + ε)

`torch.optim.Adam` gives the same bits, but its first optimizer imports torch's compiler: a second of every run, a good
part of the whole on a small graph. Parameters without a gradient stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class Adam:
    """The parameters, and m, v and t of each."""

    def __init__(self, parameters: Iterable[Tensor], *, learning_rate: float, weight_decay: float = 0.0) -> None:
        self.parameters, self.learning_rate, self.weight_decay = list(parameters), learning_rate, weight_decay
        self.slots = [
            {
                "step": torch.zeros((), device=one.device),
                "exp_avg": torch.zeros_like(one.data),
                "exp_avg_sq": torch.zeros_like(one.data),
            }
            for one in self.parameters
        ]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Go one step down the gradients."""
        moved = [(one, one.grad, slot) for one, slot in zip(self.parameters, self.slots, strict=True)]
        moved = [whole for whole in moved if whole[1] is not None]
        parameters, gradients, slots = (list(part) for part in zip(*moved, strict=True)) if moved else ([], [], [])
        first, second, steps = ([slot[name] for slot in slots] for name in ("exp_avg", "exp_avg_sq", "step"))
        adam(
            *(parameters, gradients, first, second, [], steps),
            fused=True, amsgrad=False, beta1=BETAS[0], beta2=BETAS[1], lr=self.learning_rate,
            weight_decay=self.weight_decay, eps=EPSILON, maximize=False,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Tensor]:
        """Return m, v and t of all parameters as INDEX.NAME."""
        return {f"{index}.{name}": value for index, slot in enumerate(self.slots) for name, value in slot.items()}

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Take m, v and t back."""
        for name, value in tensors.items():
            index, slot = name.split(".", 1)
            self.slots[int(index)][slot].copy_(value)
