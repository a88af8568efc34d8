"""Each hop's own net in front of the combiner, and the hops as a combiner sees them.

    layers 0    hˡ = xˡ                                               the paper's equations, on the features themselves
    layers 1    hˡ = dropout(PReLU(norm(xˡ W₁ˡ + b₁ˡ)))               one layer a hop, as in SIGN
    layers 2    hˡ = yˡ W₂ˡ + b₂ˡ,   yˡ = the line above              the published networks

A combiner never needs hˡ itself, only products with vectors, weighted sums and products of all hops side by side with
a matrix. All of these pass through the second linear layer, so it is applied to the result, not to each hop:

    a·hˡ = yˡ·(W₂ˡ a) + a·b₂ˡ            K+1 products with a vector instead of a matrix
    Σ_l wˡ hˡ = [w⁰y⁰ ‖ … ‖ wᴷyᴷ] W₂ + w b₂        one (B, (K+1)·H) × ((K+1)·H, H) product instead of K+1 and a sum
    [h⁰ ‖ … ‖ hᴷ] M = [y⁰ ‖ … ‖ yᴷ] (W₂ˡ Mˡ)_l + Σ_l b₂ˡ Mˡ     one large product instead of two
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gamlp.model.cpu import fused, runs_on
from gamlp.model.dropout import Dropout
from gamlp.model.layers import BatchNorm, activate, new_slope, new_weight, product
from gamlp.settings import Settings


class HopRows:
    """h⁰ … hᴷ of B nodes, given as y (B, K+1, H): here hˡ = yˡ."""

    def __init__(self, y: Tensor) -> None:
        self.y = y

    def products(self, vectors: Tensor) -> Tensor:
        """Return v·hˡ for each vector v.  vectors (V, H) → (B, K+1, V)."""
        return self.y @ vectors.T

    def weighted(self, weights: Tensor) -> Tensor:
        """Return Σ_l wˡ hˡ.  weights (B, K+1) → (B, H)."""
        return torch.bmm(weights[:, None], self.y)[:, 0]

    def side_by_side(self) -> Tensor:
        """Return [h⁰ ‖ … ‖ hᴷ], (B, (K+1)·H)."""
        return self.y.flatten(1)

    def project(self, matrix: Tensor) -> Tensor:
        """Return [h⁰ ‖ … ‖ hᴷ] M.  matrix ((K+1)·H, O) → (B, O)."""
        return product(self.side_by_side(), matrix)


class LinearHopRows(HopRows):
    """h⁰ … hᴷ as hˡ = yˡ Wˡ + bˡ, which are not computed one by one.  weight (K+1, H, H'), bias (K+1, H')."""

    def __init__(self, y: Tensor, weight: Tensor, bias: Tensor) -> None:
        super().__init__(y)
        self.weight, self.bias = weight, bias

    def products(self, vectors: Tensor) -> Tensor:
        """Return v·hˡ for each vector v."""
        through = self.weight @ vectors.T  # (K+1, H, V)
        fast = runs_on(self.y)
        products = fused.hop_products(self.y, through.transpose(1, 2)) if fast else hop_linear(self.y, through)
        return products + self.bias @ vectors.T

    def weighted(self, weights: Tensor) -> Tensor:
        """Return Σ_l wˡ hˡ."""
        if runs_on(self.y):
            return fused.hop_sum(self.y, weights, self.weight) + weights @ self.bias
        scaled = (self.y * weights[:, :, None]).flatten(1)
        return torch.addmm(weights @ self.bias, scaled, self.weight.flatten(0, 1))

    def side_by_side(self) -> Tensor:
        """Return [h⁰ ‖ … ‖ hᴷ]."""
        return (hop_linear(self.y, self.weight) + self.bias).flatten(1)

    def project(self, matrix: Tensor) -> Tensor:
        """Return [h⁰ ‖ … ‖ hᴷ] M."""
        blocks = matrix.view(len(self.weight), -1, matrix.shape[1])  # (K+1, H', O)
        through = (self.weight @ blocks).flatten(0, 1)
        return product(self.y.flatten(1), through) + self.bias.flatten() @ matrix


class HopNets(nn.Module):
    """The nets of all hops, of settings.hop_layers layers: linear, batch norm, PReLU (one slope a hop) and dropout."""

    def __init__(self, settings: Settings, *, hops: int, features: int) -> None:
        super().__init__()
        self.layers = settings.hop_layers
        self.width = width = settings.hidden if self.layers else features
        if self.layers >= 1:
            self.weight, self.bias = new_weight(hops, features, width), nn.Parameter(torch.zeros(hops, width))
            self.norm = BatchNorm(hops * width) if settings.batch_norm else None
            self.slope, self.dropout = new_slope(hops), Dropout(settings.dropout)
        if self.layers == 2:
            self.second_weight = new_weight(hops, width, width)
            self.second_bias = nn.Parameter(torch.zeros(hops, width))

    def forward(self, hops: Tensor) -> HopRows:
        """Return the rows a combiner works on.  hops (B, K+1, F)."""
        if self.layers == 0:
            return HopRows(hops)
        linear = fused.hop_linear if runs_on(hops) else hop_linear
        x, bias = linear(hops, self.weight), self.bias.flatten()
        y = activate(x.flatten(1), bias=bias, norm=self.norm, slope=self.slope, dropout=self.dropout).view_as(x)
        return HopRows(y) if self.layers == 1 else LinearHopRows(y, self.second_weight, self.second_bias)


def hop_linear(x: Tensor, weight: Tensor) -> Tensor:
    """Return xˡ Wˡ.  x (B, K+1, F), weight (K+1, F, H) → (B, K+1, H)."""
    return torch.einsum("blf,lfh->blh", x, weight)
