"""AS-GCN: a sampler that learns to draw the nodes that matter (Huang et al. 2018).

A layer draws t nodes, with replacement, among the neighbours of the layer above it, whose nodes are v:

    q(u) ∝ Σ_v Â(v, u) g(u),   g(u) = 1 + relu(w·x(u))            estimate of Â H as FastGCN's (`layerwise`)
    loss of v = cross entropy + λ·Var(v),   Var(v) = 1/t (Σ_u (Â(v, u) / q(u))² |h(u)|² / t − |μ(v)|²) / hidden

μ(v) is the estimate itself; λ is `variance`, of the topmost layer alone. The sampler learns from the variance: its
derivative by q(u) is taken of 1/q(u), the other factor being how often u is drawn, so it is that of the true variance
in the mean. As in the authors' networks the first layer reads ÂX, and so does g; their skip connection is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gamlp.message_passing.features import InputLinear, features_of
from gamlp.message_passing.layerwise import Layered, LayeredSource, Sampled, drawn_columns
from gamlp.message_passing.sampled import Sampler, around_batches
from gamlp.message_passing.settings import Options
from gamlp.message_passing.sparse import SparseMatrix
from gamlp.message_passing.views import Matrix
from gamlp.storage.files import Array


@dataclass(frozen=True, eq=False)
class Seeds:
    """A batch of training nodes, around which the network draws by itself."""

    source: LayeredSource
    nodes: Array
    random: np.random.Generator


def seeds(source: LayeredSource) -> Sampler:
    """Deal the training nodes into batches."""
    return around_batches(source, lambda nodes, random: (nodes, Seeds(source, nodes, random)))


@dataclass(eq=False)
class Adapted(Layered):
    """Sampled layers; of the topmost the squares of its matrix, and of its nodes q(u) and how often u was drawn."""

    squares: SparseMatrix
    chances: torch.Tensor
    times: torch.Tensor
    variance: torch.Tensor | None = None

    def receive(self, number: int, hidden: torch.Tensor) -> torch.Tensor:
        """Estimate Â H, and in the topmost layer its variance."""
        estimate = super().receive(number, hidden)
        if number == len(self.adjacencies) - 1:
            learned = self.chances.detach() / self.chances  # 1, with the derivative of 1/q(u)
            sizes = hidden.square().mean(dim=1) * learned / self.times
            self.variance = (self.squares @ sizes[:, None])[:, 0] - estimate.square().mean(dim=1) / self.times.sum()
        return estimate


class ASGCN(Sampled):
    """Layers of nodes that the network chooses."""

    sampler = seeds

    def __init__(self, view: Layered, classes: int, options: Options) -> None:
        super().__init__(view, classes, options)
        self.score = InputLinear(view.features.shape[1], 1, dropout=0.0)

    def forward(self, view: Any) -> torch.Tensor:
        """View of n nodes, or a batch of them → (n, C)."""
        drawn = self.drawn(view) if isinstance(view, Seeds) else view
        logits = super().forward(drawn)
        if isinstance(drawn, Adapted) and drawn.variance is not None:
            self.penalty = self.options.variance * drawn.variance
        return logits

    def drawn(self, batch: Seeds) -> Layered:
        """Draw the layers from the top down."""
        source, nodes, layers = batch.source, batch.nodes, list[tuple[Matrix, torch.Tensor, Array]]()
        for _ in self.linears:
            near = source.adjacency[nodes]
            nodes = np.unique(near.indices).astype(np.int64)
            block = near[:, nodes]
            chances = self.chances(source, nodes, block)
            known = chances.detach().double().cpu().numpy()
            drawn, times, matrix = drawn_columns(block, known, self.options.layer_nodes, batch.random)
            nodes = nodes[drawn]
            layers.insert(0, (matrix, chances[torch.from_numpy(drawn).to(source.device)], times))
        view = source.layered(nodes, [matrix for matrix, _, _ in layers])
        if not layers:
            return view
        matrix, chances, times = layers[-1]
        counts = torch.from_numpy(times.astype(np.float32)).to(source.device)
        return Adapted(view.features, view.adjacencies, source.sparse(matrix.power(2)), chances, counts)

    def chances(self, source: LayeredSource, nodes: Array, block: Matrix) -> torch.Tensor:
        """Return q of the neighbours `nodes` of a layer, `block` (n, neighbours) being its part of Â."""
        features = features_of(source.features[nodes]).to(source.device)
        received = torch.from_numpy(np.asarray(block.sum(axis=0), np.float32)).to(source.device)
        weights: torch.Tensor = received * (1 + self.score(features)[:, 0].relu())
        return weights / weights.sum()
