"""Which classes are confused on test nodes, and how well groups of them are predicted: by degree, and by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gamlp.explain.figures.attention import ALL_RANGES, by_range
from gamlp.explain.figures.cells import Cells, bar_chart, heat_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.storage.files import Array


class Pair(NamedTuple):
    """Nodes of one class that were given another."""

    label: str
    predicted: str
    nodes: int
    share: float  # of the nodes with this label


class Group(NamedTuple):
    """How well one group of test nodes is predicted."""

    name: str
    nodes: int
    accuracy: float


@dataclass(frozen=True, eq=False)
class Confusion:
    """The M classes that are confused most: counts (M, M+1), the last column for all other classes."""

    classes: tuple[str, ...]
    counts: Array
    totals: Array  # (M,) test nodes of each


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the most confused classes and a bar a group; nothing where no test node has a label.

    Of several labels a node none was taken for another: there are the groups by degree, of nodes all right.
    """
    if not len(run.test):
        return []
    degrees = groups_chart("accuracy-by-degree", "Accuracy by number of neighbours", by_degree(run))
    if run.kind.dimensions > 1:
        return [degrees]
    return [
        confusion_chart(confusion(run)),
        degrees,
        groups_chart("accuracy-by-class", "Accuracy by class", by_class(run)),
    ]


def confusion_chart(found: Confusion) -> Chart:
    """Draw label × prediction, coloured by the share of the label."""
    columns = (*found.classes, "others")
    texts = [[f"{count:,}" if count else "" for count in counts] for counts in found.counts]
    shares = found.counts / np.maximum(found.totals, 1)[:, None]
    cells = Cells(found.classes, found.totals.tolist(), columns, texts, shares, framed=True)
    rows = [(name, *counts) for name, counts in zip(found.classes, found.counts.tolist(), strict=True)]
    note = "Rows: the label. Columns: the prediction. The stronger the colour, the larger the share of the row."
    return heat_chart("confusion", "The most confused classes", cells, xlabel="predicted", ylabel="label",
                      header=("label", *columns), rows=rows, note=note)  # fmt: skip


def groups_chart(name: str, title: str, groups: Sequence[Group]) -> Chart:
    """Draw the accuracy of groups."""
    bars = [(group.name, group.nodes, f"{100 * group.accuracy:.1f} %", group.accuracy) for group in groups]
    return bar_chart(name, title, bars, ("group", "nodes", "accuracy"), rows=groups, xlabel="accuracy on test nodes")


def confusion(run: FinishedRun, *, most: int = 10) -> Confusion:
    """Count labels against predictions for the classes with the most mistakes, given or taken."""
    labels, predicted, classes = run.labels[run.test], run.predicted[run.test], len(run.classes)
    wrong = labels != predicted
    mistakes = np.bincount(labels[wrong], minlength=classes) + np.bincount(predicted[wrong], minlength=classes)
    chosen = np.sort(np.argsort(-mistakes, kind="stable")[:most])
    totals = np.bincount(labels, minlength=classes)[chosen]
    given = np.array([np.bincount(predicted[labels == label], minlength=classes)[chosen] for label in chosen])
    others = totals - given.sum(axis=1)
    return Confusion(tuple(run.classes[number] for number in chosen), np.column_stack([given, others]), totals)


def confused_pairs(run: FinishedRun, *, most: int = 12) -> list[Pair]:
    """Return the pairs of label and prediction that occur most."""
    if run.kind.dimensions > 1:  # there is no one class that another was taken for
        return []
    labels, predicted, classes = run.labels[run.test], run.predicted[run.test], len(run.classes)
    wrong = labels != predicted
    pairs, nodes = np.unique(labels[wrong] * classes + predicted[wrong], return_counts=True)
    totals = np.bincount(labels, minlength=classes)
    order = np.argsort(-nodes, kind="stable")[:most]
    found = zip(*np.divmod(pairs[order], classes), nodes[order], strict=True)
    return [Pair(run.classes[one], run.classes[other], int(n), float(n / totals[one])) for one, other, n in found]


def by_degree(run: FinishedRun) -> list[Group]:
    """Return the accuracy of each degree range that occurs."""
    found = {name: run.right[ids] for name, ids in by_range(run.degrees[run.test], ALL_RANGES).items()}
    return [Group(name, len(members), float(members.mean())) for name, members in found.items() if len(members)]


def by_class(run: FinishedRun, *, most: int = 200) -> list[Group]:
    """Return the accuracy within each class, the largest classes first."""
    labels = run.labels[run.test]
    nodes = np.bincount(labels, minlength=len(run.classes))
    hits = np.bincount(labels[run.right], minlength=len(run.classes))
    order = [number for number in np.argsort(-nodes, kind="stable")[:most] if nodes[number]]
    return [Group(run.classes[number], int(nodes[number]), float(hits[number] / nodes[number])) for number in order]
