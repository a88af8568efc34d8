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
from gamlp.model.layers import BatchNorm, activate, new_bias, new_slope, new_weight


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
        return self.side_by_side() @ matrix


class LinearHopRows(HopRows):
    """h⁰ … hᴷ as hˡ = yˡ Wˡ + bˡ, which are not computed one by one.  weight (K+1, H, H'), bias (K+1, H')."""

    def __init__(self, y: Tensor, weight: Tensor, bias: Tensor) -> None:
        super().__init__(y)
        self.weight = weight
        self.bias = bias

    def products(self, vectors: Tensor) -> Tensor:
        """Return v·hˡ for each vector v."""
        through = self.weight @ vectors.T  # (K+1, H, V)
        if runs_on(self.y):
            products = fused.hop_products(self.y, through.transpose(1, 2))
        else:
            products = torch.einsum("blh,lhv->blv", self.y, through)
        return products + self.bias @ vectors.T

    def weighted(self, weights: Tensor) -> Tensor:
        """Return Σ_l wˡ hˡ."""
        if runs_on(self.y):
            return fused.hop_sum(self.y, weights, self.weight) + weights @ self.bias
        scaled = (self.y * weights[:, :, None]).flatten(1)
        return torch.addmm(weights @ self.bias, scaled, self.weight.flatten(0, 1))

    def side_by_side(self) -> Tensor:
        """Return [h⁰ ‖ … ‖ hᴷ]."""
        return (torch.einsum("blh,lhw->blw", self.y, self.weight) + self.bias).flatten(1)

    def project(self, matrix: Tensor) -> Tensor:
        """Return [h⁰ ‖ … ‖ hᴷ] M."""
        blocks = matrix.view(len(self.weight), -1, matrix.shape[1])  # (K+1, H', O)
        through = (self.weight @ blocks).flatten(0, 1)
        return torch.addmm(self.bias.flatten() @ matrix, self.y.flatten(1), through)


class HopNets(nn.Module):
    """No net at all: the combiner works on the features."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.width = features

    def forward(self, hops: Tensor) -> HopRows:
        """Return the rows a combiner works on.  hops (B, K+1, F)."""
        return HopRows(hops)


class OneLayerNets(HopNets):
    """One linear layer a hop, batch norm, PReLU (one slope a hop) and dropout."""

    def __init__(self, features: int, *, hops: int, hidden: int, batch_norm: bool, dropout: float) -> None:
        super().__init__(hidden)
        self.weight = new_weight(hops, features, hidden)
        self.bias = new_bias(hops, hidden)
        self.norm = BatchNorm(hops * hidden) if batch_norm else None
        self.slope = new_slope(hops)
        self.dropout = Dropout(dropout)

    def hidden_rows(self, hops: Tensor) -> Tensor:
        """Return yˡ.  hops (B, K+1, F) → (B, K+1, H)."""
        fast = runs_on(hops)
        product = fused.hop_linear(hops, self.weight) if fast else torch.einsum("blf,lfh->blh", hops, self.weight)
        y = activate(
            product.flatten(1), bias=self.bias.flatten(), norm=self.norm, slope=self.slope, dropout=self.dropout
        )
        return y.view_as(product)

    def forward(self, hops: Tensor) -> HopRows:
        """Return the rows a combiner works on."""
        return HopRows(self.hidden_rows(hops))


class TwoLayerNets(OneLayerNets):
    """One layer as above and a second linear one."""

    def __init__(self, features: int, *, hops: int, hidden: int, batch_norm: bool, dropout: float) -> None:
        super().__init__(features, hops=hops, hidden=hidden, batch_norm=batch_norm, dropout=dropout)
        self.second_weight = new_weight(hops, hidden, hidden)
        self.second_bias = new_bias(hops, hidden)

    def forward(self, hops: Tensor) -> HopRows:
        """Return the rows a combiner works on."""
        return LinearHopRows(self.hidden_rows(hops), self.second_weight, self.second_bias)


def new_hop_nets(layers: int, features: int, *, hops: int, hidden: int, batch_norm: bool, dropout: float) -> HopNets:
    """Return the nets of `hops` hops with 0, 1 or 2 layers each."""
    if layers == 0:
        return HopNets(features)
    kind = OneLayerNets if layers == 1 else TwoLayerNets
    return kind(features, hops=hops, hidden=hidden, batch_norm=batch_norm, dropout=dropout)
