"""Combine the hops of each node into one row: the combiners whose weights are not learned from the node.

    last    z = hᴷ                        SGC; with K = 0 a plain MLP
    mean    z = Σ_l hˡ / (K+1)            S2GC
    decay   z = Σ_l wˡ hˡ,  wˡ ∝ β(1−β)ˡ  GBP; divided by their sum, so that weights add up to 1 for every combiner and
                                          β = 0 is the mean. GBP's own differ by this one factor, 1 − (1−β)ᴷ⁺¹.
    concat  z = [h⁰ ‖ … ‖ hᴷ]             SIGN; its weights are reported as uniform. A net of two layers ends in a
                                          linear map and the head begins with one: PReLU and dropout are between.

The learned ones are in `attention`. Every combiner turns (B, K+1, H) into combined (B, H') and weights (B, K+1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gamlp.model.dropout import Dropout
from gamlp.model.hop_nets import HopRows
from gamlp.model.layers import activate, new_slope
from gamlp.model.registry import combiner_named
from gamlp.settings import Settings


class Combined(NamedTuple):
    """One row a node (B, H'), and the share of each hop in it (B, K+1)."""

    rows: Tensor
    weights: Tensor


class Combiner(nn.Module, ABC):
    """Built for K+1 `hops` of `width` H, whose features were F wide; every one is built the same way."""

    residual_bias = True  # of the residual map beside this combiner
    needs_stationary = False  # whether it compares the hops with X^(∞)
    reads: tuple[str, ...] = ()  # the settings that it reads and that only some combiners do

    def __init__(self, settings: Settings, *, hops: int, width: int, features: int) -> None:
        super().__init__()
        self.hops, self.width = hops, width

    @abstractmethod
    def forward(self, hops: HopRows, *, stationary: Tensor | None = None) -> Combined:
        """Combine the hops; only smoothing attention reads `stationary`, X^(∞) (B, F)."""

    @staticmethod
    def hops_used(hops: int) -> int:
        """Return how many hops, counted from the last, this combiner reads of `hops`."""
        return hops


class FixedCombiner(Combiner):
    """A weighted sum with the same weights for every node; or, `side_by_side`, the rows as they are, in one."""

    shares: Tensor
    side_by_side = False

    def __init__(self, settings: Settings, *, hops: int, width: int, features: int) -> None:
        super().__init__(settings, hops=hops, width=width, features=features)
        self.register_buffer("shares", self.fixed_weights(settings), persistent=False)

    @abstractmethod
    def fixed_weights(self, settings: Settings) -> Tensor:
        """Return the weights, (K+1,)."""

    def forward(self, hops: HopRows, *, stationary: Tensor | None = None) -> Combined:
        """Combine the hops."""
        weights = self.shares.expand(hops.y.shape[0], -1)
        return Combined(hops.side_by_side() if self.side_by_side else hops.weighted(weights), weights)


def shares_beforehand(settings: Settings) -> Tensor | None:
    """Return the weights (K+1,) by which hops can be added up before any network reads them; None where they cannot.

    They can where the weights are fixed, nothing is dropped from single hops or learned about them, and nothing else
    reads hop 0: a row is then F numbers in place of (K+1)·F, in every step.
    """
    kind = combiner_named(settings.combiner)
    if not settings.hops or not issubclass(kind, FixedCombiner):
        return None
    whole = not kind.side_by_side or kind.hops_used(settings.hops + 1) == 1
    more = (settings.hop_layers, settings.input_dropout, settings.residual, settings.relations == "subsets")
    if not whole or any(more) or settings.head_residual == "features":
        return None
    return kind(settings, hops=settings.hops + 1, width=1, features=1).shares


class Last(FixedCombiner):
    """The last hop alone; the others are not even put through a net."""

    side_by_side = True

    @staticmethod
    def hops_used(hops: int) -> int:
        """Return 1."""
        return 1

    def fixed_weights(self, settings: Settings) -> Tensor:
        """Return 0, …, 0, 1."""
        return torch.eye(self.hops)[-1]


class Mean(FixedCombiner):
    """The mean of all hops."""

    def fixed_weights(self, settings: Settings) -> Tensor:
        """Return 1/(K+1) for each."""
        return torch.full((self.hops,), 1 / self.hops)


class Decay(FixedCombiner):
    """Weights that fall by the same factor 1−β from hop to hop."""

    reads = ("decay",)

    def fixed_weights(self, settings: Settings) -> Tensor:
        """Return (1−β)ˡ divided by their sum."""
        powers = (1 - settings.decay) ** torch.arange(self.hops, dtype=torch.float64)
        return (powers / powers.sum()).float()


class Concat(Mean):
    """All hops side by side: no hop comes before another."""

    side_by_side = True

    def __init__(self, settings: Settings, *, hops: int, width: int, features: int) -> None:
        super().__init__(settings, hops=hops, width=width, features=features)
        self.width = hops * width
        linear = settings.hop_layers == 2 and not settings.residual  # the residual brings an activation of its own
        self.slope = new_slope() if linear else None
        self.dropout = Dropout(settings.dropout) if linear else None

    def forward(self, hops: HopRows, *, stationary: Tensor | None = None) -> Combined:
        """Combine the hops."""
        rows, weights = super().forward(hops, stationary=stationary)
        if self.slope is not None:
            rows = activate(rows, slope=self.slope, dropout=self.dropout)
        return Combined(rows, weights)
