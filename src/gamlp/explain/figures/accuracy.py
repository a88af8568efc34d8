"""How well groups of test nodes are predicted: by number of neighbours, and by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gamlp.explain.figures.attention import ALL_RANGES, name_of, within
from gamlp.explain.figures.cells import Cells, bar_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun


@dataclass(frozen=True)
class Group:
    """How well one group of test nodes is predicted."""

    name: str
    nodes: int
    accuracy: float


def charts(run: FinishedRun) -> list[Chart]:
    """Draw a bar a group; nothing where no test node has a label."""
    if not len(run.test):
        return []
    return [
        groups_chart("accuracy-by-degree", "Accuracy by number of neighbours", by_degree(run)),
        groups_chart("accuracy-by-class", "Accuracy by class", by_class(run)),
    ]


def groups_chart(name: str, title: str, groups: Sequence[Group]) -> Chart:
    """Draw the accuracy of groups."""
    cells = Cells(
        style="bars",
        rows=[group.name for group in groups],
        nodes=[group.nodes for group in groups],
        columns=["accuracy"],
        texts=[[f"{100 * group.accuracy:.1f} %"] for group in groups],
        shares=np.array([[group.accuracy] for group in groups]),
    )
    rows = [(group.name, group.nodes, group.accuracy) for group in groups]
    return bar_chart(
        name, title, cells, xlabel="accuracy on test nodes", header=("group", "nodes", "accuracy"), rows=rows
    )


def by_degree(run: FinishedRun) -> list[Group]:
    """Return the accuracy of each degree range that occurs."""
    degrees = run.degrees[run.test]
    found = [(name_of(limits), run.right[within(degrees, limits)]) for limits in ALL_RANGES]
    return [Group(name, len(members), float(members.mean())) for name, members in found if len(members)]


def by_class(run: FinishedRun, *, most: int = 200) -> list[Group]:
    """Return the accuracy within each class, the largest classes first."""
    labels = run.labels[run.test]
    nodes = np.bincount(labels, minlength=len(run.classes))
    hits = np.bincount(labels[run.right], minlength=len(run.classes))
    order = [number for number in np.argsort(-nodes, kind="stable")[:most] if nodes[number]]
    return [Group(run.classes[number], int(nodes[number]), float(hits[number] / nodes[number])) for number in order]
