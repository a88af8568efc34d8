"""Labels that are probably wrong, ranked: confident learning (Northcutt, Jiang, Chuang 2021) on the pipeline.

A network can learn a wrong label by heart, so a label is judged only by networks that did not train on it. The training
nodes are dealt into M = 5 folds, class by class; for each fold the run's own method is trained on the others, on the
same hops, and what it says of the fold, calibrated on validation, is out of sample. Validation, test and unlabelled
nodes are out of sample in all M fits, whose mean is taken. With p̂ the out-of-sample probabilities and y the labels,

    t_j = mean of p̂_ij over the nodes labelled j           how sure the model is of a class when it is given it
    suspected: some class k ≠ y_i has p̂_ik ≥ t_k;  the likeliest of these is what the label should be
    ranked by  p̂_{i,y_i} − max_{k ≠ y_i} p̂_ik              the margin, smallest first; suspected nodes before others

Agreement is the share of the fits in which the node was out of sample that gave it the suggested class. A class with
one training node stays in training: it cannot be judged. Cost: M fits and no further propagation of features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.errors import SettingsError, SplitError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.pipeline import Pipeline
from gamlp.progress import progress
from gamlp.storage.files import Array

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Ranking:
    """All judged nodes, the most doubtful first."""

    nodes: Array  # (n,) ids
    labels: Array  # (n,) as given
    suggested: Array  # (n,) the likeliest other class, or of those that t admits
    margin: Array  # (n,) p̂ of the label less that of the likeliest other class, in [−1, 1]
    agreement: Array  # (n,) share of the fits
    suspected: Array  # (n,) bool


def find_mislabelled(pipeline: Pipeline, graph: Graph, split: Split, seed: int, *, folds: int = FOLDS) -> Ranking:
    """Judge the labels of the training, validation and test nodes of a graph."""
    if graph.labels.ndim > 1:
        raise SettingsError(
            f"{graph.name} has several labels a node.\nWrong labels are looked for where every node has one class."
        )
    probabilities, votes = out_of_sample(pipeline, graph, split, seed, folds=folds)
    nodes = np.sort(np.concatenate([split.train, split.valid, split.test]))
    nodes = nodes[(graph.labels[nodes] >= 0) & np.isfinite(probabilities[nodes, 0])]
    if not len(nodes):
        raise SplitError("No label can be judged.\nAt least two training nodes of a class are needed.")
    return ranked(nodes, graph.labels[nodes], probabilities[nodes], votes[nodes])


def out_of_sample(pipeline: Pipeline, graph: Graph, split: Split, seed: int, *, folds: int) -> tuple[Array, Array]:
    """Return p̂ (N, C), NaN for nodes that were never out of sample, and the share of fits by class (N, C)."""
    fold_of = dealt(graph.labels[split.train], folds, seed)
    total = np.zeros((graph.nodes, len(graph.classes)))
    votes, count = np.zeros_like(total), np.zeros((graph.nodes, 1))
    with progress("folds", total=folds) as advance:
        for fold in range(folds):
            out = split.train[fold_of == fold]
            part = Split(split.train[fold_of != fold], split.valid, np.sort(np.concatenate([split.test, out])))
            said = pipeline.fit(graph, part, seed).prediction
            assert said is not None
            fresh = ~np.isin(said.rows, part.train)
            rows, found = said.rows[fresh], said.probabilities[fresh]
            total[rows] += found
            votes[rows, found.argmax(axis=1)] += 1
            count[rows] += 1
            advance()
    seen = np.where(count > 0, count, np.nan)
    return total / seen, votes / seen


def dealt(labels: Array, folds: int, seed: int) -> Array:
    """Return the fold of each training node (T,), dealt class by class; −1 for the only one of its class."""
    random = np.random.default_rng([seed, 0x3157])
    fold_of = np.full(len(labels), -1)
    first = 0
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        if len(members) > 1:
            fold_of[members] = (first + np.arange(len(members))) % folds
            first += len(members)  # the next class goes on where this one ended: folds of equal size
    return fold_of


def ranked(nodes: Array, labels: Array, probabilities: Array, votes: Array) -> Ranking:
    """Rank n nodes by their out-of-sample probabilities (n, C)."""
    each = np.arange(len(nodes))
    own = probabilities[each, labels]
    classes = probabilities.shape[1]
    sums = np.bincount(labels, weights=own, minlength=classes)
    counts = np.bincount(labels, minlength=classes)
    sure = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)  # t
    others = probabilities.copy()
    others[each, labels] = -1.0
    admitted = np.where(others >= sure, others, -1.0)
    suspected = admitted.max(axis=1) >= 0
    suggested = np.where(suspected, admitted.argmax(axis=1), others.argmax(axis=1))
    margin = own - others.max(axis=1)
    order = np.lexsort((nodes, margin, ~suspected))
    fields = (nodes, labels, suggested, margin, votes[each, suggested], suspected)
    return Ranking(*(values[order] for values in fields))
