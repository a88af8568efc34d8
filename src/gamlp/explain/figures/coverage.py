"""Whether the sets of `predict --coverage` hold what they promise: on test nodes, by level and by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from gamlp.explain.figures.cells import Cells, bar_chart, heat_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun

SHOWN = 0.9  # the level whose classes are shown
COLUMNS = ("contain the truth", "classes in a set", "of one class", "empty")
KEYS = ("coverage", "mean_size", "one_class", "empty")


def charts(run: FinishedRun) -> list[Chart]:
    """Draw a table of the levels and a bar for each class; nothing where no level can be promised."""
    levels = run.trust.get("coverage", [])
    if not levels:
        return []
    shown = next((level for level in levels if level["asked"] == SHOWN), levels[0])
    return [levels_chart(run, levels), classes_chart(run, shown)]


def levels_chart(run: FinishedRun, levels: list[dict[str, Any]]) -> Chart:
    """Draw what was asked for beside what was found."""
    names = [f"{100 * level['asked']:g} % asked for" for level in levels]
    values = [[level[key] for key in KEYS] for level in levels]
    texts = [
        [f"{row[0] * 100:.1f} %", f"{row[1]:.2f}", *(f"{100 * share:.1f} %" for share in row[2:])] for row in values
    ]
    shares = np.array(values) / [1, max(1, len(run.classes)), 1, 1]
    cells = Cells(names, [0] * len(names), COLUMNS, texts, shares)
    apart = "chose nothing else" if run.trust["apart"] else "also chose the epoch: it holds about"
    note = (
        f"The promise is made by {run.trust['calibration_nodes']:,} validation nodes, which {apart}. The table is of "
        "test nodes; nodes that are not drawn as the validation nodes were are promised nothing."
    )
    rows = [(level["asked"], *row) for level, row in zip(levels, values, strict=True)]
    return heat_chart("coverage", "Sets of classes and what they promise", cells, header=("asked for", *COLUMNS),
                      rows=rows, note=note)  # fmt: skip


def classes_chart(run: FinishedRun, level: dict[str, Any]) -> Chart:
    """Draw the coverage of each class, the largest classes first."""
    nodes = np.array(level["class_nodes"])
    order = [number for number in np.argsort(-nodes, kind="stable") if nodes[number]]
    groups = [(run.classes[number], int(nodes[number]), level["class_coverage"][number]) for number in order]
    bars = [(name, count, f"{100 * share:.1f} %", share) for name, count, share in groups]
    asked = f"{100 * level['asked']:g} %"
    note = f"{asked} is promised on average over all nodes, not for each class."
    title, header = f"Coverage of each class where {asked} are asked for", ("class", "nodes", "coverage")
    return bar_chart("coverage-by-class", title, bars, header, rows=groups, xlabel="coverage on test nodes", note=note)
