"""Weigh the hops of each node by attention and add them up.

Every attention scores a hop against a reference r with one linear layer, and softmax makes weights of the scores:

    sˡ = δ(a·r + b·hˡ + c),   w = softmax(s⁰ … sᴷ),   z = Σ_l wˡ hˡ

    gate        r = h⁰                                          SAGN's hop-wise attention
    smoothing   r = X^(∞), the row's stationary state           the paper
    recursive   rˡ = Σ_{i<l} softmax(s⁰ … sˡ⁻¹)ᵢ hⁱ,  r⁰ = h⁰   the paper
    jk          r = MLP(h⁰ ‖ h¹ ‖ … ‖ hᴷ)                       published runs; the paper leaves h⁰ out (`jk_reference`)

a·rˡ is a sum of the scalars a·hⁱ, so the recursion runs on scalars: O(B·K·H + B·K²), not O(B·K²·H). The stationary
state is taken as it is, F wide, also where hops have nets: a linear map of it and then `a` would be one vector again.
The bias c is the published networks'; the paper and SAGN have c = 0, where it starts. δ leaky_relu has slope 0.2.

Attention dropout falls on the softmaxed weights, of the sum z and of each rˡ; the weights returned are those before it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from gamlp.errors import ShapeError
from gamlp.model.combiners import Combined, Combiner
from gamlp.model.dropout import Dropout
from gamlp.model.head import Head
from gamlp.model.hop_nets import HopRows
from gamlp.model.layers import new_weight
from gamlp.settings import Settings

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.2),
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "identity": lambda x: x,
}


class Attention(Combiner):
    """A combiner that scores each hop against a reference, which is as wide as a hop unless `like` says otherwise."""

    like: Literal["hop", "features", "hidden"] = "hop"
    reads: tuple[str, ...] = ("attention_activation", "attention_dropout")

    def __init__(self, settings: Settings, *, hops: int, width: int, features: int) -> None:
        super().__init__(settings, hops=hops, width=width, features=features)
        reference = {"hop": width, "features": features, "hidden": settings.hidden}[self.like]
        both = new_weight(width + reference, 1, gain=1.0).detach()[:, 0]
        self.hop_vector = nn.Parameter(both[:width].clone())
        self.reference_vector = nn.Parameter(both[width:].clone())
        self.bias = nn.Parameter(torch.zeros(1))
        self.activation = ACTIVATIONS[settings.attention_activation]
        self.dropout = Dropout(settings.attention_dropout)

    @abstractmethod
    def scores(self, hops: HopRows, stationary: Tensor | None) -> Tensor:
        """Return sˡ, (B, K+1)."""

    def forward(self, hops: HopRows, *, stationary: Tensor | None = None) -> Combined:
        """Combine the hops."""
        weights = torch.softmax(self.scores(hops, stationary), dim=1)
        return Combined(hops.weighted(self.dropout(weights)), weights)

    def both_products(self, hops: HopRows) -> tuple[Tensor, Tensor]:
        """Return a·hˡ and b·hˡ + c, (B, K+1) each."""
        products = hops.products(torch.stack([self.reference_vector, self.hop_vector]))
        return products[:, :, 0], products[:, :, 1] + self.bias

    def hop_products(self, hops: HopRows) -> Tensor:
        """Return b·hˡ + c, (B, K+1)."""
        return hops.products(self.hop_vector[None])[:, :, 0] + self.bias


class Gate(Attention):
    """SAGN: each hop against hop 0."""

    def scores(self, hops: HopRows, stationary: Tensor | None) -> Tensor:
        """Return δ(a·h⁰ + b·hˡ + c)."""
        a, b = self.both_products(hops)
        return self.activation(a[:, :1] + b)


class Smoothing(Attention):
    """Each hop against the state that infinitely many hops would lead to."""

    needs_stationary = True
    like = "features"

    def scores(self, hops: HopRows, stationary: Tensor | None) -> Tensor:
        """Return δ(a·X^(∞) + b·hˡ + c)."""
        if stationary is None:
            raise ShapeError(
                "Smoothing attention was given no stationary state.\n"
                "It needs X^(∞), one row a node: ask for it when propagating, and pass its rows along."
            )
        return self.activation((stationary @ self.reference_vector)[:, None] + self.hop_products(hops))


class Recursive(Attention):
    """Each hop against what the hops before it add up to."""

    def __init__(self, settings: Settings, *, hops: int, width: int, features: int) -> None:
        super().__init__(settings, hops=hops, width=width, features=features)
        self.history_dropout = Dropout(settings.attention_dropout)

    def scores(self, hops: HopRows, stationary: Tensor | None) -> Tensor:
        """Return sˡ by recursion over l, on scalars."""
        a, b = self.both_products(hops)
        scores = self.activation(a[:, :1] + b[:, :1])
        drop = self.history_dropout.mask((self.hops, *a.shape), a)
        for hop in range(1, self.hops):
            weights = torch.softmax(scores, dim=1)
            if drop is not None:
                weights = weights * drop[hop, :, :hop]
            reference = (weights * a[:, :hop]).sum(dim=1, keepdim=True)
            scores = torch.cat([scores, self.activation(reference + b[:, hop : hop + 1])], dim=1)
        return scores


class JumpingKnowledge(Attention):
    """Each hop against what a net of its own makes of all hops, of hops 1 … K, or against less (the ablation)."""

    residual_bias = False
    like: Literal["hop", "features", "hidden"] = "hidden"
    reads = (*Attention.reads, "jk_layers", "jk_reference")

    def __init__(self, settings: Settings, *, hops: int, width: int, features: int) -> None:
        self.kind = settings.jk_reference
        netted = {"hops": hops, "steps": hops - 1}.get(self.kind, 0)  # how many hops the net reads
        if not netted:
            self.like = "hop"
        super().__init__(settings, hops=hops, width=width, features=features)
        inner = partial(Head, settings, out=settings.hidden, layers=settings.jk_layers, inner=True)
        self.net = inner(features=netted * width) if netted else None

    def scores(self, hops: HopRows, stationary: Tensor | None) -> Tensor:
        """Return δ(a·r + b·hˡ + c), r = MLP(h⁰ ‖ … ‖ hᴷ)."""
        return self.activation(self.reference_products(hops) + self.hop_products(hops))

    def reference_products(self, hops: HopRows) -> Tensor:
        """Return a·r, (B, 1)."""
        if self.net is not None:
            first = self.net.weights[0]
            if self.kind == "steps":  # the paper leaves hop 0 out
                first = torch.cat([first.new_zeros(self.width, first.shape[1]), first])
            return (self.net.after_first(hops.project(first)) @ self.reference_vector)[:, None]
        if self.kind == "none":
            return hops.y.new_zeros(hops.y.shape[0], 1)
        if self.kind == "features":
            return hops.products(self.reference_vector[None])[:, :1, 0]
        count = torch.arange(1, self.width + 1, dtype=hops.y.dtype, device=hops.y.device)
        angle = 1e4 * hops.products(torch.cos(count)[None]).detach()[:, 0]  # (B, 1): a node's noise is its own
        return (torch.sin(angle * count) @ self.reference_vector)[:, None]
