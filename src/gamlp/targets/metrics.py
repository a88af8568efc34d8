"""How good predictions are, by metrics that are registered, and their mean and spread over runs.

    accuracy            share of rows that are right             balanced_accuracy   mean recall of the classes
    macro_f1            mean of 2·hits / (predicted + true)      log_loss            mean of −log p(label)
    roc_auc             chance that a positive is ranked above a negative, ties counting half
    average_precision   Σ_k (recall_k − recall_{k−1}) · precision_k over the thresholds

`Scored` holds predictions beside what is true; a kind of target says what each metric means for it (`single`, `multi`).
The last two are of yes-or-no questions: one class against the rest, or one label. A metric that the labels leave
undefined (one class only) is NaN here and empty in results.

scikit-learn has all of these; its values are what the tests compare with. One sort a question serves both ranking
metrics here, O(C·R log R): 58 classes of 55,000 nodes take a third of the time (0.33 s), and nothing is imported.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from statistics import fmean, stdev

import numpy as np

from gamlp.errors import did_you_mean
from gamlp.storage.files import Array

DEFAULT = "default"  # the metric that the kind of target has
Question = tuple[Array, Array]  # scores (R,), and which rows are positive (R,) bool


class Scored(ABC):
    """Probabilities of some rows beside their labels."""

    def __init__(self, probabilities: Array, labels: Array) -> None:
        self.probabilities, self.labels = probabilities, labels

    @property
    @abstractmethod
    def accuracy(self) -> float:
        """The share that is right."""

    @property
    @abstractmethod
    def balanced_accuracy(self) -> float:
        """The mean share that is right within each class."""

    @property
    @abstractmethod
    def macro_f1(self) -> float:
        """The mean F1 = 2·hits / (predicted + true)."""

    @property
    @abstractmethod
    def log_loss(self) -> float:
        """The mean of −log p(label), with p no smaller than float32 can tell from 0."""

    @property
    @abstractmethod
    def baseline(self) -> float:
        """What says whether a score means anything: how often the commonest answer is right."""

    @abstractmethod
    def questions(self) -> Iterator[Question]:
        """Yield the questions that are answered by a ranking."""

    @cached_property
    def curves(self) -> list[tuple[Array, Array]]:
        """Positives and negatives at or above each threshold, of each question."""
        return [curve(*question) for question in self.questions()]

    @property
    def roc_auc(self) -> float:
        """The area under the curve of true against false positives, mean over the questions."""
        return mean_of(area(*one) for one in self.curves)

    @property
    def average_precision(self) -> float:
        """The area under the steps of precision against recall, mean over the questions."""
        return mean_of(precision(*one) for one in self.curves)


def curve(scores: Array, positive: Array) -> tuple[Array, Array]:
    """Return how many positives and negatives have a score of at least each of the T distinct ones, highest first."""
    order = np.argsort(-scores, kind="stable")
    sorted_scores = scores[order]
    last = np.append(np.flatnonzero(sorted_scores[1:] != sorted_scores[:-1]), len(scores) - 1)  # of each threshold
    hits = np.cumsum(positive[order])[last]
    return hits, last + 1 - hits


def area(hits: Array, misses: Array) -> float:
    """Return ROC-AUC by trapezoids; NaN where all rows are positive, or none."""
    if not hits[-1] or not misses[-1]:
        return math.nan
    before = np.concatenate([[0], hits[:-1]])
    return float((np.diff(misses, prepend=0) * (hits + before)).sum() / (2 * hits[-1] * misses[-1]))


def precision(hits: Array, misses: Array) -> float:
    """Return the average precision; NaN where no row is positive."""
    return float((np.diff(hits, prepend=0) * hits / (hits + misses)).sum() / hits[-1]) if hits[-1] else math.nan


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the values that are defined; NaN where none is."""
    defined = [value for value in values if not math.isnan(value)]
    return fmean(defined) if defined else math.nan


@dataclass(frozen=True)
class Metric:
    """A name, and a function of probabilities and labels."""

    name: str
    title: str
    of: Callable[[Scored], float]
    higher: bool = True  # is better; such metrics are shares from 0 to 1

    def better(self, value: float) -> float:
        """Return a number that is larger the better the value."""
        return value if self.higher else -value

    @property
    def unit(self) -> str:
        """What stands behind a value."""
        return "%" if self.higher else ""

    @property
    def heading(self) -> str:
        """The title with its unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def said(self, mean: float | None, std: float | None = None) -> str:
        """Write a value with its unit."""
        return f"{self.text(mean, std)} {self.unit}".rstrip()

    def text(self, mean: float | None, std: float | None = None) -> str:
        """Write a value: 84.31 ± 0.52, or 0.512 of a loss."""
        if mean is None:
            return "–"
        if not self.higher:
            return f"{mean:.3f}"
        return f"{100 * mean:.2f}" + ("" if std is None else f" ± {100 * std:.2f}")


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", attrgetter("accuracy")),
        Metric("balanced_accuracy", "balanced accuracy", attrgetter("balanced_accuracy")),
        Metric("macro_f1", "macro-F1", attrgetter("macro_f1")),
        Metric("roc_auc", "ROC-AUC", attrgetter("roc_auc")),
        Metric("average_precision", "average precision", attrgetter("average_precision")),
        Metric("log_loss", "log loss", attrgetter("log_loss"), higher=False),
    )
}


LARGEST_CLASS = Metric("largest_class", "largest class", attrgetter("baseline"))
BASE_RATE = Metric("base_rate", "mean base rate", attrgetter("baseline"))
BASELINES = {
    one.name: one for one in (LARGEST_CLASS, BASE_RATE)
}  # of which a kind of target has one, beside all metrics


def known_metric(name: str) -> str:
    """Refuse a metric that is not registered."""
    if name not in (*METRICS, DEFAULT):
        raise ValueError(f"there is no such metric. {did_you_mean(name, METRICS)}")
    return name


def mean_and_std(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and the unbiased standard deviation (ddof = 1), which one value does not have."""
    return fmean(values), stdev(values) if len(values) > 1 else None
