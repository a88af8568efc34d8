"""What kind a target is: how its labels are learned, trusted and scored. One small class a kind, found by their shape.

    kind     labels            a node is asked                       link      loss
    single   (N,)              one question with C answers           softmax   cross-entropy
    multi    (N, T) of 0, 1    T questions with two answers, yes/no  sigmoid   binary cross-entropy, mean of the labels

−1 is unknown in both. Distillation, consistency and reliable labels are written in terms of questions and answers
(`questions`, `log_answers`), and so are the same for both. C is the width of what is predicted: classes, or T labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gamlp.storage.files import Array
from gamlp.targets.metrics import DEFAULT, METRICS, Metric, Scored

if TYPE_CHECKING:
    from torch import Tensor

MANY = 0.9  # a share of the training labels from which on the accuracy says little


class TargetKind(ABC):
    """A kind of target; without state."""

    name: ClassVar[str]  # in files
    dimensions: ClassVar[int]  # of the labels
    default_metric: ClassVar[str]
    scored: ClassVar[type[Scored]]
    baseline: ClassVar[Metric]  # without which no score means anything

    # labels
    @abstractmethod
    def unknown(self, nodes: int, classes: int) -> Array:
        """Return labels of which none is known."""

    @abstractmethod
    def known(self, labels: Array) -> Array:
        """Say which nodes have a label, one at least, (N,) bool."""

    @abstractmethod
    def check(self, labels: Array, nodes: int, classes: Sequence[str]) -> None:
        """Refuse labels of another shape, and values that mean nothing."""

    @abstractmethod
    def differ(self, labels: Array) -> bool:
        """Say whether there is anything to tell apart among labels of nodes that have some."""

    @abstractmethod
    def strata(self, labels: Array) -> Array:
        """Return groups from each of which a split is drawn, (N,) numbers, −1 = not drawn."""

    @abstractmethod
    def translated(self, labels: Array, places: Array, classes: int) -> Array:
        """Return labels by `classes` other ones: `places` says where each class stands among them, −1 = nowhere."""

    @abstractmethod
    def rows(self, labels: Array, classes: int, otherwise: Array | None = None) -> Array:
        """Return known labels as rows (n, C) float32: 1 for what is true; gaps are 0, or as in `otherwise` (n, C)."""

    @abstractmethod
    def rows_of(self, labels: Array, classes: int) -> list[Array]:
        """Return where the nodes known to be of each class, or to have each label, stand."""

    @abstractmethod
    def commonest(self, labels: Array, classes: Sequence[str]) -> tuple[float, str]:
        """Return the share of the commonest answer among labels that are known, and what it is, in words."""

    # learning
    @abstractmethod
    def loss(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return −log p(label) of each row, (B, C) → (B,), weighted by class where there are weights."""

    @abstractmethod
    def balanced(self, labels: Array, classes: int) -> Array:
        """Return weights that make the classes of these labels count alike: n / (C·n_c), as scikit-learn has it.

        Their mean over the labels is 1; a class that does not occur has 1.
        """

    @abstractmethod
    def probabilities(self, logits: Array, temperature: float = 1.0) -> Array:
        """Return the link of logits / T, (R, C) → (R, C) float32."""

    @abstractmethod
    def link(self, logits: Tensor) -> Tensor:
        """Return the probabilities of logits, (B, C)."""

    @abstractmethod
    def questions(self, probabilities: Tensor) -> Tensor:
        """Return probabilities (B, C) as those of the answers to each question, (B, Q, K); gaps (NaN) are 0."""

    @abstractmethod
    def log_answers(self, logits: Tensor) -> Tensor:
        """Return the logarithm of the probability of each answer, (B, C) → (B, Q, K)."""

    # trusting
    @abstractmethod
    def confidence(self, probabilities: Array) -> Array:
        """Return the largest probability among the answers to each question, (R, C) → (R, Q)."""

    @abstractmethod
    def trusted(self, probabilities: Array, threshold: float) -> Array:
        """Return rows with gaps (NaN) where a question is answered with no more confidence than the threshold."""

    @abstractmethod
    def answered(self, trusted: Array) -> Array:
        """Return the likeliest answers of such rows as labels, −1 in gaps."""

    # spreading
    @abstractmethod
    def votes(self, labels: Array, classes: int) -> Array:
        """Return the rows that label propagation spreads, (n, V)."""

    @abstractmethod
    def counted(self, votes: Array, otherwise: Array) -> Array:
        """Return spread votes (R, V) as probabilities (R, C); `otherwise` (C,) where none has come."""

    @abstractmethod
    def bounded(self, scores: Array, otherwise: Array) -> Array:
        """Return corrected scores (R, C) as probabilities; `otherwise` fills rows without any."""

    # saying
    @abstractmethod
    def predicted(self, probabilities: Array) -> Array:
        """Return what is predicted, as labels are written: (R, C) → (R,) classes or (R, C) of 0 and 1."""

    @abstractmethod
    def words(self, labels: Array, classes: Sequence[str]) -> Array:
        """Return labels as words, (n,) objects; None where unknown."""

    def sureness(self, probabilities: Array) -> Array:
        """Return how sure each row is, (R,): its confidence, mean over the questions."""
        return np.asarray(self.confidence(probabilities).mean(axis=1))

    def metric(self, settings: Any) -> Metric:
        """Return what chooses with these settings: the metric that they name, or the kind's own."""
        name = getattr(settings, "metric", DEFAULT)
        return METRICS[self.default_metric if name == DEFAULT else name]

    def scores(self, probabilities: Array, labels: Array) -> dict[str, float]:
        """Return all metrics and the baseline by name; NaN where one is not defined."""
        scored = self.scored(probabilities, labels)
        return {metric.name: metric.of(scored) for metric in (*METRICS.values(), self.baseline)}

    def doubt(self, labels: Array, classes: Sequence[str], settings: Any) -> str | None:
        """Say what to do where nearly all of the training labels are alike, and the accuracy is to choose."""
        share, answer = self.commonest(labels, classes)
        if share <= MANY or self.metric(settings) != METRICS["accuracy"]:
            return None
        return (
            f"{100 * share:.1f} % of the training labels are {answer}: an accuracy of that is no achievement. "
            "Consider --metric average_precision and --set class_weight=balanced."
        )
