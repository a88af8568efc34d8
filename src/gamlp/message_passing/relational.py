"""Message passing that tells types and relations apart.

    R-GCN  h'_i = W₀ h_i + Σ_r mean_{j ∈ N_r(i)} W_r h_j                             Schlichtkrull et al. 2018
    HGT    attention over all neighbours, with maps of their own for each type and relation    Hu et al. 2020

Every relation counts in both directions, each with weights of its own: 2R relations. The layers are PyG's; relu and
dropout between them. Logits are those of the target type, zeros for other nodes. R-GCN trains on the whole graph, one
step an epoch, HGT on subgraphs around training nodes; both are evaluated on the whole.

HGSampling (Hu et al. 2020) draws a subgraph with about as many nodes of each type, however rare a type is:

    budget[s] += 1 / |N_r(t)|      for every new node t, every relation r, and all s in N_r(t) that are not taken yet
    new nodes                      `nodes_a_type` of each type, drawn with probabilities ∝ budget²

The first new nodes are a batch of training nodes; `rounds` of drawing follow. All edges between nodes that are taken
are in it, so it is dense. Cost of one: O(edges into its nodes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from gamlp.graph.graph import Graph
from gamlp.message_passing.features import scaled
from gamlp.message_passing.network import Network
from gamlp.message_passing.pyg import layers
from gamlp.message_passing.sampled import Sampler, around_batches, whole
from gamlp.message_passing.settings import Options
from gamlp.propagate.scaling import Scaling
from gamlp.storage.files import Array

Kind = tuple[str, str, str]
Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True, eq=False)
class TypedView:
    """Features (N, F) of all nodes, where each type begins and ends, and the edges (2, E_r) of the 2R relations.

    Ends are rows of the features; `local` has them numbered within their types.
    """

    features: torch.Tensor
    ranges: Ranges
    edges: dict[Kind, torch.Tensor]

    @cached_property
    def local(self) -> dict[Kind, torch.Tensor]:
        """The edges, with ends numbered within their types."""
        first = {kind: start for kind, (start, _) in self.ranges.items()}
        return {key: pairs - pairs.new_tensor([[first[key[0]]], [first[key[2]]]]) for key, pairs in self.edges.items()}


def typed_view(graph: Graph, *, scaling: Scaling, device: str) -> TypedView:
    """Return the whole graph; every relation counts in both directions."""
    features = scaled(np.asarray(graph.features), scaling)
    dense = features.toarray() if hasattr(features, "toarray") else features
    ranges = {kind.name: (kind.start, kind.stop) for kind in graph.types}
    edges = {}
    for one in graph.relations:
        pairs = torch.from_numpy(np.stack([one.heads, one.tails])).to(device)
        edges[one.source, one.name, one.target] = pairs
        edges[one.target, f"rev_{one.name}", one.source] = pairs.flip(0)
    return TypedView(torch.from_numpy(np.ascontiguousarray(dense, np.float32)).to(device), ranges, edges)


@dataclass(frozen=True, eq=False)
class TypedSource:
    """What samplers draw from: the whole graph."""

    view: TypedView
    options: Options

    @property
    def nodes(self) -> int:
        """N, the number of nodes."""
        return len(self.view.features)


def subgraphs(source: TypedSource) -> Sampler:
    """Parts around batches of training nodes; small graphs are taken whole."""
    view, options = source.view, source.options
    if source.nodes <= options.full_batch_up_to:
        return whole(source)
    into = {key: Sources(pairs.cpu().numpy(), source.nodes) for key, pairs in view.edges.items()}

    def draw(seeds: Array, random: np.random.Generator) -> tuple[Array, TypedView]:
        nodes = reached(view.ranges, into, seeds, options=options, random=random)
        return nodes, subgraph(view, into, nodes)

    return around_batches(source, draw)


class Sources:
    """The sources of one relation's edges, grouped by target."""

    def __init__(self, pairs: Array, nodes: int) -> None:
        self.sources = pairs[0][np.argsort(pairs[1], kind="stable")]
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(pairs[1], minlength=nodes))])

    def of(self, targets: Array) -> tuple[Array, Array]:
        """Return the sources of all edges into `targets`, and which of the targets each edge leads to."""
        degree = self.starts[targets + 1] - self.starts[targets]
        which = np.repeat(np.arange(len(targets)), degree)
        first = np.cumsum(degree) - degree
        return self.sources[(self.starts[targets] - first)[which] + np.arange(len(which))], which


