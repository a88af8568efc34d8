"""Several labels a node: (N, T) of 0 and 1, −1 where it is not known, as ogbn-proteins has them.

    p_t = sigmoid(h_t)        L_i = 1/T Σ_t w_t(y_t) · (−y_t log p_t − (1 − y_t) log(1 − p_t))    over the labels known

Every known label counts alike; without gaps and weights this is torch's mean. Metrics are means over the labels, each
over the nodes where it is known. A label is predicted where p_t > ½.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gamlp.errors import LabelError, ShapeError
from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.targets.metrics import BASE_RATE, Question, Scored, mean_of
from gamlp.targets.single import balanced

if TYPE_CHECKING:
    from torch import Tensor

BETWEEN = ";"  # names of labels, where several stand in one column


class ScoredLabels(Scored):
    """Probabilities (R, T) beside labels (R, T)."""

    def questions(self) -> Iterator[Question]:
        """Yield every label, of the rows where it is known."""
        for label in range(self.labels.shape[1]):
            known = self.labels[:, label] >= 0
            if known.any():
                yield self.probabilities[known, label], self.labels[known, label] == 1

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return mean_of(float(((chance > 0.5) == true).mean()) for chance, true in self.questions())

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the shares of positives and of negatives that are found."""
        return mean_of(
            mean_of(float(((chance > 0.5) == true)[true == which].mean()) for which in np.unique(true))
            for chance, true in self.questions()
        )

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the labels that occur among truths or predictions."""
        counts = ((chance > 0.5, true) for chance, true in self.questions())
        named = ((2 * int((said & true).sum()), int(said.sum() + true.sum())) for said, true in counts)
        return mean_of(hits / both if both else math.nan for hits, both in named)

    @property
    def log_loss(self) -> float:
        """The mean of −log p(y) over all labels that are known."""
        known = self.labels >= 0
        chances = np.where(self.labels == 1, self.probabilities, 1 - self.probabilities)[known].astype(np.float64)
        return float(-np.log(np.maximum(chances, np.finfo(np.float32).tiny)).mean()) if known.any() else math.nan

    @property
    def baseline(self) -> float:
        """The mean share of positives: the average precision of a guess."""
        return mean_of(float(true.mean()) for _, true in self.questions())


class MultiLabel(TargetKind):
    """Labels that do not exclude each other: sigmoid and binary cross-entropy."""

    name, dimensions = "multi", 2
    default_metric = "roc_auc"
    scored = ScoredLabels
    baseline = BASE_RATE

    def unknown(self, nodes: int, classes: int) -> Array:
        """Return −1, (N, T) int8."""
        return np.full((nodes, classes), -1, dtype=np.int8)

    def known(self, labels: Array) -> Array:
        """Say which rows have one that is not −1."""
        return np.asarray((labels >= 0).any(axis=1))

    def check(self, labels: Array, nodes: int, classes: Sequence[str]) -> None:
        """Refuse other shapes than (N, T), and other values than 0, 1 and −1."""
        if labels.shape != (nodes, len(classes)):
            raise ShapeError(
                f"Labels have the shape {labels.shape}, there are {nodes:,} nodes and {len(classes)} labels.\n"
                "Give one row per node and one column per label."
            )
        if labels.size and (int(labels.min()) < -1 or int(labels.max()) > 1):
            wrong = int(labels.min()) if labels.min() < -1 else int(labels.max())
            raise LabelError(f"A label is {wrong}.\nOf several labels each is 0 or 1, or −1 where unknown.")

    def differ(self, labels: Array) -> bool:
        """Say whether a label occurs as well as its absence."""
        return bool(((labels == 1).any(axis=0) & (labels == 0).any(axis=0)).any())

    def strata(self, labels: Array) -> Array:
        """Draw from all nodes that have a label."""
        return np.where(self.known(labels), 0, -1)

    def translated(self, labels: Array, places: Array, classes: int) -> Array:
        """Return the columns where they belong; classes that are nowhere are left out, missing ones unknown."""
        found = self.unknown(len(labels), classes)
        found[:, places[places >= 0]] = labels[:, places >= 0]
        return found

    def rows(self, labels: Array, classes: int, otherwise: Array | None = None) -> Array:
        """Return 0 and 1."""
        return np.where(labels >= 0, labels, 0 if otherwise is None else otherwise).astype(np.float32)

    def rows_of(self, labels: Array, classes: int) -> list[Array]:
        """Return the nodes with each label."""
        return [np.flatnonzero(column == 1) for column in labels.T]

    def commonest(self, labels: Array, classes: Sequence[str]) -> tuple[float, str]:
        """Return the share of absent labels, or of present ones."""
        share = float((labels == 1).sum() / max(1, (labels >= 0).sum()))
        return (share, "present") if share > 0.5 else (1 - share, "absent")

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the mean over T of the binary cross-entropy of the labels that are known; weights (2, T)."""
        from torch import where
        from torch.nn.functional import binary_cross_entropy_with_logits

        counts = (labels >= 0).to(logits.dtype)
        if weights is not None:
            counts = counts * where(labels == 1, weights[1], weights[0])
        truth = labels.clamp(min=0).to(logits.dtype)
        return (counts * binary_cross_entropy_with_logits(logits, truth, reduction="none")).mean(dim=1)

    def balanced(self, labels: Array, classes: int) -> Array:
        """Return the weights of 0 and 1 of each label, (2, T) float32."""
        return balanced(np.stack([(labels == 0).sum(axis=0), (labels == 1).sum(axis=0)]))

    def probabilities(self, logits: Array, temperature: float = 1.0) -> Array:
        """Return sigmoid(logits / T), without overflow."""
        with np.errstate(over="ignore"):
            return np.asarray(
                np.exp(-np.logaddexp(np.float32(0), -logits.astype(np.float32) / np.float32(temperature)))
            )

    def link(self, logits: Tensor) -> Tensor:
        """Return the sigmoid."""
        return logits.sigmoid()

    def questions(self, probabilities: Tensor) -> Tensor:
        """T questions, yes and no, (B, T, 2)."""
        from torch import stack

        return stack([probabilities, 1 - probabilities], dim=2).nan_to_num(nan=0.0)

    def log_answers(self, logits: Tensor) -> Tensor:
        """Return log sigmoid(±h), (B, T, 2)."""
        from torch import stack
        from torch.nn.functional import logsigmoid

        return stack([logsigmoid(logits), logsigmoid(-logits)], dim=2)

    def confidence(self, probabilities: Array) -> Array:
        """Return max(p, 1 − p), (R, T)."""
        return np.asarray(np.maximum(probabilities, 1 - probabilities))

    def trusted(self, probabilities: Array, threshold: float) -> Array:
        """Return rows with gaps: a label is trusted, not a node."""
        return np.where(self.confidence(probabilities) > threshold, probabilities, np.float32(np.nan))

    def answered(self, trusted: Array) -> Array:
        """Return 0 or 1 of each label."""
        return np.where(np.isnan(trusted), -1, trusted > 0.5).astype(np.int8)

    def votes(self, labels: Array, classes: int) -> Array:
        """Spread yes and no apart, (n, 2T), so that what has come of both can be weighed."""
        return np.concatenate([labels == 1, labels == 0], axis=1).astype(np.float32)

    def counted(self, votes: Array, otherwise: Array) -> Array:
        """Return yes / (yes + no)."""
        yes, no = np.split(votes.clip(0, None), 2, axis=1)
        both = yes + no
        return np.where(both > 0, yes / np.where(both > 0, both, 1), otherwise).astype(np.float32)

    def bounded(self, scores: Array, otherwise: Array) -> Array:
        """Cut off what is below 0 or above 1."""
        return scores.clip(0, 1).astype(np.float32, copy=False)

    def predicted(self, probabilities: Array) -> Array:
        """Return 1 where p > ½."""
        return (probabilities > 0.5).astype(np.int8)

    def words(self, labels: Array, classes: Sequence[str]) -> Array:
        """Return the names of the labels that a node has with ; between; "" where it has none."""
        names, known = np.array(classes, dtype=object), self.known(labels)
        found = np.empty(len(labels), dtype=object)
        for at in np.flatnonzero(known):
            found[at] = BETWEEN.join(names[labels[at] == 1])
        return found
