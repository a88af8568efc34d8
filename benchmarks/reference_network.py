"""The published network written down as it is read: torch modules, and the paper's loops over hops.

Nothing here is shared with `gamlp.model`, nor made quick on purpose: `train_step.py` is compared with it, and the
tests check logits and gradients against it. Recursive and JK attention, with or without residual, batch norm on.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gamlp.settings import Settings


class HopNet(nn.Module):
    """F → hidden → hidden: linear, batch norm, PReLU, dropout, linear."""

    def __init__(self, features: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.prelu = nn.PReLU()
        self.dropout = nn.Dropout(dropout)
        self.second = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Transform one hop."""
        return self.second(self.dropout(self.prelu(self.norm(self.first(x)))))


class ReferenceHead(nn.Module):
    """Layers without bias, each with batch norm; initial residual and identity skips."""

    def __init__(self, settings: Settings, *, features: int, out: int, layers: int, inner: bool = False) -> None:
        super().__init__()
        hidden = settings.hidden
        widths = [features] + [hidden] * (layers - 1) + [out]
        self.linears = nn.ModuleList(nn.Linear(i, o, bias=False) for i, o in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(o) for o in widths[1:])
        self.prelu = nn.PReLU()
        self.dropout = nn.Dropout(settings.dropout)
        self.alpha = settings.initial_residual
        self.inner = inner
        self.skips_first = features == hidden and not inner

    def forward(self, x: Tensor) -> Tensor:
        """Apply all layers (at least two)."""
        first = self.norms[0](self.linears[0](x))
        if self.skips_first:
            first = first + x
        x = first
        last = len(self.linears) - 1
        for layer in range(1, last + 1):
            x = self.dropout(self.prelu(x))
            support = x if layer == last else (1 - self.alpha) * x + self.alpha * first
            out = self.norms[layer](self.linears[layer](support))
            x = out + x if layer < last or self.inner else out
        return self.dropout(self.prelu(x)) if self.inner else x


class ReferenceNetwork(nn.Module):
    """The whole network; forward(hops (B, K+1, F), labels (B, C)) → logits (B, C)."""

    def __init__(self, settings: Settings, *, features: int, classes: int) -> None:
        super().__init__()
        s, hidden = settings, settings.hidden
        self.settings = settings
        self.input_dropout = nn.Dropout(s.input_dropout)
        self.attention_dropout = nn.Dropout(s.attention_dropout)
        self.dropout = nn.Dropout(s.dropout)
        self.hop_nets = nn.ModuleList(HopNet(features, hidden, s.dropout) for _ in range(s.hops + 1))
        self.score = nn.Linear(2 * hidden, 1)
        self.residual = nn.Linear(features, hidden, bias=s.combiner != "jk")
        self.prelu = nn.PReLU()
        self.head = ReferenceHead(s, features=hidden, out=classes, layers=s.head_layers)
        if s.combiner == "jk":
            wide = (s.hops + 1) * hidden
            self.jk = ReferenceHead(s, features=wide, out=hidden, layers=s.jk_layers, inner=True)
        label_widths = [classes] + [hidden] * (s.label_layers - 1) + [classes]
        self.label_linears = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(label_widths))
        self.label_norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(s.label_layers - 1))
        self.label_prelu = nn.PReLU()

    def forward(self, hops: Tensor, labels: Tensor) -> Tensor:
        """Classify."""
        features = [self.input_dropout(hops[:, hop].contiguous()) for hop in range(hops.shape[1])]
        rows = [net(x) for net, x in zip(self.hop_nets, features, strict=True)]
        weights = torch.softmax(self.jk_scores(rows) if self.settings.combiner == "jk" else self.recursive(rows), dim=1)
        combined = self.weighted(rows, weights)
        if self.settings.residual:
            combined = self.dropout(self.prelu(combined + self.residual(features[0])))
        return self.head(combined) + self.label_branch(labels)

    def weighted(self, rows: list[Tensor], weights: Tensor) -> Tensor:
        """Add the rows up, hop by hop."""
        total = rows[0] * self.attention_dropout(weights[:, :1])
        for hop in range(1, len(rows)):
            total = total + rows[hop] * self.attention_dropout(weights[:, hop : hop + 1])
        return total

    def one_score(self, reference: Tensor, row: Tensor) -> Tensor:
        """Score one hop against a reference."""
        return functional.leaky_relu(self.score(torch.cat([reference, row], dim=1)), 0.2)

    def recursive(self, rows: list[Tensor]) -> Tensor:
        """Score each hop against what the hops before it add up to."""
        scores = [self.one_score(rows[0], rows[0])]
        for hop in range(1, len(rows)):
            weights = torch.softmax(torch.cat(scores, dim=1), dim=1)
            scores.append(self.one_score(self.weighted(rows[:hop], weights), rows[hop]))
        return torch.cat(scores, dim=1)

    def jk_scores(self, rows: list[Tensor]) -> Tensor:
        """Score each hop against what a net makes of all."""
        reference = self.jk(torch.cat(rows, dim=1))
        return torch.cat([self.one_score(reference, row) for row in rows], dim=1)

    def label_branch(self, labels: Tensor) -> Tensor:
        """Transform the propagated labels."""
        x = labels
        for linear, norm in zip(self.label_linears, self.label_norms, strict=False):
            x = self.dropout(self.label_prelu(norm(linear(x))))
        return self.label_linears[-1](x)


