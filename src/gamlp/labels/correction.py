"""Labels spread over the graph: alone, and as their last word on finished predictions.

Label propagation (Zhu & Ghahramani 2002; the form of Zhou et al. 2004) needs no features:

    Y^(t+1) = clip( α Â Y^(t) + (1 − α) Y^(0), 0, 1 )

Y^(0) is one-hot for training nodes and 0 elsewhere. A node that no label reaches takes the training set's class shares.
Correct and Smooth (Huang et al. 2021) starts from predictions Z. Correct, the errors of neighbours are alike: with
E_i = Y_i − Z_i on training nodes and 0 elsewhere, spread for t steps

    E ← α Â E + (1 − α) E^(0)          Z' = Z + s·E

  autoscale    E clipped to [−1, 1] at each step; s_i = σ / Σ_j |E_ij|, σ the mean of Σ_j |E^(0)_ij| over training nodes
  fixed scale  the rows of training nodes set back to E^(0) at each step; s one number

Smooth, the labels of neighbours are alike: with Y in place of Z' on training nodes,

    Z' ← clip( α Â Z' + (1 − α) Z'^(0), 0, 1 )

Each step is one propagation of C columns: O(E·C), by whatever engine. Rows are divided by their sums at the end, which
changes no argmax. Without a known label there is no error to spread, and the predictions are smoothed as they are.
Several labels a node: yes and no are spread apart, 2T columns, and p = yes / (yes + no), or the label's base rate where
neither has come; corrected and smoothed values are cut off at 0 and 1, not divided; gaps have no error.
Only training labels are arguments: the original may smooth with validation labels as well, this does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.labels.hops import initial_labels
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.sources import OneHotRows, SparseRows, WithRows
from gamlp.propagate.spec import Propagation, Restart
from gamlp.storage.files import Array
from gamlp.targets.registry import kind_of

SYMMETRIC = Normalization(r=0.5, self_loops=False)  # "DAD"; r = 0 is "DA", the mean of the neighbours, r = 1 is "AD"


def label_propagation(
    engine: Engine,
    adjacency: Adjacency,
    train_ids: Array,
    train_labels: Array,
    *,
    classes: int,
    alpha: float = 0.9,
    steps: int = 50,
    normalization: Normalization = SYMMETRIC,
    rows: Array | None = None,
) -> Array:
    """Return probabilities of `rows`, None = all, (R, C) float32; by default Â is symmetric, without self-loops."""
    votes = kind_of(train_labels).votes(train_labels, classes)
    more: dict[str, Any] = {"alpha": alpha, "steps": steps, "normalization": normalization, "rows": rows}
    scores = spread_votes(engine, adjacency, train_ids, votes, **more)
    return kind_of(train_labels).counted(scores, otherwise=class_shares(train_labels, classes))


def spread_votes(
    engine: Engine,
    adjacency: Adjacency,
    train_ids: Array,
    votes: Array,
    *,
    alpha: float,
    steps: int,
    normalization: Normalization,
    rows: Array | None = None,
) -> Array:
    """Return Y^(steps) of `rows`, None = all, (R, V), from the votes of the training nodes."""
    start = SparseRows(adjacency.nodes, votes.shape[1], train_ids, votes)
    spec = Propagation(steps, normalization, rows=rows, keep="last", restart=Restart(alpha))
    return engine.transient().propagate(adjacency, start, spec).values[:, -1]


def class_shares(labels: Array, classes: int) -> Array:
    """Return the share of each class, or of the positives of each label, among known labels, (C,); even without any."""
    kind = kind_of(labels)
    votes = kind.votes(labels, classes).sum(axis=0, keepdims=True)
    return np.asarray(kind.counted(votes, otherwise=np.full(classes, 1 / classes, np.float32))[0])


@dataclass(frozen=True)
class Correction:
    """How errors spread; scale None = autoscale."""

    alpha: float = 0.8
    scale: float | None = None
    normalization: Normalization = SYMMETRIC
    steps: int = 50


@dataclass(frozen=True)
class Smoothing:
    """How corrected predictions spread."""

    alpha: float = 0.8
    normalization: Normalization = SYMMETRIC
    steps: int = 50


@dataclass(frozen=True)
class CorrectAndSmooth:
    """Both halves; None leaves a half out, and without both the predictions stay as they are."""

    correction: Correction | None = Correction()
    smoothing: Smoothing | None = Smoothing()


def correct_and_smooth(
    engine: Engine,
    probabilities: Array,
    adjacency: Adjacency,
    train_ids: Array,
    train_labels: Array,
    *,
    settings: CorrectAndSmooth | None = None,
    rows: Array | None = None,
    corrected: Array | None = None,
) -> Array:
    """Return corrected and smoothed probabilities of `rows`, None = all: (N, C) → (R, C) float32.

    train_labels has one entry per id; `corrected` (N, C) is what smoothing starts from, if it was computed before.
    """
    settings = settings or CorrectAndSmooth()
    known = known_rows(probabilities, train_ids, train_labels)
    before = probabilities if rows is None else probabilities[rows]
    correction = settings.correction if len(known.ids) else None
    if settings.smoothing is not None:
        if correction is None:
            corrected = probabilities
        elif corrected is None:
            corrected = correct(engine, probabilities, adjacency, known, correction)
        scores = smooth(engine, corrected, adjacency, known, settings.smoothing, rows)
    elif correction is not None:
        scores = correct(engine, probabilities, adjacency, known, correction, rows)
    else:
        return before
    return kind_of(train_labels).bounded(scores, otherwise=before)


def known_rows(probabilities: Array, train_ids: Array, train_labels: Array) -> OneHotRows:
    """Return the truth of the training nodes as rows; what is not known of them is as it was predicted."""
    nodes, classes = probabilities.shape
    return initial_labels(nodes, classes, train_ids, train_labels, otherwise=probabilities[train_ids])


def correct(
    engine: Engine, scores: Array, adjacency: Adjacency, known: OneHotRows, how: Correction, rows: Array | None = None
) -> Array:
    """Return `scores` (N, C) of `rows` with the spread errors of the known nodes added to them, (R, C)."""
    start = SparseRows(*known.shape, known.ids, known.rows - scores[known.ids])
    fixed = Restart(how.alpha, -np.inf, np.inf, fixed=known.ids)
    restart = Restart(how.alpha, -1, 1) if how.scale is None else fixed
    spec = Propagation(how.steps, how.normalization, rows=rows, keep="last", restart=restart)
    errors = engine.transient().propagate(adjacency, start, spec).values[:, -1]
    size = float(np.abs(start.rows).sum()) / len(known.ids)
    scale = autoscale(errors, size) if how.scale is None else np.float32(how.scale)
    return np.asarray((scores if rows is None else scores[rows]) + scale * errors)


def autoscale(errors: Array, sigma: float) -> Array:
    """Return s (N, 1) that brings each row of `errors` to the size σ; 1 where that is more than a thousandfold."""
    size = np.abs(errors).sum(axis=1, keepdims=True)
    within_reach = size * 1000 >= sigma
    return np.where(within_reach & (size > 0), sigma / np.where(size > 0, size, 1), 1).astype(np.float32)


def smooth(
    engine: Engine, scores: Array, adjacency: Adjacency, known: OneHotRows, how: Smoothing, rows: Array | None = None
) -> Array:
    """Return `scores` (N, C) of `rows` spread with the truth in place of the known rows, (R, C)."""
    spec = Propagation(how.steps, how.normalization, rows=rows, keep="last", restart=Restart(how.alpha))
    return engine.transient().propagate(adjacency, WithRows(scores, known.ids, known.rows), spec).values[:, -1]
