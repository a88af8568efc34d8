"""Whether a confidence of 80 % is right 80 times of 100.

The n nodes are sorted into bins of equal width by their confidence; in each bin the mean confidence is compared with
the share that is right. The expected calibration error is the mean gap (Guo et al. 2017):

    ECE = Σ_b n_b/n · |right_b − confidence_b|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.storage.files import Array


@dataclass(frozen=True, eq=False)
class Calibration:
    """B bins of confidence; bins without a node have 0 everywhere."""

    edges: Array  # (B+1,)
    nodes: Array  # (B,)
    confidence: Array  # (B,) mean
    right: Array  # (B,) share
    error: float  # ECE


def calibration(confidence: Array, right: Array, *, bins: int = 10) -> Calibration:
    """Compare confidence (n,) in (0, 1] with right (n,) bool. A bin holds its upper edge, not its lower one."""
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
    nodes = np.bincount(place, minlength=bins)
    filled = np.maximum(nodes, 1)
    mean = np.bincount(place, weights=confidence, minlength=bins) / filled
    share = np.bincount(place, weights=right, minlength=bins) / filled
    error = float((nodes * np.abs(share - mean)).sum() / max(len(confidence), 1))
    return Calibration(edges, nodes, mean, share, error)
