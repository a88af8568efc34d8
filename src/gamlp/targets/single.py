"""One class a node: labels (N,), −1 = unknown; the default, and what all published tables are about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gamlp.errors import LabelError, ShapeError
from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.targets.metrics import LARGEST_CLASS, Question, Scored

if TYPE_CHECKING:
    from torch import Tensor


class ScoredClasses(Scored):
    """Probabilities (R, C) beside classes (R,); the largest probability is what is predicted."""

    @property
    def _counts(self) -> tuple[Array, Array, Array]:
        """How many rows of each class were right, were predicted, are true, (C,) each."""
        predicted, classes = self.probabilities.argmax(axis=1), self.probabilities.shape[1]
        groups = (self.labels[predicted == self.labels], predicted, self.labels)
        right, named, true = (np.bincount(group, minlength=classes) for group in groups)
        return right, named, true

    @property
    def accuracy(self) -> float:
        """The share of rows whose largest probability is the label's."""
        return float((self.probabilities.argmax(axis=1) == self.labels).mean()) if len(self.labels) else math.nan

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall of the classes that occur."""
        right, _, true = self._counts
        return float((right[true > 0] / true[true > 0]).mean()) if len(self.labels) else math.nan

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occur among labels or predictions."""
        right, named, true = self._counts
        both = named + true
        return float((2 * right[both > 0] / both[both > 0]).mean()) if len(self.labels) else math.nan

    @property
    def log_loss(self) -> float:
        """The mean of −log p(label)."""
        chosen = self.probabilities[np.arange(len(self.labels)), self.labels].astype(np.float64)
        floor = np.finfo(np.float32).tiny
        return float(-np.log(np.maximum(chosen, floor)).mean()) if len(self.labels) else math.nan

    @property
    def baseline(self) -> float:
        """The share of the largest class: the most that one answer for all rows can reach."""
        return float(np.bincount(self.labels).max() / len(self.labels)) if len(self.labels) else math.nan

    def questions(self) -> Iterator[Question]:
        """Yield each class that occurs against the rest; of two classes the rarer one alone, at a tie the second."""
        classes = self.probabilities.shape[1]
        true = np.bincount(self.labels, minlength=classes)
        asked = [int(true[1] <= true[0])] if classes == 2 else np.flatnonzero(true).tolist()
        for number in asked if len(self.labels) else ():
            yield self.probabilities[:, number], self.labels == number


