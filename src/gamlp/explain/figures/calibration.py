"""Whether a confidence of 80 % is right 80 times of 100.

The n nodes are sorted into bins of equal width by their confidence; in each bin the mean confidence is compared with
the share that is right. The expected calibration error is the mean gap (Guo et al. 2017):

    ECE = Σ_b n_b/n · |right_b − confidence_b|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.explain.figures.chart import BAR, SECOND, SOFT, Axes, Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.storage.files import Array


@dataclass(frozen=True, eq=False)
class Calibration:
    """B bins of confidence; bins without a node have 0 everywhere."""

    edges: Array  # (B+1,)
    nodes: Array  # (B,)
    confidence: Array  # (B,) mean
    right: Array  # (B,) share
    error: float  # ECE


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the share of test nodes that are right in each bin of confidence."""
    if not len(run.test):
        return []
    found = calibration(run.confidence[run.test], run.right)
    columns = (found.edges[:-1], found.edges[1:], found.nodes, found.confidence, found.right)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    note = (
        f"Expected calibration error: {100 * found.error:.1f} %, the mean gap between confidence and accuracy on test "
        "nodes. Bars: share that is right. Rules: mean confidence of the bar. Dotted: where both are equal."
    )
    title, header = "Share of right predictions by confidence", ("from", "to", "nodes", "confidence", "right")
    return [Chart("calibration", title, header, rows, lambda axes: draw(axes, found), note=note)]


def draw(axes: Axes, found: Calibration) -> None:
    """Draw a bar for each bin, a rule at its mean confidence, and the diagonal where both are equal."""
    from matplotlib.ticker import PercentFormatter

    filled = found.nodes > 0
    left, width = found.edges[:-1][filled], np.diff(found.edges)[filled]
    axes.grid(axis="y")
    axes.bar(left + 0.04 * width, found.right[filled], width=0.92 * width, align="edge", color=BAR)
    axes.hlines(found.confidence[filled], left + 0.04 * width, left + 0.96 * width, color=SECOND, linewidth=2.2)
    axes.plot([0, 1], [0, 1], color=SOFT, linestyle=":", linewidth=1.2)
    axes.set(xlabel="confidence", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))


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
