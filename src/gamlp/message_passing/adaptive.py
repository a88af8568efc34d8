"""AP-GCN: each node decides how many steps its predictions are spread (Spinelli et al. 2020).

    z⁰ = MLP(X),   zᵏ = Â zᵏ⁻¹,   hᵏᵢ = σ(q·zᵏᵢ + b)                    the chance to halt after step k
    Kᵢ = the first k with h¹ᵢ + … + hᵏᵢ ≥ 1 − ε, at most T              T is `iterations`
    pᵏᵢ = h¹ᵢ + … + hᵏᵢ for k < Kᵢ,   Rᵢ = 1 − (h¹ᵢ + … + hᵏᵢ) up to Kᵢ − 1 for k = Kᵢ
    logitsᵢ = 1/Kᵢ Σ_{k ≤ Kᵢ} pᵏᵢ zᵏᵢ + (1 − pᵏᵢ) zᵏ⁻¹ᵢ

The loss of a node has `ponder_cost`·(Kᵢ + Rᵢ) in it, through which q learns to halt early. Entries of Â are dropped in
every step, as for APPNP. Cost: T products with Â, fewer where all nodes have halted.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from gamlp.message_passing.networks import PredictFirst
from gamlp.message_passing.settings import Options
from gamlp.message_passing.views import View

HALTED = 0.99  # 1 − ε


class APGCN(PredictFirst):
    """Spread the predictions until each node has had enough."""

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__(view, classes, options)
        self.halt = nn.Linear(classes, 1)
        nn.init.constant_(self.halt.bias, -math.log(options.iterations))  # at first h is about 1 / (T + 1)

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        spread = self.predict(view.features)
        logits, halted, steps, rest = (torch.zeros_like(spread[:, :1]) for _ in range(4))
        going = torch.ones_like(halted, dtype=torch.bool)  # (n, 1), like all numbers of a node
        for step in range(1, self.options.iterations + 1):
            adjacency = view.adjacency.dropped(self.options.edge_dropout, training=self.training)
            before, spread = spread, adjacency @ spread
            reached = halted + self.halt(spread).sigmoid()
            ends = (reached >= HALTED) | (step == self.options.iterations)
            share = torch.where(ends, 1 - halted, reached)
            logits = logits + going * torch.lerp(before, spread, share)
            steps, rest = steps + going, torch.where(going, 1 - halted, rest)
            halted, going = torch.where(going & ~ends, reached, halted), going & ~ends
            if not going.any():
                break
        self.penalty = self.options.ponder_cost * (steps + rest).squeeze(1)
        return logits / steps
