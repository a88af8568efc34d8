"""Which classes are confused on test nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.explain.figures.cells import Cells, heat_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.storage.files import Array


@dataclass(frozen=True)
class Pair:
    """Nodes of one class that were given another."""

    label: str
    predicted: str
    nodes: int
    share: float  # of the nodes with this label


@dataclass(frozen=True, eq=False)
class Confusion:
    """The M classes that are confused most: counts (M, M+1), the last column for all other classes."""

    classes: tuple[str, ...]
    counts: Array
    totals: Array  # (M,) test nodes of each


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the most confused classes, label × prediction, coloured by the share of the label."""
    if not len(run.test):
        return []
    found = confusion(run)
    columns = (*found.classes, "others")
    cells = Cells(
        style="heat",
        rows=found.classes,
        nodes=found.totals.tolist(),
        columns=columns,
        texts=[[f"{count:,}" if count else "" for count in counts] for counts in found.counts],
        shares=found.counts / np.maximum(found.totals, 1)[:, None],
        framed=True,
    )
    rows = [(name, *counts) for name, counts in zip(found.classes, found.counts.tolist(), strict=True)]
    note = "Rows: the label. Columns: the prediction. The stronger the colour, the larger the share of the row."
    return [heat_chart("confusion", "The most confused classes", cells, xlabel="predicted", ylabel="label",
                       header=("label", *columns), rows=rows, note=note)]  # fmt: skip


def confusion(run: FinishedRun, *, most: int = 10) -> Confusion:
    """Count labels against predictions for the classes with the most mistakes, given or taken."""
    labels, predicted, classes = run.labels[run.test], run.predicted[run.test], len(run.classes)
    wrong = labels != predicted
    mistakes = np.bincount(labels[wrong], minlength=classes) + np.bincount(predicted[wrong], minlength=classes)
    chosen = np.sort(np.argsort(-mistakes, kind="stable")[:most])
    totals = np.bincount(labels, minlength=classes)
    counts = np.zeros((len(chosen), len(chosen) + 1), dtype=np.int64)
    for row, label in enumerate(chosen):
        given = np.bincount(predicted[labels == label], minlength=classes)
        counts[row, :-1] = given[chosen]
        counts[row, -1] = given.sum() - given[chosen].sum()
    return Confusion(tuple(run.classes[number] for number in chosen), counts, totals[chosen])


def confused_pairs(run: FinishedRun, *, most: int = 12) -> list[Pair]:
    """Return the pairs of label and prediction that occur most."""
    labels, predicted, classes = run.labels[run.test], run.predicted[run.test], len(run.classes)
    wrong = labels != predicted
    pairs, nodes = np.unique(labels[wrong] * classes + predicted[wrong], return_counts=True)
    totals = np.bincount(labels, minlength=classes)
    found = []
    for place in np.argsort(-nodes, kind="stable")[:most]:
        label, given = divmod(int(pairs[place]), classes)
        names = run.classes[label], run.classes[given]
        found.append(Pair(*names, int(nodes[place]), float(nodes[place] / totals[label])))
    return found
