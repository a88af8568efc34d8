"""Whether a confidence of 80 % is right 80 times of 100, as numbers: bins, calibration error, Brier score.

The n nodes are sorted into B = 10 bins of equal width by their confidence, the largest probability; a bin holds its
upper edge, not its lower one. In each bin the mean confidence is compared with the share that is right. The expected
calibration error is the mean gap (Guo et al. 2017), the Brier score the squared distance from the truth:

    ECE = Σ_b n_b/n · |right_b − confidence_b|          Brier = 1/n Σ_i Σ_j (p_ij − [y_i = j])²   in [0, 2]

A model that means what it says shows an error too, since n_b nodes are right only about as often as they should be:
by chance alone E|right_b − confidence_b| ≈ √(2 c_b (1 − c_b) / π n_b), with c_b the mean confidence.

Cost: one pass over (n, C).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.storage.files import Array
from gamlp.targets.single import ScoredClasses

BINS = 10


@dataclass(frozen=True, eq=False)
class Reliability:
    """B bins of confidence; bins without a node have 0 everywhere."""

    edges: Array  # (B+1,)
    nodes: Array  # (B,)
    confidence: Array  # (B,) mean
    right: Array  # (B,) share
    error: float  # ECE

    @property
    def chance(self) -> float:
        """The error that as many nodes show by chance alone."""
        filled = self.nodes > 0
        nodes, sure = self.nodes[filled], np.clip(self.confidence[filled], 0, 1)
        return float((nodes * np.sqrt(2 * sure * (1 - sure) / (np.pi * nodes))).sum() / max(1, nodes.sum()))

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Reliability:
        """Return what `reliability_data` wrote."""
        nodes, confidence, right = (np.asarray(data["bins"][name]) for name in ("nodes", "confidence", "right"))
        return cls(np.linspace(0, 1, len(nodes) + 1), nodes, confidence, right, float(data["calibration_error"]))


def reliability(confidence: Array, right: Array, *, bins: int = BINS) -> Reliability:
    """Compare confidence (n,) in (0, 1] with right (n,) bool."""
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
    nodes = np.bincount(place, minlength=bins)
    filled = np.maximum(nodes, 1)
    mean = np.bincount(place, weights=confidence, minlength=bins) / filled
    share = np.bincount(place, weights=right, minlength=bins) / filled
    error = float((nodes * np.abs(share - mean)).sum() / max(len(confidence), 1))
    return Reliability(edges, nodes, mean, share, error)


def brier_score(probabilities: Array, labels: Array) -> float:
    """Return the mean of Σ_j (p_ij − [y_i = j])², (n, C), (n,) → [0, 2]."""
    values = probabilities.astype(np.float64)
    chosen = values[np.arange(len(labels)), labels]
    return float((np.square(values).sum(axis=1) - 2 * chosen + 1).mean()) if len(labels) else float("nan")


def reliability_data(probabilities: Array, labels: Array) -> dict[str, Any]:
    """Return everything of n ≥ 1 nodes as JSON holds it, (n, C), (n,)."""
    confidence = probabilities.max(axis=1)
    found = reliability(confidence, probabilities.argmax(axis=1) == labels)
    return {
        "nodes": len(labels),
        "mean_confidence": float(confidence.mean(dtype=np.float64)),
        "calibration_error": found.error,
        "chance_error": found.chance,
        "brier_score": brier_score(probabilities, labels),
        "log_loss": ScoredClasses(probabilities, labels).log_loss,
        "bins": {name: getattr(found, name).tolist() for name in ("nodes", "confidence", "right")},
    }
