"""Whether a confidence of 80 % is right 80 times of 100: the diagram of `trust.reliability`, before and after."""

from __future__ import annotations

import numpy as np

from gamlp.explain.figures.chart import BAR, SECOND, SOFT, Axes, Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.storage.files import Array
from gamlp.trust.reliability import Reliability, reliability
from gamlp.trust.shift import warning_of

HEADER = ("from", "to", "nodes", "confidence", "right")
LEGEND = "Bars: share that is right. Rules: mean confidence of the bar. Dotted: where both are equal."


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the share of test nodes that are right in each bin of confidence, before the temperature as well."""
    if not len(run.test):
        return []
    found = reliability(*answers(run))
    note = (
        f"Expected calibration error: {100 * found.error:.1f} %, the mean gap between confidence and accuracy on test "
        f"nodes; chance alone gives as many nodes {100 * found.chance:.1f} %. {LEGEND}"
    )
    after = reliability_chart("calibration", "Share of right predictions by confidence", found, note)
    told = run.trust.get("test")
    if told is None:
        return [after]
    words = (
        f"Without the temperature of {run.trust['temperature']:.2f}, which was fitted on validation nodes, the error "
        f"is {100 * told['before']['calibration_error']:.1f} %; Brier score {told['before']['brier_score']:.3f}, with "
        f"it {told['after']['brier_score']:.3f}; log loss {told['before']['log_loss']:.3f} and "
        f"{told['after']['log_loss']:.3f}. {warning_of(run.trust.get('shift', {}), 'test nodes') or ''}"
    )
    before = Reliability.from_data(told["before"])
    return [after, reliability_chart("calibration-before", "Before the temperature", before, words.rstrip())]


def reliability_chart(name: str, title: str, found: Reliability, note: str) -> Chart:
    """Draw one diagram."""
    columns = (found.edges[:-1], found.edges[1:], found.nodes, found.confidence, found.right)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return Chart(name, title, HEADER, rows, lambda axes: draw(axes, found), note=note)


def answers(run: FinishedRun) -> tuple[Array, Array]:
    """Return the confidence of every answer about test nodes, one a node or one a known label, and which are right."""
    confidence = run.kind.confidence(run.probabilities[run.test])  # (n, Q)
    said, true = (labels[run.test].reshape(confidence.shape) for labels in (run.predicted, run.labels))
    return confidence[true >= 0], (said == true)[true >= 0]


def draw(axes: Axes, found: Reliability) -> None:
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
