"""Where a run goes wrong on test nodes: which classes it confuses, at which degrees, and which labels it doubts.

A test node given another class with great confidence is a mistake of the run, or of whoever labelled the node: the most
confident ones are worth a look by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.explain.attention import ALL_RANGES, name_of, within
from gamlp.explain.finished_run import OpenedRun
from gamlp.storage.files import Array


@dataclass(frozen=True)
class Group:
    """How well one group of test nodes is predicted."""

    name: str
    nodes: int
    accuracy: float


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


def by_degree(run: OpenedRun) -> list[Group]:
    """Return the accuracy of each degree range that occurs."""
    degrees, right = run.degrees[run.test], right_of(run)
    found = [(name_of(limits), right[within(degrees, limits)]) for limits in ALL_RANGES]
    return [Group(name, len(members), float(members.mean())) for name, members in found if len(members)]


def by_class(run: OpenedRun, *, most: int = 200) -> list[Group]:
    """Return the accuracy within each class, the largest classes first."""
    labels, right = run.labels[run.test], right_of(run)
    nodes = np.bincount(labels, minlength=len(run.graph.classes))
    hits = np.bincount(labels[right], minlength=len(run.graph.classes))
    order = [number for number in np.argsort(-nodes, kind="stable")[:most] if nodes[number]]
    return [
        Group(run.graph.classes[number], int(nodes[number]), float(hits[number] / nodes[number])) for number in order
    ]


def confusion(run: OpenedRun, *, most: int = 10) -> Confusion:
    """Count labels against predictions for the classes with the most mistakes, given or taken."""
    labels, predicted, classes = run.labels[run.test], run.predicted[run.test], len(run.graph.classes)
    wrong = labels != predicted
    mistakes = np.bincount(labels[wrong], minlength=classes) + np.bincount(predicted[wrong], minlength=classes)
    chosen = np.sort(np.argsort(-mistakes, kind="stable")[:most])
    totals = np.bincount(labels, minlength=classes)
    counts = np.zeros((len(chosen), len(chosen) + 1), dtype=np.int64)
    for row, label in enumerate(chosen):
        given = np.bincount(predicted[labels == label], minlength=classes)
        counts[row, :-1] = given[chosen]
        counts[row, -1] = given.sum() - given[chosen].sum()
    return Confusion(tuple(run.graph.classes[number] for number in chosen), counts, totals[chosen])


def confused_pairs(run: OpenedRun, *, most: int = 12) -> list[Pair]:
    """Return the pairs of label and prediction that occur most."""
    labels, predicted, classes = run.labels[run.test], run.predicted[run.test], len(run.graph.classes)
    wrong = labels != predicted
    pairs, nodes = np.unique(labels[wrong] * classes + predicted[wrong], return_counts=True)
    totals = np.bincount(labels, minlength=classes)
    found = []
    for place in np.argsort(-nodes, kind="stable")[:most]:
        label, given = divmod(int(pairs[place]), classes)
        names = run.graph.classes[label], run.graph.classes[given]
        found.append(Pair(*names, int(nodes[place]), float(nodes[place] / totals[label])))
    return found


def doubted(run: OpenedRun, *, least: float = 0.0, most: int = 100) -> Array:
    """Return the rows of test nodes given another class with a confidence of `least`, the surest first."""
    wrong = run.test[~right_of(run)]
    wrong = wrong[run.confidence[wrong] >= least]
    return np.asarray(wrong[np.argsort(-run.confidence[wrong], kind="stable")][:most])


def right_of(run: OpenedRun) -> Array:
    """Return which test nodes were predicted right."""
    return np.asarray(run.predicted[run.test] == run.labels[run.test])
