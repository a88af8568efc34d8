"""Train one message-passing method and keep the weights of its best validation score.

Labels enter in two places only: training labels in the loss (and, for UniMP, as input), validation labels in the score
that chooses the epoch. Nothing reads a label outside these two sets. An epoch is better if its score on validation is
higher (`Objective`: the metric and, at the same metric, the loss).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gamlp.errors import DivergedError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.message_passing.network import Network, build
from gamlp.message_passing.sampled import Batch
from gamlp.message_passing.settings import Options
from gamlp.methods.base import labels_of
from gamlp.model.cpu.buffer_pool import reuse_buffers
from gamlp.progress import Advance, progress
from gamlp.propagate.scaling import Scaling
from gamlp.storage.files import Array
from gamlp.targets.objective import Objective


def fit(
    name: str,
    graph: Graph,
    split: Split,
    *,
    options: Options,
    seed: int,
    device: str = "cpu",
    objective: Objective | None = None,
) -> Training:
    """Train method `name`; the same seed gives the same bits, and torch's random state is left as it was."""
    scaling = Scaling.fit(options.feature_scaling, np.asarray(graph.features))
    with torch.random.fork_rng(devices=[] if device == "cpu" else [torch.device(device)]):
        torch.manual_seed(seed)
        classes = len(graph.classes)
        built = build(name, graph, classes, options=options, scaling=scaling, device=device)
        training = Training(*built, graph.labels, split, scaling, device, objective or Objective())
        with reuse_buffers(), progress(f"train {name}", total=options.epochs) as advance:
            training.run(np.random.default_rng([seed, 0x3E55]), advance)
        return training


@torch.no_grad()
def logits(network: Network, view: Any) -> torch.Tensor:
    """Return the logits of all nodes of a view, (n, C), nothing dropped."""
    return network.eval()(view)  # type: ignore[no-any-return]


class Training:
    """One fit: the network, its optimizer, the best weights (`state`) and what they say of all nodes, (N, C).

    The history has one row an epoch: epoch, loss, valid_loss and the metric, as valid_accuracy.
    """

    def __init__(
        self,
        network: Network,
        source: Any,
        labels: Array,
        split: Split,
        scaling: Scaling,
        device: str,
        objective: Objective,
    ) -> None:
        self.objective = objective
        self.network, self.options, self.scaling, self.device = network, source.options, scaling, device
        self.sampler = type(network).sampler(source)
        self.optimizer = optimizer_of(network, source.options)
        self.train, self.train_labels = np.sort(split.train), labels_of(labels, split.train)
        self.valid, self.valid_labels = self.tensor(split.valid), labels[split.valid]
        self.whole = network.seen(source.view, self.train_labels)
        self.history: list[dict[str, float]] = []
        self.state: dict[str, torch.Tensor] = {}

    def run(self, random: np.random.Generator, advance: Advance) -> None:
        """Train until the validation score stands still, then predict with the best weights."""
        best, best_epoch, options = (-np.inf, 0.0), 0, self.options
        for epoch in range(1, options.epochs + 1):
            loss = self.epoch(random)
            if epoch % options.evaluate_every and epoch < options.epochs and np.isfinite(loss):
                advance()
                continue
            score, valid_loss = self.evaluate()
            if not np.isfinite([loss, valid_loss]).all():
                raise DivergedError(
                    f"The loss is no longer finite in epoch {epoch}.\n"
                    f"Lower learning_rate (now {options.learning_rate:g}), or scale the features."
                )
            entry = {"epoch": epoch, "loss": loss, "valid_loss": valid_loss}
            self.history.append(entry | self.objective.facts(score))
            advance(note=self.objective.note(score))
            if (score, -valid_loss) > best or not len(self.valid):
                best, best_epoch = (score, -valid_loss), epoch
                self.state = {key: each.detach().clone() for key, each in self.network.state_dict().items()}
            elif epoch - best_epoch >= options.patience:
                break
        self.network.load_state_dict(self.state)
        self.state = {key: each.cpu() for key, each in self.state.items()}
        said = self.objective.kind.link(logits(self.network, self.whole))
        self.probabilities, self.valid_score = said.cpu().numpy(), best[0]
        self.parameters = sum(weights.numel() for weights in self.network.parameters())

    def epoch(self, random: np.random.Generator) -> float:
        """Take the steps of one epoch; return their mean loss."""
        self.network.train()
        given, targets = self.some_given(random) if self.network.takes_labels else (self.train_labels, self.train)
        return float(np.mean([self.step(batch, given[batch.ids]) for batch in self.sampler(random, targets)]))

    def some_given(self, random: np.random.Generator) -> tuple[Array, Array]:
        """Return the training labels that are input in this epoch, (N,), and the nodes that the loss falls on."""
        hidden = random.random(len(self.train)) >= self.options.label_rate
        hidden[random.integers(len(hidden))] = True  # at least one node to learn from
        return labels_of(self.train_labels, self.train[~hidden]), self.train[hidden]

    def step(self, batch: Batch, given: Array) -> float:
        """Take one step, with these labels of the batch's nodes where labels are input; return its loss."""
        rows = self.tensor(batch.rows)
        logits = self.network(self.network.seen(batch.view, given))[rows]
        each = self.objective.loss(logits, self.train_labels[batch.nodes])
        if self.network.penalty is not None:
            each = each + self.network.penalty[rows]
        loss = (each * torch.from_numpy(batch.weights).to(each)).sum()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return float(loss.detach())

    def evaluate(self) -> tuple[float, float]:
        """Return score and loss on validation; without validation nodes zeros, and the last epoch is kept."""
        if not len(self.valid):
            return 0.0, 0.0
        rows = logits(self.network, self.whole)[self.valid]
        loss = self.objective.kind.loss(rows, self.tensor(self.valid_labels)).mean()
        chances = self.objective.kind.link(rows).cpu().numpy()
        return self.objective.score(chances, self.valid_labels)[0], float(loss)

    def tensor(self, values: Array) -> torch.Tensor:
        """Return an array as a tensor on the device."""
        return torch.from_numpy(np.asarray(values)).to(self.device)


def optimizer_of(network: Network, options: Options) -> torch.optim.Optimizer:
    """Return Adam with the weight decay where it belongs."""
    decayed = dict.fromkeys((network if options.weight_decay_on == "all" else network.entry).parameters())
    free = [each for each in network.parameters() if each not in decayed]
    groups = [{"params": [*decayed], "weight_decay": options.weight_decay}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.Adam(groups, lr=options.learning_rate)
