"""What training follows: a loss to descend, and a score on validation that chooses epochs, stages and settings.

    loss   Σ_i w(y_i)·(−log p(y_i)) / n over the n nodes that train; w = 1, or balanced (`class_weight`)
    score  (metric, −log loss), larger = better; the second decides between equals

Where the validation labels leave the metric undefined (one class only), the log loss chooses alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.progress import log
from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.targets.metrics import METRICS, Metric
from gamlp.targets.registry import SINGLE

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Objective:
    """A kind of target with the metric that chooses, and what the classes weigh."""

    kind: TargetKind = SINGLE
    metric: Metric = METRICS[SINGLE.default_metric]
    weights: Array | None = None  # of the classes, in the loss

    @classmethod
    def of(cls, kind: TargetKind, settings: Any, train: Array, valid: Array, *, classes: int) -> Objective:
        """Return the objective of settings, for the labels that train and those that choose."""
        weighted = getattr(settings, "class_weight", "none") == "balanced"
        return cls(
            kind, defined_metric(kind, settings, valid, classes), kind.balanced(train, classes) if weighted else None
        )

    def loss(self, logits: Tensor, labels: Array) -> Tensor:
        """Return the loss of each row that trains, (B, C) → (B,)."""
        import torch

        weights = None if self.weights is None else torch.from_numpy(self.weights).to(logits.device)
        return self.kind.loss(logits, torch.from_numpy(labels).to(logits.device), weights)

    def score(self, probabilities: Array, labels: Array) -> tuple[float, float]:
        """Return metric and −log loss of predictions, larger = better."""
        scored = self.kind.scored(probabilities, labels)
        return self.metric.better(self.metric.of(scored)), -scored.log_loss

    def note(self, score: float) -> str:
        """Write the first half of a score on validation."""
        return f"valid {self.metric.said(self.metric.better(score))}"

    def facts(self, score: float) -> dict[str, float]:
        """Return the first half of a score on validation by the metric's name."""
        return {f"valid_{self.metric.name}": self.metric.better(score)}


def defined_metric(kind: TargetKind, settings: Any, valid: Array, classes: int) -> Metric:
    """Return the metric that settings name, or the log loss where these labels leave it undefined."""
    metric = kind.metric(settings)
    guessed = np.full((len(valid), classes), 1 / classes, np.float32)
    if len(valid) and math.isnan(metric.of(kind.scored(guessed, valid))):
        log.warning(
            "The %s of the validation nodes is not defined: their labels do not differ. The log loss chooses.",
            metric.title,
        )
        return METRICS["log_loss"]
    return metric
