"""Graph convolutions over sampled layers: FastGCN and VR-GCN.

    H¹ = relu(ÂX W⁰),   Hˡ⁺¹ = relu(dropout(estimate of Â Hˡ) Wˡ)

ÂX is computed once, so the first layer is exact and costs no neighbours; as both papers propose, dropout comes after Â.
A batch starts from training nodes and draws, layer by layer from the top, the nodes whose rows the layer reads.

    FastGCN  nodes u drawn t times with chances q(u) ∝ ‖Â(:, u)‖²:  Σ_u Â(v, u) h(u) / (t q(u))   Chen, Ma & Xiao 2018
    VR-GCN   `fanout` neighbours of each node, of which only the change since they were last computed, H − H̄, is
             estimated:  P (H − H̄) + Â H̄,  P the sampled Â                               Chen, Zhu & Song 2018

Both are unbiased; the second has no variance once H̄ = H. Evaluation is exact, on the whole graph. One step costs
O(batch·t) and O(batch·fanoutᴸ⁻¹) rows, VR-GCN's history N·hidden numbers a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from gamlp.graph.graph import Graph
from gamlp.message_passing.features import SPARSE_BELOW, Features, InputLinear, features_of
from gamlp.message_passing.network import Network
from gamlp.message_passing.sampled import Sampler, Source, around_batches, some_entries
from gamlp.message_passing.settings import Options
from gamlp.message_passing.sparse import SparseMatrix
from gamlp.message_passing.views import Matrix
from gamlp.propagate.scaling import Scaling
from gamlp.storage.files import Array


@dataclass(eq=False)
class Layered:
    """What the layers of one batch read: rows of ÂX (n⁰, F), and Â between layers, (nˡ⁺¹, nˡ), the lowest first."""

    features: Features
    adjacencies: tuple[SparseMatrix, ...]

    def receive(self, number: int, hidden: torch.Tensor) -> torch.Tensor:
        """Return Â H, or an estimate of it.  (nˡ, hidden) → (nˡ⁺¹, hidden)."""
        return self.adjacencies[number] @ hidden


@dataclass(eq=False)
class Controlled(Layered):
    """Layers that estimate changes: `nodes` are those of each layer, `rows` their part of Â (nˡ⁺¹, N), `history` H̄."""

    nodes: tuple[torch.Tensor, ...]
    rows: tuple[SparseMatrix, ...]
    history: tuple[torch.Tensor, ...]  # (N, hidden)

    def receive(self, number: int, hidden: torch.Tensor) -> torch.Tensor:
        """Return P (H − H̄) + Â H̄, and remember H."""
        past, nodes = self.history[number], self.nodes[number]
        estimate = self.adjacencies[number] @ (hidden - past[nodes]) + self.rows[number] @ past
        past[nodes] = hidden.detach()
        return estimate


class LayeredSource(Source):
    """Features are rows of ÂX already, and the matrix is Â."""

    @property
    def adjacency(self) -> Matrix:
        """The normalised matrix Â."""
        return self.matrix

    @cached_property
    def view(self) -> Any:
        """The whole graph in every layer."""
        features = features_of(self.features).to(self.device)
        return Layered(features, (self.sparse(self.adjacency),) * (self.options.layers - 1))

    def layered(self, lowest: Array, matrices: list[Matrix]) -> Layered:
        """Make a view from the nodes of the lowest layer and the matrices between layers."""
        return Layered(features_of(self.features[lowest]).to(self.device), tuple(map(self.sparse, matrices)))

    def sparse(self, matrix: Matrix) -> SparseMatrix:
        """Return a scipy matrix as layers read it."""
        return SparseMatrix.of(matrix).to(self.device)


class Sampled(Network):
    """The network of all of them: what it receives is the view's affair."""

    def __init__(self, view: Layered, classes: int, options: Options) -> None:
        super().__init__(options)
        widths = [view.features.shape[1], *[options.hidden] * (options.layers - 1), classes]
        self.entry = InputLinear(widths[0], widths[1], dropout=options.on_features)
        self.linears = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths[1:]))

    @classmethod
    def source(cls, graph: Graph, options: Options, scaling: Scaling, device: str) -> LayeredSource:
        """Return the graph as it is trained on, ÂX in place of X."""
        plain = super().source(graph, options, scaling, device)
        adjacency = plain.normalize(plain.matrix)
        received = adjacency @ plain.features
        if sp.issparse(received) and received.nnz >= SPARSE_BELOW * np.prod(received.shape):
            received = received.toarray()
        return LayeredSource(received, adjacency, plain.normalize, options, device)

    def forward(self, view: Any) -> torch.Tensor:
        """View of n nodes → (n, C)."""
        hidden: torch.Tensor = self.entry(view.features)
        for number, linear in enumerate(self.linears):
            hidden = linear(self.drop(view.receive(number, hidden.relu())))
        return hidden


