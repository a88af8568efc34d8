"""Message passing that tells types and relations apart.

    R-GCN  h'_i = W₀ h_i + Σ_r mean_{j ∈ N_r(i)} W_r h_j                             Schlichtkrull et al. 2018
    HGT    attention over all neighbours, with maps of their own for each type and relation    Hu et al. 2020

R-GCN trains on the whole graph, one step an epoch, HGT on subgraphs (`typed`); both are evaluated on the whole.

Every relation counts in both directions, each with weights of its own: 2R relations. The layers are PyG's; relu and
dropout between them. Logits are those of the target type, zeros for other nodes.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from gamlp.graph.hetero import HeteroGraph
from gamlp.message_passing.dropout import drop
from gamlp.message_passing.parts import Parts
from gamlp.message_passing.pyg import layers
from gamlp.message_passing.settings import Options
from gamlp.message_passing.typed import Kind, TypedView, subgraphs, typed_view, whole
from gamlp.propagate.scaling import Scaling
from gamlp.storage.files import Array


class RGCN(nn.Module):
    """R-GCN."""

    def __init__(self, view: TypedView, classes: int, options: Options) -> None:
        super().__init__()
        widths = [view.features.shape[1], *[options.hidden] * (options.layers - 1), classes]
        self.convolutions = nn.ModuleList(
            layers.RGCNConv(width, out, num_relations=len(view.edges)) for width, out in pairwise(widths)
        )
        self.dropout = options.dropout
        self.pairs = torch.cat(list(view.edges.values()), dim=1)
        self.kinds = torch.repeat_interleave(
            torch.arange(len(view.edges)), torch.tensor([pair.shape[1] for pair in view.edges.values()])
        ).to(self.pairs.device)

    @property
    def entry(self) -> nn.Module:
        """The layer that reads the features."""
        return self.convolutions[0]

    def forward(self, view: TypedView) -> torch.Tensor:
        """View of N nodes → (N, C)."""
        hidden = view.features
        for number, convolution in enumerate(self.convolutions):
            hidden = drop(hidden.relu() if number else hidden, self.dropout, training=self.training)
            hidden = convolution(hidden, self.pairs, self.kinds)
        return hidden


class Grouped(layers.HeteroLinear):  # type: ignore[misc]
    """PyG's product of each group of rows with weights of its own, cut into blocks and joined once.

    PyG writes slice after slice into one array, and its backward pass then goes through all rows for each of them: on
    `debian-hetero` ten times the forward pass.
    """

    def forward_naive(self, x: torch.Tensor, type_ptr: torch.Tensor) -> torch.Tensor:
        """Rows sorted by group (M, F), where each group begins (G + 1,) → (M, F')."""
        blocks = torch.split(x, type_ptr.diff().tolist())
        return torch.cat([block @ weight for block, weight in zip(blocks, self.weight.unbind(), strict=True)])


class Attention(layers.HGTConv):  # type: ignore[misc]
    """PyG's layer, with maps of relations that are quick to train."""

    def __init__(self, width: int, metadata: tuple[list[str], list[Kind]], heads: int) -> None:
        super().__init__(width, width, metadata, heads)
        groups = heads * len(metadata[1])
        self.k_rel, self.v_rel = (
            Grouped(width // heads, width // heads, groups, bias=False, is_sorted=True) for _ in range(2)
        )


class HGT(nn.Module):
    """The heterogeneous graph transformer."""

    def __init__(self, view: TypedView, classes: int, options: Options) -> None:
        super().__init__()
        width = options.hidden
        self.entry = nn.ModuleDict({kind: nn.Linear(view.features.shape[1], width) for kind in view.ranges})
        metadata = (list(view.ranges), list(view.edges))
        self.attentions = nn.ModuleList(Attention(width, metadata, options.heads) for _ in range(options.layers))
        self.target = next(iter(view.ranges))
        self.last = nn.Linear(width, classes)
        self.dropout = options.dropout

    def forward(self, view: TypedView) -> torch.Tensor:
        """View of N nodes → (N, C), zeros for nodes of other types than the target."""
        hidden = {
            kind: drop(self.entry[kind](view.features[first:last]).relu(), self.dropout, training=self.training)
            for kind, (first, last) in view.ranges.items()
        }
        for attend in self.attentions:
            hidden = {kind: rows for kind, rows in attend(hidden, view.local).items() if rows is not None}
        logits: torch.Tensor = self.last(drop(hidden[self.target], self.dropout, training=self.training))
        return nn.functional.pad(logits, (0, 0, 0, len(view.features) - len(logits)))


NETWORKS: dict[str, type[RGCN] | type[HGT]] = {"rgcn": RGCN, "hgt": HGT}


def relational_parts(
    name: str, graph: HeteroGraph, train: Array, options: Options, scaling: Scaling, device: str
) -> Parts:
    """Build such a network and its view of a graph."""
    view = typed_view(graph, scaling=scaling, device=device)
    network = NETWORKS[name](view, len(graph.classes), options).to(device)
    return Parts(network, view, lambda: subgraphs(view, train, options) if name == "hgt" else whole(view, train))
