"""The networks. Each reads a View and returns logits (n, C); `entry` is the layer that reads the features.

    GCN        Hˡ⁺¹ = relu(Â Hˡ Wˡ)                                           Kipf and Welling 2017
    JKNet      Hˡ as in GCN; logits Â [H¹ ‖ … ‖ Hᴸ⁻¹] W, or of their maximum  Xu et al. 2018
    ResGCN     Hˡ⁺¹ = Hˡ + relu(Â Hˡ Wˡ); logits Â Hᴸ⁻¹ W                    Kipf and Welling 2017; Li et al. 2019
    Neighbour  Hˡ⁺¹ = relu(Â Hˡ Wˡ + Hˡ Uˡ)                                   GraphSAGE, Cluster-GCN, GraphSAINT
    GAT        Hˡ⁺¹ᵢ = elu(Σ_j αᵢⱼ Hˡⱼ Wˡ), heads side by side                 Veličković et al. 2018
    UniMP      attention over features + label embeddings, gated              Shi et al. 2021
    DeeperGCN  H¹ = GEN(X W), Hˡ⁺¹ = Hˡ + GEN(dropout(relu(norm(Hˡ))))         Li et al. 2020
    APPNP      Z⁰ = MLP(X), Zᵏ⁺¹ = (1−a) Â Zᵏ + a Z⁰                          Gasteiger et al. 2019
    DAGNN      Z = MLP(X); logits Σ_k σ(s·ÂᵏZ) ÂᵏZ                            Liu et al. 2020

`layers` counts the convolutions, in JKNet and ResGCN (at least two) the one that gives the logits too; DeeperGCN has a
linear layer after them. A product with W comes before the product with Â: that is hidden instead of F columns a
message, O(E·hidden). Layers with weights of their own for the edges are PyG's. Products with Â are `SparseMatrix`'s,
whose gradient is quick, and the stacks of layers (`torch_geometric.nn.models`) are ours: their first layer must be
`InputLinear`, which reads sparse features and drops single entries of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gamlp.labels.reuse import reuse_labels
from gamlp.message_passing import sampled, views
from gamlp.message_passing.edge_attention import EdgeAttention
from gamlp.message_passing.features import Features, InputLinear
from gamlp.message_passing.network import Network
from gamlp.message_passing.pyg import layers
from gamlp.message_passing.settings import Options
from gamlp.message_passing.sparse import SparseMatrix
from gamlp.message_passing.views import View

INVERSE_TEMPERATURE = 0.1  # of DeeperGCN's softmax, as published for OGB's graphs


class Convolution(nn.Module):
    """H ↦ Â H W + b."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.lin, self.bias = nn.Linear(inputs, outputs, bias=False), nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.lin.weight)

    def forward(self, hidden: torch.Tensor, adjacency: SparseMatrix) -> torch.Tensor:
        """(n, inputs), (n, n) → (n, outputs)."""
        through: torch.Tensor = self.lin(hidden)
        return adjacency @ through + self.bias


class Convolutions(Network):
    """Graph convolutions from width to width; `entry` has the weights of the first."""

    def __init__(self, widths: list[int], options: Options) -> None:
        super().__init__(options)
        self.convolutions = nn.ModuleList(Convolution(*pair) for pair in pairwise(widths))
        self.convolutions[0].lin = nn.Identity()
        self.entry = InputLinear(widths[0], widths[1], dropout=options.on_features, bias=False)

    def first(self, view: View) -> torch.Tensor:
        """Return Â X W."""
        return self.convolutions[0](self.entry(view.features), view.adjacency)  # type: ignore[no-any-return]


class GCN(Convolutions):
    """Graph convolutions, one after another."""

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__([view.features.shape[1], *[options.hidden] * (options.layers - 1), classes], options)

    def forward(self, view: View) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        hidden = self.first(view)
        for convolve in self.convolutions[1:]:
            hidden = convolve(self.drop(hidden.relu()), view.adjacency)
        return hidden


class JKNet(Convolutions):
    """Every layer's output reaches the logits."""

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__([view.features.shape[1], *[options.hidden] * max(1, options.layers - 1)], options)
        self.jump = layers.JumpingKnowledge(options.jumping)
        self.last = Convolution(options.hidden * (len(self.convolutions) if options.jumping == "cat" else 1), classes)

    def forward(self, view: View) -> Any:
        """View of n nodes → (n, C)."""
        outputs = [self.first(view).relu()]
        for convolve in self.convolutions[1:]:
            outputs.append(convolve(self.drop(outputs[-1]), view.adjacency).relu())
        return self.last(self.drop(self.jump(outputs)), view.adjacency)


