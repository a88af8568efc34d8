"""How good predictions are: accuracy, macro-F1, log loss, and their mean and spread over runs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np

from gamlp.storage.files import Array


def accuracy(probabilities: Array, labels: Array) -> float:
    """Return the share of rows whose largest probability is the label's.  (R, C), (R,) → [0, 1]."""
    return float((probabilities.argmax(axis=1) == labels).mean()) if len(labels) else float("nan")


def macro_f1(probabilities: Array, labels: Array) -> float:
    """Return the mean over the classes that occur of F1 = 2·hits / (predicted + true)."""
    predicted = probabilities.argmax(axis=1)
    classes = probabilities.shape[1]
    hits = np.bincount(labels[predicted == labels], minlength=classes)
    named = np.bincount(predicted, minlength=classes) + np.bincount(labels, minlength=classes)
    return float((2 * hits[named > 0] / named[named > 0]).mean()) if len(labels) else float("nan")


def log_loss(probabilities: Array, labels: Array) -> float:
    """Return the mean of −log p(label), with p no smaller than float32 can tell from 0."""
    chosen = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    return float(-np.log(np.maximum(chosen, np.finfo(np.float32).tiny)).mean()) if len(labels) else float("nan")


def scores(probabilities: Array, labels: Array) -> dict[str, float]:
    """Return all three by name."""
    return {
        "accuracy": accuracy(probabilities, labels),
        "macro_f1": macro_f1(probabilities, labels),
        "log_loss": log_loss(probabilities, labels),
    }


def mean_and_std(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and the unbiased standard deviation (ddof = 1), which one value does not have."""
    return fmean(values), stdev(values) if len(values) > 1 else None