def important(source: LayeredSource) -> Sampler:
    """FastGCN: every layer draws its nodes from all nodes, whatever the layer above has drawn."""
    chances = np.asarray(source.adjacency.power(2).sum(axis=0), dtype=np.float64)
    chances /= chances.sum()

    def draw(seeds: Array, random: np.random.Generator) -> tuple[Array, Layered]:
        nodes, matrices = seeds, list[Matrix]()
        for _ in range(source.options.layers - 1):
            near = source.adjacency[nodes]
            nodes, _, matrix = drawn_columns(near, chances, source.options.layer_nodes, random)
            matrices.insert(0, matrix)
        return seeds, source.layered(nodes, matrices)

    return around_batches(source, draw)


def drawn_columns(
    matrix: Matrix, chances: Array, count: int, random: np.random.Generator
) -> tuple[Array, Array, Matrix]:
    """Draw `count` columns; return which (sorted), how often each, and the matrix of them, scaled to be unbiased."""
    bounds = np.cumsum(chances)
    places = np.searchsorted(bounds, random.random(count) * bounds[-1], side="right")
    drawn, times = np.unique(places, return_counts=True)
    scale = sp.diags_array((times / (count * chances[drawn])).astype(np.float32))
    return drawn, times, (matrix[:, drawn] @ scale).tocsr()


def controlled(source: LayeredSource) -> Sampler:
    """VR-GCN: every node draws neighbours of its own; the history is empty at first."""
    layers, size = source.options.layers - 1, (source.nodes, source.options.hidden)
    history = tuple(torch.zeros(size, device=source.device) for _ in range(layers))

    def draw(seeds: Array, random: np.random.Generator) -> tuple[Array, Controlled]:
        nodes, drawn = seeds, list[Matrix]()
        below, rows = list[torch.Tensor](), list[SparseMatrix]()
        for _ in range(layers):
            near = source.adjacency[nodes]
            sampled = some_of(near, source.options.fanout, random)
            nodes = np.unique(sampled.indices).astype(np.int64)
            rows.insert(0, source.sparse(near))
            drawn.insert(0, sampled[:, nodes])
            below.insert(0, torch.from_numpy(nodes).to(source.device))
        plain = source.layered(nodes, drawn)
        return seeds, Controlled(plain.features, plain.adjacencies, tuple(below), tuple(rows), history)

    return around_batches(source, draw)


def some_of(rows: Matrix, count: int, random: np.random.Generator) -> Matrix:
    """Draw `count` entries of each row; the sum over a row is unbiased."""
    entries, places, times = some_entries(rows.indptr, np.arange(rows.shape[0]), count, random)
    values = (rows.data[entries] * times).astype(np.float32)
    return sp.coo_array((values, (places, rows.indices[entries].astype(np.int64))), shape=rows.shape).tocsr()


class FastGCN(Sampled):
    """Layers of important nodes."""

    sampler = important


class VRGCN(Sampled):
    """Sampled neighbours, with the past as a control variate."""

    sampler = controlled
