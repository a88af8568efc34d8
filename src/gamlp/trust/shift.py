"""Whether nodes are like the validation nodes, seen without a single label of theirs.

Calibration and coverage are measured on validation nodes and hold for nodes drawn like them. Three things are known of
every node without its label: how sure the model is, how many neighbours it has, which class it was given. For each, the
largest gap between the two distribution functions (Kolmogorov-Smirnov; for classes half the sum of the gaps of their
shares) is a distance in [0, 1]:

    D = max_t |F_valid(t) − F_other(t)|

A distance counts as a shift where it is above 0.1 and above what chance gives once in ten thousand draws of alike
nodes, p = 10⁻⁴: D > √(ln(2/p)/2 · (n+m)/(nm)), Smirnov's bound; for the classes Pearson's χ² test.

How right the model still is can be guessed from its confidence alone (average thresholded confidence, Garg et al.
2022): the share of nodes above the threshold that as many validation nodes exceed as are right. On debian it says 77 %
where 67 % is the truth: a guess, and a bound in practice, no measurement.

Cost: sorting the confidences, O(N log N).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.storage.files import Array

LEAST = 0.1  # a smaller distance harms little
CHANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Witness:
    """What is known of n nodes without their labels."""

    confidence: Array  # (n,) float32
    degree: Array  # (n,) int64
    predicted: Array  # (n,) int64

    @classmethod
    def of(cls, probabilities: Array, degree: Array) -> Witness:
        """Return it of n nodes with probabilities (n, C)."""
        return cls(probabilities.max(axis=1), degree.astype(np.int64), probabilities.argmax(axis=1).astype(np.int64))


def shift_data(valid: Witness, other: Witness, *, classes: int, valid_accuracy: float) -> dict[str, Any]:
    """Return the distances, which of them are shifts, and what accuracy is to be expected, as JSON holds it."""
    n, m = len(valid.confidence), len(other.confidence)
    if not n or not m:
        return {}
    distances = {name: ks_distance(getattr(valid, name), getattr(other, name)) for name in ("confidence", "degree")}
    distances["predicted"] = share_distance(valid.predicted, other.predicted, classes)
    beyond = {name: distance > chance_distance(n, m) for name, distance in distances.items()}
    beyond["predicted"] = shares_differ(valid.predicted, other.predicted, classes)
    found = [name for name, distance in distances.items() if distance > LEAST and beyond[name]]
    return {
        "found": found,
        "distances": distances,
        "mean_confidence": {"valid": _mean(valid.confidence), "other": _mean(other.confidence)},
        "median_degree": {"valid": float(np.median(valid.degree)), "other": float(np.median(other.degree))},
        "expected_accuracy": expected_accuracy(valid.confidence, other.confidence, valid_accuracy),
    }


def ks_distance(one: Array, other: Array) -> float:
    """Return the largest gap between two empirical distribution functions, (n,), (m,) → [0, 1]."""
    one, other = np.sort(one), np.sort(other)
    places = np.concatenate([one, other])
    gaps = np.searchsorted(one, places, "right") / len(one) - np.searchsorted(other, places, "right") / len(other)
    return float(np.abs(gaps).max())


def share_distance(one: Array, other: Array, classes: int) -> float:
    """Return half the sum of the gaps between the shares of each class, (n,), (m,) → [0, 1]."""
    shares = [np.bincount(given, minlength=classes) / len(given) for given in (one, other)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def chance_distance(n: int, m: int) -> float:
    """Return the distance that n and m alike nodes exceed with probability `CHANCE` at most."""
    return math.sqrt(math.log(2 / CHANCE) / 2 * (n + m) / (n * m))


def shares_differ(one: Array, other: Array, classes: int) -> bool:
    """Say whether the shares of the classes differ by more than chance, (n,), (m,): χ² over those that occur."""
    from scipy.stats import chi2

    counts = np.array([np.bincount(given, minlength=classes) for given in (one, other)])
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return bool(chi2.sf((np.square(counts - expected) / expected).sum(), max(1, counts.shape[1] - 1)) < CHANCE)


def expected_accuracy(valid: Array, other: Array, valid_accuracy: float) -> float:
    """Return the share of confidences (m,) above the threshold that a share `valid_accuracy` of valid (n,) exceeds."""
    threshold = np.quantile(valid, 1 - valid_accuracy)
    return float((other >= threshold).mean())


def warning_of(shift: Mapping[str, Any], what: str) -> str | None:
    """Say in words what differs between the validation nodes and others, called `what`; None where nothing does."""
    if not shift.get("found"):
        return None
    sure, near = shift["mean_confidence"], shift["median_degree"]
    words = {
        "confidence": f"the mean confidence is {100 * sure['valid']:.0f} % and {100 * sure['other']:.0f} %",
        "degree": f"the median number of neighbours {near['valid']:g} and {near['other']:g}",
        "predicted": f"the shares of predicted classes differ by {100 * shift['distances']['predicted']:.0f} %",
    }
    return (
        f"The validation nodes and the {what} are not alike: {', '.join(words[name] for name in shift['found'])}. "
        "Confidence and coverage, which are measured on validation nodes, promise less there; "
        f"by the confidence alone an accuracy near {100 * shift['expected_accuracy']:.0f} % is to be expected."
    )


def _mean(values: Array) -> float:
    return float(values.mean(dtype=np.float64))
