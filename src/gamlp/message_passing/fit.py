"""Train one message-passing method and keep the weights of its best validation score.

Labels enter in two places only: training labels in the loss (and, for UniMP, as input), validation labels in the score
that chooses the epoch. Nothing reads a label outside these two sets. An epoch is better if its validation accuracy is
higher or, at the same accuracy, its validation loss lower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from gamlp.errors import NotFiniteError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.message_passing.parts import Parts, parts_of
from gamlp.message_passing.settings import Options
from gamlp.message_passing.views import View
from gamlp.progress import progress
from gamlp.propagate.scaling import Scaling
from gamlp.storage.files import Array


@dataclass(frozen=True, eq=False)
class Fitted:
    """What training gave: class probabilities of all nodes (N, C) float32, and how it went."""

    probabilities: Array
    valid_accuracy: float
    parameters: int
    history: list[dict[str, float]]  # one row an epoch: epoch, loss, valid_loss, valid_accuracy
    state: dict[str, torch.Tensor]


def fit(
    name: str,
    graph: Graph,
    split: Split,
    *,
    options: Options,
    scaling: Scaling | None = None,
    seed: int,
    device: str = "cpu",
) -> Fitted:
    """Train method `name`; the same seed gives the same bits, and torch's random state is left as it was."""
    scaling = scaling or Scaling.fit(options.feature_scaling, np.asarray(graph.features))
    with torch.random.fork_rng(devices=[] if device == "cpu" else [torch.device(device)]):
        torch.manual_seed(seed)
        parts = parts_of(name, graph, split.train, options, scaling, device)
        return Training(name, parts, graph, split, options, device).run(seed)


@torch.no_grad()
def predict(
    name: str,
    graph: Graph,
    known_labels: Array,
    *,
    options: Options,
    scaling: Scaling,
    weights: dict[str, torch.Tensor],
    classes: int,
    device: str = "cpu",
) -> Array:
    """Return the probabilities of all nodes of any graph, (N, C), from the weights of a trained network."""
    graph = replace(graph, classes=tuple(map(str, range(classes))))
    parts = parts_of(name, graph, np.flatnonzero(known_labels >= 0), options, scaling, device)
    parts.network.load_state_dict(weights)
    parts.network.eval()
    view = parts.whole.with_given(torch.from_numpy(known_labels)) if parts.takes_labels else parts.whole
    return np.asarray(parts.network(view).softmax(dim=1).cpu().numpy())


class Training:
    """One fit: the network, its optimizer, and the best weights so far."""

    def __init__(self, name: str, parts: Parts, graph: Graph, split: Split, options: Options, device: str) -> None:
        self.name, self.options, self.device, self.takes_labels = name, options, device, parts.takes_labels
        self.network, self.sampler = parts.network, parts.sampler()
        self.optimizer = optimizer_of(self.network, options)
        self.train_labels = known(graph.labels, split.train)
        self.valid = torch.from_numpy(np.asarray(split.valid)).to(device)
        self.valid_labels = torch.from_numpy(graph.labels[split.valid]).to(device)
        given = torch.from_numpy(self.train_labels)
        self.whole = parts.whole.with_given(given) if self.takes_labels else parts.whole

    def run(self, seed: int) -> Fitted:
        """Train until the validation score stands still, then predict with the best weights."""
        random = np.random.default_rng([seed, 0x3E55])
        history: list[dict[str, float]] = []
        best: tuple[float, float] = (-1.0, 0.0)
        best_epoch, state = 0, copied(self.network)
        with progress(f"train {self.name}", total=self.options.epochs) as advance:
            for epoch in range(1, self.options.epochs + 1):
                loss = self.epoch(random)
                accuracy, valid_loss = self.evaluate()
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

    def evaluate(self) -> tuple[float, float]:
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