class ResGCN(Convolutions):
    """Every layer but the first adds to what it was given."""

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__([view.features.shape[1], *[options.hidden] * max(1, options.layers - 1)], options)
        self.last = Convolution(options.hidden, classes)

    def forward(self, view: View) -> Any:
        """View of n nodes → (n, C)."""
        hidden = self.first(view).relu()
        for convolve in self.convolutions[1:]:
            hidden = hidden + convolve(self.drop(hidden), view.adjacency).relu()
        return self.last(self.drop(hidden), view.adjacency)


class Neighbour(Network):
    """One map for the (weighted) mean of the neighbours and one for the node itself, added."""

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__(options)
        widths = [*[options.hidden] * (options.layers - 1), classes]
        # both maps of the first layer side by side
        self.entry = InputLinear(view.features.shape[1], 2 * widths[0], dropout=options.on_features)
        self.near = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.own = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in pairwise(widths))

    def forward(self, view: View) -> Any:
        """View of n nodes → (n, C)."""
        near, own = self.entry(view.features).chunk(2, dim=1)
        hidden = view.adjacency @ near + own
        for of_near, of_own in zip(self.near, self.own, strict=True):
            hidden = self.drop(hidden.relu())
            hidden = of_near(view.adjacency @ hidden) + of_own(hidden)
        return hidden


class GraphSAGE(Neighbour):
    """The mean of sampled neighbours (Hamilton et al. 2017)."""

    normalize = views.mean
    sampler = sampled.neighbours


class ClusterGCN(Neighbour):
    """The neighbours within some clusters (Chiang et al. 2019)."""

    normalize = views.enhanced
    sampler = sampled.clustered


class GraphSAINT(Neighbour):
    """The neighbours under random walks (Zeng et al. 2020)."""

    normalize = views.mean
    sampler = sampled.walks


class GAT(Network):
    """Attention over the neighbours; the logits are the mean over the heads of the last layer."""

    normalize = views.looped

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__(options)
        inputs = [view.features.shape[1], *[options.heads * options.hidden] * (options.layers - 1)]
        outputs = [*[(options.hidden, options.heads)] * (options.layers - 1), (classes, options.output_heads)]
        self.attentions = nn.ModuleList(
            EdgeAttention(width, out, heads, dropout=options.edge_dropout)
            for width, (out, heads) in zip(inputs, outputs, strict=True)
        )
        self.attentions[0].lin = nn.Identity()
        self.entry = InputLinear(inputs[0], outputs[0][0] * outputs[0][1], dropout=options.on_features, bias=False)

    def forward(self, view: View) -> Any:
        """View of n nodes → (n, C)."""
        hidden = self.attentions[0](self.entry(view.features), view.adjacency)
        for attend in self.attentions[1:]:
            hidden = attend(self.drop(functional.elu(hidden)), view.adjacency)
        return hidden.unflatten(1, (self.options.output_heads, -1)).mean(dim=1)


class UniMP(Network):
    """Features and the embeddings of given labels added up, then gated transformer attention.

    `entry` has the maps of the first layer side by side. They are linear: a label adds the product with its embedding.
    """

    normalize = views.looped
    sampler = sampled.neighbours
    takes_labels = True

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__(options)
        features, wide = view.features.shape[1], options.heads * options.hidden
        outputs = [(options.hidden, True)] * (options.layers - 1) + [(classes, False)]
        inputs = [1] + [wide] * (options.layers - 1)
        self.attentions = nn.ModuleList(
            layers.TransformerConv(width, out, options.heads, concat, beta=True, dropout=options.edge_dropout)
            for width, (out, concat) in zip(inputs, outputs, strict=True)
        )
        first, start = self.attentions[0], 0
        for name in ("lin_query", "lin_key", "lin_value", "lin_skip"):
            stop = start + getattr(first, name).out_channels
            setattr(first, name, Columns(start, stop))
            start = stop
        self.entry = InputLinear(features, start, dropout=options.on_features)
        self.label = nn.Parameter(torch.randn(classes, features))
        self.norms = nn.ModuleList(nn.LayerNorm(wide) for _ in outputs[:-1])

    def forward(self, view: View) -> Any:
        """View of n nodes → (n, C)."""
        table = self.label @ self.entry.weight
        labels = functional.pad(table, (0, 0, 1, 0))[view.given + 1]  # row 0: no label given, zero
        for _ in range(self.options.label_reuse):
            with torch.no_grad():
                guessed = self.attended(view, labels).softmax(dim=1)
            labels = reuse_labels(view.given, guessed) @ table
        return self.attended(view, labels)

    def attended(self, view: View, labels: torch.Tensor) -> Any:
        """Return logits, given what labels add to the maps of the features."""
        hidden = self.entry(view.features) + labels
        for attend, norm in zip(self.attentions, self.norms, strict=False):
            hidden = self.drop(norm(attend(hidden, view.edges)).relu())
        return self.attentions[-1](hidden, view.edges)


