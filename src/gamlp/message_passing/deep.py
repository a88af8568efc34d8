"""The deep networks. Each reads a View and returns logits (n, C); `entry` is the layer that reads the features.

    JKNet      Hˡ as in GCN; logits Â [H¹ ‖ … ‖ Hᴸ⁻¹] W, or of their maximum  Xu et al. 2018
    ResGCN     Hˡ⁺¹ = Hˡ + relu(Â Hˡ Wˡ); logits Â Hᴸ⁻¹ W                    Kipf and Welling 2017; Li et al. 2019
    DeeperGCN  Hˡ⁺¹ = Hˡ + GEN(dropout(relu(norm(Hˡ)))), softmax aggregation  Li et al. 2020
    DAGNN      Z = MLP(X); logits Σ_k σ(s·ÂᵏZ) ÂᵏZ                            Liu et al. 2020

`layers` counts the convolutions, in JKNet and ResGCN (at least two) the one that gives the logits too; DeeperGCN has a
linear layer after them. The layers are PyG's; why the stacks are ours: see `networks`.
"""

from __future__ import annotations

import torch
from torch import nn

from gamlp.message_passing.dropout import drop
from gamlp.message_passing.features import InputLinear
from gamlp.message_passing.networks import Perceptron, convolution
from gamlp.message_passing.pyg import layers
from gamlp.message_passing.settings import Options
from gamlp.message_passing.views import Sizes, View


class Tower(nn.Module):
    """The graph convolutions of one width before the last: what JKNet and ResGCN share."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        inputs = [sizes.features, *[options.hidden] * (options.layers - 2)]
        self.convolutions = nn.ModuleList(convolution(width, options.hidden) for width in inputs)
        self.convolutions[0].lin = nn.Identity()
        self.entry = InputLinear(sizes.features, options.hidden, dropout=options.dropout, bias=False)
        self.dropout = options.dropout

    def first(self, view: View) -> torch.Tensor:
        """Return H¹."""
        return self.convolutions[0](self.entry(view.features), view.adjacency).relu()  # type: ignore[no-any-return]

    def next(self, number: int, hidden: torch.Tensor, view: View) -> torch.Tensor:
        """Apply one more convolution, with dropout before and relu after."""
        inputs = drop(hidden, self.dropout, training=self.training)
        return self.convolutions[number](inputs, view.adjacency).relu()  # type: ignore[no-any-return]


class JKNet(Tower):
    """Every layer's output reaches the logits."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__(sizes, options)
        self.jump = layers.JumpingKnowledge(options.jumping)
        joined = options.hidden * (len(self.convolutions) if options.jumping == "cat" else 1)
        self.last = convolution(joined, sizes.classes)

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        outputs = [self.first(view)]
        for number in range(1, len(self.convolutions)):
            outputs.append(self.next(number, outputs[-1], view))
        joined = drop(self.jump(outputs), self.dropout, training=self.training)
        return self.last(joined, view.adjacency)  # type: ignore[no-any-return]


class ResGCN(Tower):
    """Every layer but the first adds to what it was given."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__(sizes, options)
        self.last = convolution(options.hidden, sizes.classes)

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        hidden = self.first(view)
        for number in range(1, len(self.convolutions)):
            hidden = hidden + self.next(number, hidden, view)
        hidden = drop(hidden, self.dropout, training=self.training)
        return self.last(hidden, view.adjacency)  # type: ignore[no-any-return]


class DeeperGCN(nn.Module):
    """Pre-activation residual blocks around a generalised aggregation."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        width = options.hidden
        self.entry = InputLinear(sizes.features, width, dropout=options.dropout)
        self.blocks = nn.ModuleList(
            layers.DeepGCNLayer(
                layers.GENConv(width, width, aggr="softmax", learn_t=True, norm="layer"),
                nn.LayerNorm(width),
                nn.ReLU(),
                block="res+",
                dropout=options.dropout,
            )
            for _ in range(options.layers)
        )
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, sizes.classes)
        self.dropout = options.dropout

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        hidden = self.entry(view.features)
        for block in self.blocks:
            hidden = block(hidden, view.edges)
        hidden = drop(self.norm(hidden).relu(), self.dropout, training=self.training)
        return self.last(hidden)  # type: ignore[no-any-return]


class DAGNN(nn.Module):
    """Predict first; each node then chooses how far it looks."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        self.predict = Perceptron(sizes, options)
        self.step = layers.LGConv(normalize=False)
        self.score = nn.Linear(sizes.classes, 1)
        self.iterations = options.iterations

    @property
    def entry(self) -> nn.Module:
        """The layer that reads the features."""
        return self.predict.entry

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        hops = [self.predict(view.features)]
        for _ in range(self.iterations):
            hops.append(self.step(hops[-1], view.adjacency))
        stacked = torch.stack(hops, dim=1)  # (n, K+1, C)
        gates: torch.Tensor = self.score(stacked).sigmoid()  # (n, K+1, 1)
        return (gates * stacked).sum(dim=1)
