"""The shallow networks. Each reads a View and returns logits (n, C); `entry` is the layer that reads the features.

    GCN        Hˡ⁺¹ = relu(Â Hˡ Wˡ)                                Kipf and Welling 2017
    GAT        Hˡ⁺¹ᵢ = elu(Σ_j αᵢⱼ Hˡⱼ Wˡ), heads side by side      Veličković et al. 2018
    Neighbour  Hˡ⁺¹ = relu(Â Hˡ Wˡ + Hˡ Uˡ)                        GraphSAGE 2017, Cluster-GCN 2019, GraphSAINT 2020
    APPNP      Z⁰ = MLP(X), Zᵏ⁺¹ = (1−a) Â Zᵏ + a Z⁰               Gasteiger et al. 2019
    UniMP      transformer attention over features + label embeddings, a gate to the node itself   Shi et al. 2021

A product with W comes before the product with Â: that is hidden instead of F columns a message, O(E·hidden).
The layers are PyG's; the stacks of them (`torch_geometric.nn.models`) are ours, because their first layer must be
`InputLinear`, which reads sparse features and drops single entries of them.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from gamlp.message_passing.dropout import drop
from gamlp.message_passing.features import Features, InputLinear, csr_tensor
from gamlp.message_passing.pyg import layers
from gamlp.message_passing.settings import Options
from gamlp.message_passing.views import Sizes, View


class GCN(nn.Module):
    """Graph convolutions, one after another."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        widths = [sizes.features, *[options.hidden] * (options.layers - 1), sizes.classes]
        self.convolutions = nn.ModuleList(convolution(*pair) for pair in pairwise(widths))
        self.convolutions[0].lin = nn.Identity()
        self.entry = InputLinear(widths[0], widths[1], dropout=options.dropout, bias=False)
        self.dropout = options.dropout

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        hidden = self.convolutions[0](self.entry(view.features), view.adjacency)
        for convolve in self.convolutions[1:]:
            hidden = convolve(drop(hidden.relu(), self.dropout, training=self.training), view.adjacency)
        return hidden  # type: ignore[no-any-return]


class GAT(nn.Module):
    """Attention over the neighbours; the last layer has one head."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        wide = options.heads * options.hidden
        inputs = [sizes.features, *[wide] * (options.layers - 1)]
        outputs = [*[(options.hidden, options.heads)] * (options.layers - 1), (sizes.classes, 1)]
        self.attentions = nn.ModuleList(
            layers.GATConv(width, out, heads, dropout=options.edge_dropout, add_self_loops=False)
            for width, (out, heads) in zip(inputs, outputs, strict=True)
        )
        self.attentions[0].lin = nn.Identity()
        self.entry = InputLinear(inputs[0], outputs[0][0] * outputs[0][1], dropout=options.dropout, bias=False)
        self.dropout = options.dropout

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        hidden = self.attentions[0](self.entry(view.features), view.edges)
        for attend in self.attentions[1:]:
            hidden = attend(drop(functional.elu(hidden), self.dropout, training=self.training), view.edges)
        return hidden  # type: ignore[no-any-return]


class Neighbour(nn.Module):
    """One map for the (weighted) mean of the neighbours and one for the node itself, added."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        widths = [*[options.hidden] * (options.layers - 1), sizes.classes]
        self.entry = InputLinear(
            sizes.features, 2 * widths[0], dropout=options.dropout
        )  # both maps of the first layer side by side
        self.receive = layers.LGConv(normalize=False)
        self.convolutions = nn.ModuleList(layers.GraphConv(*pair) for pair in pairwise(widths))
        self.dropout = options.dropout

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        near, own = self.entry(view.features).chunk(2, dim=1)
        hidden = self.receive(near, view.adjacency) + own
        for convolve in self.convolutions:
            hidden = convolve(drop(hidden.relu(), self.dropout, training=self.training), view.adjacency)
        return hidden  # type: ignore[no-any-return]


class Perceptron(nn.Module):
    """The MLP in front of APPNP and DAGNN: F → hidden → … → C."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        widths = [*[options.hidden] * (options.layers - 1), sizes.classes]
        self.entry = InputLinear(sizes.features, widths[0], dropout=options.dropout)
        self.linears = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.dropout = options.dropout

    def forward(self, features: Features) -> torch.Tensor:
        """(n, F) → (n, C)."""
        hidden = self.entry(features)
        for linear in self.linears:
            hidden = linear(drop(hidden.relu(), self.dropout, training=self.training))
        return hidden  # type: ignore[no-any-return]


class APPNP(nn.Module):
    """Predict first, then spread the predictions by personalised PageRank.

    The iteration is ours: PyG's own drops from what the iteration before has left, so that after ten with
    edge_dropout = 0.5 one entry in a thousand remains and nothing is learned.
    """

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        self.predict = Perceptron(sizes, options)
        self.step = layers.LGConv(normalize=False)
        self.iterations, self.teleport, self.edge_dropout = options.iterations, options.teleport, options.edge_dropout

    @property
    def entry(self) -> nn.Module:
        """The layer that reads the features."""
        return self.predict.entry

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        predicted = self.predict(view.features)
        spread = predicted
        for _ in range(self.iterations):
            adjacency = thinned(view.adjacency, self.edge_dropout) if self.training else view.adjacency
            spread = (1 - self.teleport) * self.step(spread, adjacency) + self.teleport * predicted
        return spread  # type: ignore[no-any-return]


class UniMP(nn.Module):
    """Features and given labels in one space, then gated transformer attention."""

    def __init__(self, sizes: Sizes, options: Options) -> None:
        super().__init__()
        wide = options.heads * options.hidden
        self.entry = InputLinear(sizes.features, wide, dropout=options.dropout)
        self.label = nn.Embedding(sizes.classes + 1, wide, padding_idx=0)  # row 0: no label given, stays zero
        outputs = [(options.hidden, True)] * (options.layers - 1) + [(sizes.classes, False)]
        self.attentions = nn.ModuleList(
            layers.TransformerConv(wide, out, options.heads, concat, beta=True, dropout=options.edge_dropout)
            for out, concat in outputs
        )
        self.norms = nn.ModuleList(nn.LayerNorm(wide) for _ in outputs[:-1])
        self.dropout = options.dropout

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        hidden = self.entry(view.features) + self.label(view.given + 1)
        for attend, norm in zip(self.attentions, self.norms, strict=False):
            hidden = drop(norm(attend(hidden, view.edges)).relu(), self.dropout, training=self.training)
        return self.attentions[-1](hidden, view.edges)  # type: ignore[no-any-return]


def convolution(inputs: int, outputs: int) -> nn.Module:
    """Return a graph convolution that takes Â as it is."""
    return layers.GCNConv(inputs, outputs, normalize=False)  # type: ignore[no-any-return]


def thinned(adjacency: torch.Tensor, share: float) -> torch.Tensor:
    """Drop a share of the entries and scale up the others."""
    values = drop(adjacency.values(), share, training=True)
    size = (adjacency.shape[0], adjacency.shape[1])
    return csr_tensor(adjacency.crow_indices(), adjacency.col_indices(), values, size=size)
