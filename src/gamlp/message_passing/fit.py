"""Train one message-passing method and keep the weights of its best validation score.

Labels enter in two places only: training labels in the loss (and, for UniMP, as input), validation labels in the score
that chooses the epoch. Nothing reads a label outside these two sets. An epoch is better if its validation accuracy is
higher or, at the same accuracy, its validation loss lower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from gamlp.errors import NotFiniteError
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.splits import Split
from gamlp.message_passing.features import scaled
from gamlp.message_passing.matrices import matrix_of
from gamlp.message_passing.sampled import Source
from gamlp.message_passing.settings import Options, names, options_for
from gamlp.message_passing.views import Sizes, View
from gamlp.methods import RELATIONAL
from gamlp.progress import progress
from gamlp.storage.files import Array

__all__ = ["Fitted", "fit", "names"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What training gave: class probabilities of all nodes (N, C) float32, and how it went."""

    probabilities: Array
    valid_accuracy: float
    parameters: int
    history: list[dict[str, float]]  # one row an epoch: epoch, loss, valid_loss, valid_accuracy
    state: dict[str, torch.Tensor]


def fit(name: str, graph: Graph, split: Split, *, options: Mapping[str, Any], seed: int, device: str = "cpu") -> Fitted:
    """Train method `name`; the same seed gives the same bits, and torch's random state is left as it was."""
    chosen = options_for(name, options)
    with torch.random.fork_rng(devices=[] if device == "cpu" else [torch.device(device)]):
        torch.manual_seed(seed)
        if isinstance(graph, HeteroGraph) and name in RELATIONAL:
            from gamlp.message_passing.relational import RelationalTraining

            return RelationalTraining(name, graph, split, chosen, device).run(seed)
        return Training(name, graph, split, chosen, device).run(seed)


class Training:
    """One fit: the network, its optimizer, and the best weights so far."""

    def __init__(self, name: str, graph: Graph, split: Split, options: Options, device: str) -> None:
        from gamlp.message_passing.methods import METHODS  # needs PyG

        method = METHODS[name]
        self.name, self.options, self.device, self.takes_labels = name, options, device, method.takes_labels
        features = scaled(np.asarray(graph.features), scaling=options.feature_scaling)
        source = Source(features, matrix_of(graph.adjacency), method.normalize, np.sort(split.train), options, device)
        self.sampler = method.sampler(source)
        self.network = method.network(Sizes(graph.features.shape[1], len(graph.classes)), options).to(device)
        self.optimizer = optimizer_of(self.network, options)
        self.train_labels = known(graph.labels, split.train)
        self.valid = torch.from_numpy(np.asarray(split.valid)).to(device)
        self.valid_labels = torch.from_numpy(graph.labels[split.valid]).to(device)
        self.whole = source.view.with_given(torch.from_numpy(self.train_labels))

    def run(self, seed: int) -> Fitted:
        """Train until the validation score stands still, then predict with the best weights."""
        random = np.random.default_rng([seed, 0x3E55])
        history: list[dict[str, float]] = []
        best: tuple[float, float] = (-1.0, 0.0)
        best_epoch, state = 0, copied(self.network)
        with progress(f"train {self.name}", total=self.options.epochs) as advance:
            for epoch in range(1, self.options.epochs + 1):
                loss = self.epoch(random)
                accuracy, valid_loss = self.judge()
                check_finite(loss, valid_loss, epoch=epoch, learning_rate=self.options.learning_rate)
                history.append({"epoch": epoch, "loss": loss, "valid_loss": valid_loss, "valid_accuracy": accuracy})
                advance(note=f"valid {accuracy:.4f}")
                if (accuracy, -valid_loss) > best or not len(self.valid):
                    best, best_epoch, state = (accuracy, -valid_loss), epoch, copied(self.network)
                elif epoch - best_epoch >= self.options.patience:
                    break
        self.network.load_state_dict(state)
        probabilities = self.logits().softmax(dim=1).cpu().numpy()
        parameters = sum(weights.numel() for weights in self.network.parameters())
        return Fitted(probabilities, best[0], parameters, history, {key: each.cpu() for key, each in state.items()})

    def epoch(self, random: np.random.Generator) -> float:
        """Take the steps of one epoch; return their mean loss."""
        self.network.train()
        losses = []
        for batch in self.sampler(random):
            view, rows, nodes, weights = batch.view, batch.rows, batch.nodes, batch.weights
            if self.takes_labels:
                hidden = random.random(len(rows)) >= self.options.label_rate
                hidden[random.integers(len(rows))] = True  # at least one node to learn from
                view = view.with_given(given_labels(len(view.given), rows[~hidden], self.train_labels[nodes[~hidden]]))
                rows, nodes, weights = rows[hidden], nodes[hidden], weights[hidden] / weights[hidden].sum()
            losses.append(self.step(view, rows, self.train_labels[nodes], weights))
        return float(np.mean(losses))

    def step(self, view: View, rows: Array, labels: Array, weights: Array) -> float:
        """Take one step; return its loss."""
        logits = self.network(view)[torch.from_numpy(rows).to(self.device)]
        each = functional.cross_entropy(logits, torch.from_numpy(labels).to(self.device), reduction="none")
        loss = (each * torch.from_numpy(weights).to(each)).sum()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return float(loss.detach())

    def judge(self) -> tuple[float, float]:
        """Return validation accuracy and loss; without validation nodes zeros, and the last epoch is kept."""
        if not len(self.valid):
            return 0.0, 0.0
        logits = self.logits()[self.valid]
        loss = functional.cross_entropy(logits, self.valid_labels)
        return float((logits.argmax(dim=1) == self.valid_labels).double().mean()), float(loss)

    @torch.no_grad()
    def logits(self) -> torch.Tensor:
        """Return the logits of all nodes (N, C), nothing dropped."""
        self.network.eval()
        return self.network(self.whole)  # type: ignore[no-any-return]


def optimizer_of(network: nn.Module, options: Options) -> torch.optim.Optimizer:
    """Return Adam with the weight decay where it belongs."""
    first = set(network.entry.parameters())  # type: ignore[union-attr]
    decay_all = options.weight_decay_on == "all"
    decayed = [each for each in network.parameters() if decay_all or each in first]
    free = [each for each in network.parameters() if not (decay_all or each in first)]
    groups = [{"params": decayed, "weight_decay": options.weight_decay}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.Adam(groups, lr=options.learning_rate)


def known(labels: Array, nodes: Array) -> Array:
    """Return the labels of `nodes` and −1 everywhere else."""
    return given_labels(len(labels), nodes, labels[nodes]).numpy()


def given_labels(count: int, rows: Array, labels: Array) -> torch.Tensor:
    """Return (count,) with `labels` at `rows` and −1 everywhere else."""
    given = np.full(count, -1, dtype=np.int64)
    given[rows] = labels
    return torch.from_numpy(given)


def copied(network: nn.Module) -> dict[str, torch.Tensor]:
    """Return a copy of the weights."""
    return {key: each.detach().clone() for key, each in network.state_dict().items()}


def check_finite(*losses: float, epoch: int, learning_rate: float) -> None:
    """Stop when training has run away."""
    if not np.isfinite(losses).all():
        raise NotFiniteError(
            f"The loss is no longer finite in epoch {epoch}.\n"
            f"Lower learning_rate (now {learning_rate:g}), or scale the features."
        )
