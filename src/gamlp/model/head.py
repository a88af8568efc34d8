"""The head: a deep MLP whose layers keep sight of their input and of the first layer; and the label branch beside it.

    u⁰ = norm(x W⁰) + x                                                   (+ x only where F' = H)
    xˡ = dropout(PReLU(uˡ⁻¹)),   uˡ = norm(((1−α)xˡ + α u⁰) Wˡ) + xˡ       l = 1 … L−2
    logits = norm(xᴸ⁻¹ Wᴸ⁻¹)

This is the published networks' form, GCNII's initial residual (head_residual = "first"). The paper writes another,
with the features in every layer (head_residual = "features", `FeatureHead`):

    H⁰ = x,   Hˡ = PReLU(norm(Hˡ⁻¹ Wˡ) + X⁰ R),   l = 1 … L               logits = Hᴸ

where R maps the features to the width of the layer, one matrix for each width that is not theirs. Between layers there
is dropout. In both, one PReLU slope serves all layers, and without batch norm each layer has a bias instead; one layer
of the first is a linear classifier.

An `inner` head has no logits: its last layer adds its input back too and ends in PReLU and dropout. The reference of
JK attention is one.

The label branch is what the propagated labels of a node add to its logits, C → hidden → … → C: linear with bias, batch
norm, PReLU (one slope), dropout; the last layer is linear alone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from gamlp.model.dropout import Dropout
from gamlp.model.layers import BatchNorm, activate, new_slope, new_weight, product
from gamlp.settings import Settings


class Head(nn.Module):
    """F' → hidden → … → out, in `layers` layers."""

    def __init__(self, settings: Settings, *, features: int, out: int, layers: int, inner: bool = False) -> None:
        super().__init__()
        widths = [features] + [settings.hidden] * (layers - 1) + [out]
        self.layers, self.inner, self.share = layers, inner, settings.initial_residual
        self.weights = nn.ParameterList(new_weight(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(BatchNorm(width) for width in widths[1:] if settings.batch_norm)
        self.biases = nn.ParameterList(torch.zeros(width) for width in widths[1:] if not settings.batch_norm)
        activations = layers if inner else layers - 1
        self.slope = new_slope() if activations else None
        self.dropouts = nn.ModuleList(Dropout(settings.dropout) for _ in range(activations))
        self.skips_first = features == widths[1] and layers > 1 and not inner

    def forward(self, x: Tensor, first_hop: Tensor) -> Tensor:
        """Return logits; hop 0 is not read.  x (B, F') → (B, out)."""
        return self.after_first(product(x, self.weights[0]), skip=x if self.skips_first else None)

    def after_first(self, x: Tensor, *, skip: Tensor | None = None) -> Tensor:
        """Go on from the first matrix product, which a caller may have computed in its own way."""
        first = self._layer(0, x, skip=skip)
        if self.layers == 1:
            return self._activated(0, first) if self.inner else first
        x = self._between(first)
        last = product(x, self.weights[-1])
        return self._layer(self.layers - 1, last, skip=x if self.inner else None, activated=self.inner)

    def hidden(self, x: Tensor, first_hop: Tensor) -> Tensor:
        """Return what the last layer reads.  x (B, F') → (B, hidden), or x itself where there is one layer."""
        if self.layers == 1:
            return x
        return self._between(self._layer(0, product(x, self.weights[0]), skip=x if self.skips_first else None))

    def _between(self, first: Tensor) -> Tensor:
        """Go from u⁰ to xᴸ⁻¹."""
        x = self._activated(0, first)
        for layer in range(1, self.layers - 1):
            mixed = torch.lerp(x, first, self.share)
            x = self._layer(layer, product(mixed, self.weights[layer]), skip=x, activated=True)
        return x

    def _layer(self, layer: int, x: Tensor, *, skip: Tensor | None, activated: bool = False) -> Tensor:
        """Return norm(x) + skip, and that through PReLU and dropout where asked for."""
        bias, norm = self.biases[layer] if len(self.biases) else None, _at(layer, self.norms)
        slope, dropout = (self.slope, _at(layer, self.dropouts)) if activated else (None, None)
        return activate(x, bias=bias, norm=norm, skip=skip, slope=slope, dropout=dropout)

    def _activated(self, layer: int, x: Tensor) -> Tensor:
        return activate(x, slope=self.slope, dropout=_at(layer, self.dropouts))


class FeatureHead(Head):
    """F' → hidden → … → out, with hop 0 added in every layer."""

    def __init__(self, settings: Settings, *, features: int, out: int, layers: int, first_hop: int) -> None:
        super().__init__(settings, features=features, out=out, layers=layers)
        self.slope = new_slope()
        mapped = dict.fromkeys(weight.shape[1] for weight in self.weights if weight.shape[1] != first_hop)
        self.maps = nn.ParameterDict({str(width): new_weight(first_hop, width) for width in mapped})

    def forward(self, x: Tensor, first_hop: Tensor) -> Tensor:
        """Return logits.  x (B, F'), first_hop (B, F) → (B, out)."""
        return self._through(x, first_hop, self.layers)

    def hidden(self, x: Tensor, first_hop: Tensor) -> Tensor:
        """Return what the last layer reads."""
        return self._through(x, first_hop, self.layers - 1)

    def _through(self, x: Tensor, first_hop: Tensor, layers: int) -> Tensor:
        """Return what the first so many layers make of x."""
        added = {width: product(first_hop, matrix) for width, matrix in self.maps.items()}
        for layer, weight in enumerate(self.weights[:layers]):
            skip = added.get(str(weight.shape[1]), first_hop)
            x = self._layer(layer, product(x, weight), skip=skip, activated=True)
        return x


def new_head(settings: Settings, *, width: int, features: int, out: int) -> Head:
    """Return the head that the settings ask for, of rows of that width and hops of so many features."""
    layers = settings.head_layers
    if settings.head_residual == "features":
        return FeatureHead(settings, features=width, out=out, layers=layers, first_hop=features)
    return Head(settings, features=width, out=out, layers=layers)


class LabelBranch(nn.Module):
    """MLP of the propagated labels."""

    def __init__(self, settings: Settings, *, classes: int) -> None:
        super().__init__()
        between = settings.label_layers - 1
        widths = [classes] + [settings.hidden] * between + [classes]
        self.weights = nn.ParameterList(new_weight(*pair) for pair in pairwise(widths))
        self.biases = nn.ParameterList(torch.zeros(width) for width in widths[1:])
        self.norms = nn.ModuleList(BatchNorm(settings.hidden) for _ in range(between if settings.batch_norm else 0))
        self.dropouts = nn.ModuleList(Dropout(settings.dropout) for _ in range(between))
        self.slope = new_slope() if between else None

    def forward(self, labels: Tensor) -> Tensor:
        """Return what is added to the logits.  labels (B, C) → (B, C)."""
        x = labels
        for layer in range(len(self.dropouts)):
            norm, dropout = _at(layer, self.norms), _at(layer, self.dropouts)
            x = product(x, self.weights[layer])
            x = activate(x, bias=self.biases[layer], norm=norm, slope=self.slope, dropout=dropout)
        return activate(product(x, self.weights[-1]), bias=self.biases[-1])


def _at(layer: int, modules: nn.ModuleList) -> Any:
    """Return the norm or dropout of a layer, None where it has none."""
    return modules[layer] if layer < len(modules) else None