class SingleLabel(TargetKind):
    """Classes that exclude each other: softmax and cross-entropy."""

    name, dimensions = "single", 1
    default_metric = "accuracy"
    scored = ScoredClasses
    baseline = LARGEST_CLASS

    def unknown(self, nodes: int, classes: int) -> Array:
        """Return −1, (N,) int64."""
        return np.full(nodes, -1, dtype=np.int64)

    def known(self, labels: Array) -> Array:
        """Say which are not −1."""
        return np.asarray(labels >= 0)

    def check(self, labels: Array, nodes: int, classes: Sequence[str]) -> None:
        """Refuse labels of the wrong length, or numbers that name no class."""
        if labels.shape != (nodes,):
            raise ShapeError(
                f"There are {len(labels):,} labels, the graph has {nodes:,} nodes.\nGive one per node, or −1."
            )
        low, high = int(labels.min()), int(labels.max())
        if low < -1 or high >= len(classes):
            raise LabelError(
                f"A label is {low if low < -1 else high}, there are {len(classes)} classes.\n"
                f"Labels must lie between 0 and {len(classes) - 1}, or be −1 where unknown."
            )

    def differ(self, labels: Array) -> bool:
        """Say whether two classes occur."""
        return len(np.unique(labels)) > 1

    def strata(self, labels: Array) -> Array:
        """Draw from each class."""
        return labels

    def translated(self, labels: Array, places: Array, classes: int) -> Array:
        """Return the place of each label's class."""
        return np.asarray(np.append(places, -1)[labels])

    def rows(self, labels: Array, classes: int, otherwise: Array | None = None) -> Array:
        """Return one-hot rows; there are no gaps."""
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            raise LabelError(
                f"Training labels run from {labels.min()} to {labels.max()}, there are {classes} classes.\n"
                f"Those of training nodes must lie between 0 and {classes - 1}."
            )
        rows = np.zeros((len(labels), classes), np.float32)
        rows[np.arange(len(rows)), labels] = 1
        return rows

    def rows_of(self, labels: Array, classes: int) -> list[Array]:
        """Return the nodes of each class."""
        return [np.flatnonzero(labels == number) for number in range(classes)]

    def commonest(self, labels: Array, classes: Sequence[str]) -> tuple[float, str]:
        """Return the share and the name of the largest class."""
        known = labels[labels >= 0]
        if not len(known):
            return 0.0, "none"
        counts = np.bincount(known)
        return float(counts.max() / len(known)), f"'{classes[int(counts.argmax())]}'"

    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return w_y · (log Σ_c exp h_c − h_y) of each row; weights (C,)."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(logits, labels, weight=weights, reduction="none")

    def balanced(self, labels: Array, classes: int) -> Array:
        """Return n / (C·n_c) of each class, (C,) float32; C counts the classes that occur."""
        return balanced(np.bincount(labels, minlength=classes))

    def probabilities(self, logits: Array, temperature: float = 1.0) -> Array:
        """Return softmax(logits / T) by rows; a small T hardens, and never overflows."""
        below_top = logits.astype(np.float32)
        below_top -= below_top.max(axis=1, keepdims=True)  # before the division: the top stays exactly 0
        with np.errstate(over="ignore"):  # −∞ is the right exponent of a class that T rules out
            probabilities = np.exp(below_top / np.float32(temperature))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return np.asarray(probabilities)

    def link(self, logits: Tensor) -> Tensor:
        """Return the softmax of each row."""
        return logits.softmax(dim=1)

    def questions(self, probabilities: Tensor) -> Tensor:
        """One question, (B, 1, C)."""
        return probabilities[:, None]

    def log_answers(self, logits: Tensor) -> Tensor:
        """Return log softmax, (B, 1, C)."""
        return logits.log_softmax(dim=1)[:, None]

    def confidence(self, probabilities: Array) -> Array:
        """Return the top probability, (R, 1)."""
        return np.asarray(probabilities.max(axis=1, keepdims=True, initial=0))

    def trusted(self, probabilities: Array, threshold: float) -> Array:
        """Return the rows as they are: those with less confidence are left out whole."""
        return probabilities

    def answered(self, trusted: Array) -> Array:
        """Return the likeliest class."""
        return np.asarray(trusted.argmax(axis=1))

    def votes(self, labels: Array, classes: int) -> Array:
        """Spread one-hot rows."""
        return self.rows(labels, classes)

    def counted(self, votes: Array, otherwise: Array) -> Array:
        """Divide rows by their sums."""
        return self.bounded(votes, otherwise)

    def bounded(self, scores: Array, otherwise: Array) -> Array:
        """Divide rows, negative values as 0, by their sums."""
        positive = scores.clip(0, None)
        sums = positive.sum(axis=1, keepdims=True)
        known = sums > 0
        return np.where(known, positive / np.where(known, sums, 1), otherwise).astype(np.float32, copy=False)

    def predicted(self, probabilities: Array) -> Array:
        """Return the likeliest class."""
        return np.asarray(probabilities.argmax(axis=1))

    def words(self, labels: Array, classes: Sequence[str]) -> Array:
        """Return the name of each class."""
        found = np.array([*classes, None], dtype=object)[labels]  # −1 takes the last
        return np.asarray(found)


def balanced(counts: Array) -> Array:
    """Return weights of classes of these sizes (C, …), 1 for empty ones.

    >>> balanced(np.array([6, 2, 0])).tolist()
    [0.6666666865348816, 2.0, 1.0]
    """
    there = counts > 0
    weights = counts.sum(axis=0) / (np.maximum(there.sum(axis=0), 1) * np.maximum(counts, 1))
    return np.where(there, weights, 1).astype(np.float32)