def reached(
    ranges: Ranges, into: dict[Kind, Sources], seeds: Array, *, options: Options, random: np.random.Generator
) -> Array:
    """Return the nodes (sorted) of one subgraph."""
    count = max(last for _, last in ranges.values())
    taken, budget, new = np.zeros(count, dtype=bool), np.zeros(count), seeds
    taken[seeds] = True
    for _ in range(options.rounds):
        for relation in into.values():
            near, which = relation.of(new)
            np.add.at(budget, near, 1 / np.bincount(which, minlength=len(new))[which])
        budget[taken] = 0
        each = (first + drawn(budget[first:last], options.nodes_a_type, random) for first, last in ranges.values())
        new = np.concatenate(list(each))
        taken[new] = True
    return np.flatnonzero(taken)


def drawn(budget: Array, count: int, random: np.random.Generator) -> Array:
    """Draw `count` different nodes with probabilities ∝ budget², or all that have any.

    The earliest of exponential waiting times with these rates are such a draw.
    """
    able = np.flatnonzero(budget)
    waiting = random.exponential(size=len(able)) / budget[able] ** 2
    return able if len(able) <= count else able[np.argpartition(waiting, count)[:count]]


def subgraph(view: TypedView, into: dict[Kind, Sources], nodes: Array) -> TypedView:
    """Return these nodes (sorted) and all edges between them."""
    device = view.features.device
    place = np.full(len(view.features), -1)
    place[nodes] = np.arange(len(nodes))
    edges = {}
    for key, relation in into.items():
        first, last = np.searchsorted(nodes, view.ranges[key[2]])
        near, which = relation.of(nodes[first:last])
        inside = place[near] >= 0
        edges[key] = torch.from_numpy(np.stack([place[near][inside], first + which[inside]])).to(device)
    ranges = {name: tuple(np.searchsorted(nodes, ends).tolist()) for name, ends in view.ranges.items()}
    return TypedView(view.features[torch.from_numpy(nodes).to(device)], ranges, edges)


class TypedNetwork(Network):
    """A network over the types and relations of a graph."""

    @classmethod
    def source(cls, graph: Graph, options: Options, scaling: Scaling, device: str) -> TypedSource:
        """Return the graph as it is trained on."""
        return TypedSource(typed_view(graph.need_relations(), scaling=scaling, device=device), options)


class RGCN(TypedNetwork):
    """R-GCN."""

    def __init__(self, view: TypedView, classes: int, options: Options) -> None:
        super().__init__(options)
        widths = [view.features.shape[1], *[options.hidden] * (options.layers - 1), classes]
        self.convolutions = nn.ModuleList(
            layers.RGCNConv(width, out, num_relations=len(view.edges)) for width, out in pairwise(widths)
        )
        self.pairs = torch.cat(list(view.edges.values()), dim=1)
        counts = torch.tensor([pairs.shape[1] for pairs in view.edges.values()])
        self.kinds = torch.repeat_interleave(torch.arange(len(counts)), counts).to(self.pairs.device)

    @property
    def entry(self) -> Any:
        """The layer that reads the features."""
        return self.convolutions[0]

    def forward(self, view: TypedView) -> torch.Tensor:
        """View of N nodes → (N, C)."""
        hidden = self.drop_features(view.features)
        for number, convolve in enumerate(self.convolutions):
            hidden = convolve(self.drop(hidden.relu()) if number else hidden, self.pairs, self.kinds)
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
        each, groups = width // heads, heads * len(metadata[1])
        self.k_rel, self.v_rel = (Grouped(each, each, groups, bias=False, is_sorted=True) for _ in range(2))


class HGT(TypedNetwork):
    """The heterogeneous graph transformer."""

    sampler = subgraphs

    def __init__(self, view: TypedView, classes: int, options: Options) -> None:
        super().__init__(options)
        width, metadata = options.hidden, (list(view.ranges), list(view.edges))
        self.entry = nn.ModuleDict({kind: nn.Linear(view.features.shape[1], width) for kind in view.ranges})
        self.attentions = nn.ModuleList(Attention(width, metadata, options.heads) for _ in range(options.layers))
        self.last = nn.Linear(width, classes)

    def forward(self, view: TypedView) -> torch.Tensor:
        """View of N nodes → (N, C), zeros for nodes of other types than the target."""
        hidden = {
            kind: self.drop(self.entry[kind](view.features[first:last]).relu())
            for kind, (first, last) in view.ranges.items()
        }
        for attend in self.attentions:
            hidden = {kind: rows for kind, rows in attend(hidden, view.local).items() if rows is not None}
        logits: torch.Tensor = self.last(self.drop(hidden[next(iter(view.ranges))]))  # the target type is the first
        return nn.functional.pad(logits, (0, 0, 0, len(view.features) - len(logits)))