class Columns(nn.Module):
    """Some of the columns, in the place of a linear map that was applied before."""

    def __init__(self, start: int, stop: int) -> None:
        super().__init__()
        self.range = slice(start, stop)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, all) → (n, stop − start)."""
        return rows[:, self.range]


class DeeperGCN(Network):
    """Pre-activation residual layers around a softmax over the neighbours, whose shares have no gradient."""

    normalize = views.looped
    sampler = sampled.dealt

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__(options)
        width = options.hidden
        self.entry = InputLinear(view.features.shape[1], width, dropout=options.on_features)
        one = {"aggr": "softmax_sg", "t": INVERSE_TEMPERATURE, "num_layers": 1, "bias": True}
        self.aggregations = nn.ModuleList(layers.GENConv(width, width, **one) for _ in range(options.layers))
        self.norms = nn.ModuleList(layers.BatchNorm(width, allow_single_element=True) for _ in range(options.layers))
        self.last = nn.Linear(width, classes)

    def forward(self, view: View) -> Any:
        """View of n nodes → (n, C)."""
        hidden = self.aggregations[0](self.entry(view.features), view.edges)
        for norm, aggregate in zip(self.norms, self.aggregations[1:], strict=False):
            hidden = hidden + aggregate(self.drop(norm(hidden).relu()), view.edges)
        return self.last(self.drop(self.norms[-1](hidden).relu()))


class Perceptron(Network):
    """The MLP in front of APPNP and DAGNN: F → hidden → … → C."""

    def __init__(self, features: int, classes: int, options: Options) -> None:
        super().__init__(options)
        widths = [*[options.hidden] * (options.layers - 1), classes]
        self.entry = InputLinear(features, widths[0], dropout=options.on_features)
        self.linears = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))

    def forward(self, features: Features) -> Any:
        """(n, F) → (n, C)."""
        hidden = self.entry(features)
        for linear in self.linears:
            hidden = linear(self.drop(hidden.relu()))
        return hidden


class PredictFirst(Network):
    """A perceptron, whose predictions are then spread."""

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__(options)
        self.predict = Perceptron(view.features.shape[1], classes, options)

    @property
    def entry(self) -> Any:
        """The layer that reads the features."""
        return self.predict.entry


class APPNP(PredictFirst):
    """Spread the predictions by personalised PageRank; every iteration drops other entries of Â."""

    def forward(self, view: View) -> Any:
        """View of n nodes → (n, C)."""
        teleport, spread = self.options.teleport, self.predict(view.features)
        predicted = spread
        for _ in range(self.options.iterations):
            adjacency = view.adjacency.dropped(self.options.edge_dropout, training=self.training)
            spread = (1 - teleport) * (adjacency @ spread) + teleport * predicted
        return spread


class DAGNN(PredictFirst):
    """Each node chooses how far it looks."""

    def __init__(self, view: View, classes: int, options: Options) -> None:
        super().__init__(view, classes, options)
        self.score = nn.Linear(classes, 1)

    def forward(self, view: View) -> Any:
        """View of n nodes → (n, C)."""
        hops = [self.predict(view.features)]
        for _ in range(self.options.iterations):
            hops.append(view.adjacency @ hops[-1])
        stacked = torch.stack(hops, dim=1)  # (n, K+1, C)
        retained = functional.logsigmoid(self.score(stacked)).exp()  # torch's sigmoid depends on a row's place, in bits
        return (retained * stacked).sum(dim=1)