def parameter_pairs(reference: ReferenceNetwork, network: Any) -> list[tuple[Tensor, Tensor]]:
    """Return each of the reference's parameters with the place in the network's that holds the same numbers."""
    ours, pairs = dict(network.named_parameters()), []
    for hop, net in enumerate(reference.hop_nets):
        hidden = net.first.out_features
        columns = slice(hop * hidden, (hop + 1) * hidden)
        pairs += [
            (net.first.weight, ours["hop_nets.weight"][hop].T),
            (net.first.bias, ours["hop_nets.bias"][hop]),
            (net.norm.weight, ours["hop_nets.norm.weight"][columns]),
            (net.norm.bias, ours["hop_nets.norm.bias"][columns]),
            (net.prelu.weight, ours["hop_nets.slope"][hop : hop + 1]),
            (net.second.weight, ours["hop_nets.second_weight"][hop].T),
            (net.second.bias, ours["hop_nets.second_bias"][hop]),
        ]
    hidden = reference.settings.hidden
    pairs += [
        (reference.score.weight[0, :hidden], ours["combiner.reference_vector"]),
        (reference.score.weight[0, hidden:], ours["combiner.hop_vector"]),
        (reference.score.bias, ours["combiner.bias"]),
    ]
    if reference.settings.residual:
        pairs += [
            (reference.residual.weight, ours["residual.weight"].T),
            (reference.prelu.weight, ours["residual.slope"]),
        ]
        if reference.residual.bias is not None:
            pairs += [(reference.residual.bias, ours["residual.bias"])]
    pairs += _head_pairs(reference.head, ours, "head")
    if reference.settings.combiner == "jk":
        pairs += _head_pairs(reference.jk, ours, "combiner.net")
    for layer, linear in enumerate(reference.label_linears):
        pairs += [
            (linear.weight, ours[f"label_branch.weights.{layer}"].T),
            (linear.bias, ours[f"label_branch.biases.{layer}"]),
        ]
    for layer, norm in enumerate(reference.label_norms):
        name = f"label_branch.norms.{layer}"
        pairs += [(norm.weight, ours[f"{name}.weight"]), (norm.bias, ours[f"{name}.bias"])]
    return [*pairs, (reference.label_prelu.weight, ours["label_branch.slope"])]


def _head_pairs(head: ReferenceHead, ours: dict[str, Tensor], name: str) -> list[tuple[Tensor, Tensor]]:
    pairs = [(head.prelu.weight, ours[f"{name}.slope"])]
    for layer, (linear, norm) in enumerate(zip(head.linears, head.norms, strict=True)):
        pairs += [
            (linear.weight, ours[f"{name}.weights.{layer}"].T),
            (norm.weight, ours[f"{name}.norms.{layer}.weight"]),
            (norm.bias, ours[f"{name}.norms.{layer}.bias"]),
        ]
    return pairs
