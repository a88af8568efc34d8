"""The whole network: hops (and propagated labels) of a batch of nodes → logits and hop weights.

    hops (B, K+1, F) ─ dropout ─ hop nets ─ combiner ─ (+ residual) ─ dropout ─ head ─ + label branch ─ logits (B, C)

Where the weights of the hops are fixed they may come added up already, (B, 1, F) (`combiners.shares_beforehand`).
The residual is dropout(PReLU(z + x⁰ R)), a linear map of hop 0 to whatever width the combiner gives. Without it, the
combined row z goes to the head as it is. A node's logits depend on its own row alone (in evaluation).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from gamlp.errors import ShapeError
from gamlp.model.combiners import shares_beforehand
from gamlp.model.dropout import Dropout, set_keys
from gamlp.model.head import LabelBranch, new_head
from gamlp.model.hop_nets import HopNets
from gamlp.model.layers import activate, new_slope, new_weight, product
from gamlp.model.mixer import SubsetMixer
from gamlp.model.registry import combiner_named
from gamlp.settings import Settings


class Output(NamedTuple):
    """Logits (B, C), and each hop's weight in each node (B, K+1)."""

    logits: Tensor
    weights: Tensor


def build_network(settings: Settings, *, features: int, classes: int, subsets: int = 0, seed: int = 0) -> Network:
    """Return a fresh network, on the CPU; the same seed gives the same bits, and torch's own seed is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return Network(settings, features=features, classes=classes, subsets=subsets)


def count_parameters(network: nn.Module) -> int:
    """Return how many numbers are learned."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)


class Residual(nn.Module):
    """dropout(PReLU(z + x⁰ R + b))."""

    def __init__(self, settings: Settings, *, features: int, width: int, bias: bool) -> None:
        super().__init__()
        self.weight = new_weight(features, width)
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None
        self.slope = new_slope()
        self.dropout = Dropout(settings.dropout)

    def forward(self, combined: Tensor, first: Tensor) -> Tensor:
        """Add the map of hop 0 to what the combiner gave.  combined (B, H'), first (B, F) → (B, H')."""
        x = product(first, self.weight)
        return activate(x, bias=self.bias, skip=combined, slope=self.slope, dropout=self.dropout)


class Network(nn.Module):
    """See the module's docstring; built by `build_network`."""

    def __init__(self, settings: Settings, *, features: int, classes: int, subsets: int = 0) -> None:
        super().__init__()
        self.settings, self.features, self.classes, self.subsets = settings, features, classes, subsets
        hops = settings.hops + 1
        kind = combiner_named(settings.combiner)
        self.hops_used = kind.hops_used(hops)
        self.shares = shares_beforehand(settings)
        self.mixer = SubsetMixer(hops=hops, subsets=subsets, features=features) if subsets else None
        self.input_dropout = Dropout(settings.input_dropout)
        self.hop_nets = HopNets(settings, hops=self.hops_used, features=features)
        self.combiner = kind(settings, hops=hops, width=self.hop_nets.width, features=features)
        width, bias = self.combiner.width, kind.residual_bias
        self.residual = Residual(settings, features=features, width=width, bias=bias) if settings.residual else None
        self.combined_dropout = Dropout(settings.combined_dropout) if settings.combined_dropout else None
        self.head = new_head(settings, width=width, features=features, out=classes)
        self.label_branch = LabelBranch(settings, classes=classes) if settings.labels else None
        self.set_step(0, 0)

    def set_step(self, seed: int, step: int) -> None:
        """Make the dropout of the next forward pass that of this step; passes after it draw masks of their own."""
        self._seed, self._step, self._call = seed, step, 0

    def forward(self, hops: Tensor, labels: Tensor | None = None, stationary: Tensor | None = None) -> Output:
        """Classify.  hops (B, K+1, F), or (B, S, K+1, F) with subsets; labels (B, C), stationary (B, F)."""
        self._check(hops, labels)
        if self.training:
            set_keys(self, seed=self._seed, step=self._step, call=self._call)
            self._call += 1
        z, first_hop, weights = self._combine(hops, stationary)
        logits = self.head(z, first_hop)
        if self.label_branch is not None and labels is not None:
            logits = logits + self.label_branch(labels.to(logits.dtype))
        return Output(logits, weights)

    def embed(self, hops: Tensor, stationary: Tensor | None = None) -> Tensor:
        """Return what the last layer of the head reads of each node, (B, hidden); propagated labels are not in it."""
        z, first_hop, _ = self._combine(hops, stationary)
        return self.head.hidden(z, first_hop)

    def _combine(self, hops: Tensor, stationary: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the head reads, the combined row (B, H') and hop 0 (B, F), and the weights of the hops."""
        dtype = self.head.weights[0].dtype
        x = hops.to(dtype)
        if self.mixer is not None:
            x = self.mixer(x)
        if self.shares is not None and x.shape[1] == 1:
            z = x[:, 0] if self.combined_dropout is None else self.combined_dropout(x[:, 0])
            return z, x[:, 0], self.shares.to(x).expand(len(x), -1)
        x = self.input_dropout(x)
        rows = self.hop_nets(x[:, -self.hops_used :])
        z, weights = self.combiner(rows, stationary=None if stationary is None else stationary.to(dtype))
        if self.residual is not None:
            z = self.residual(z, x[:, 0])
        if self.combined_dropout is not None:
            z = self.combined_dropout(z)
        return z, x[:, 0], weights

    def _check(self, hops: Tensor, labels: Tensor | None) -> None:
        subsets = () if self.mixer is None else (self.mixer.blocks,)
        expected = (*subsets, self.settings.hops + 1, self.features)
        beforehand = self.shares is not None and tuple(hops.shape[1:]) == (1, self.features)
        if tuple(hops.shape[1:]) != expected and not beforehand:
            raise ShapeError(
                f"A row of hops is {tuple(hops.shape[1:])}, the network was built for {expected}.\n"
                "Each row is (hops + 1, features), with the relation subsets in front where there are any."
            )
        if self.label_branch is not None and labels is None:
            raise ShapeError(
                "The network has a label branch, but was given no labels.\n"
                "Pass the propagated labels, (rows, classes), or build it with labels = false."
            )
