"""Correct and Smooth (Huang et al. 2021): the labels' last word on finished predictions Z.

Correct, the errors of neighbours are alike: with E_i = Y_i − Z_i on training nodes and 0 elsewhere, spread for t steps

    E ← α Â E + (1 − α) E^(0)          Z' = Z + s·E

  autoscale    E clipped to [−1, 1] at each step; s_i = σ / Σ_j |E_ij|, σ the mean of Σ_j |E^(0)_ij| over training nodes
  fixed scale  the rows of training nodes set back to E^(0) at each step; s one number

Smooth, the labels of neighbours are alike: with Y in place of Z' on training nodes,

    Z' ← clip( α Â Z' + (1 − α) Z'^(0), 0, 1 )

Each step is one propagation of C columns: O(E·C). Rows are divided by their sums at the end, which changes no argmax.
Only training labels are arguments: the original may smooth with validation labels as well, this does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.labels.initial import initial_labels
from gamlp.labels.spreading import Step, spread, to_probabilities
from gamlp.propagate import Normalization, Propagator
from gamlp.storage.files import Array

SYMMETRIC = Normalization(r=0.5, self_loops=False)  # "DAD"; r = 0 is "DA", the mean of the neighbours, r = 1 is "AD"


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
    probabilities: Array,
    adjacency: Adjacency,
    train_ids: Array,
    train_labels: Array,
    *,
    settings: CorrectAndSmooth | None = None,
    device: str = "cpu",
) -> Array:
    """Return corrected and smoothed probabilities, (N, C) → (N, C) float32; train_labels has one entry per id."""
    settings = settings or CorrectAndSmooth()
    nodes, classes = probabilities.shape
    truth = initial_labels(nodes, classes, train_ids, train_labels)[train_ids]
    scores = probabilities
    if settings.correction:
        hop = Propagator(adjacency, settings.correction.normalization, device=device)
        scores = correct(scores, hop, train_ids, truth, settings.correction)
    if settings.smoothing:
        hop = Propagator(adjacency, settings.smoothing.normalization, device=device)
        scores = smooth(scores, hop, train_ids, truth, settings.smoothing)
    return scores if scores is probabilities else to_probabilities(scores, otherwise=probabilities)


def correct(scores: Array, hop: Step, train_ids: Array, truth: Array, how: Correction) -> Array:
    """Add the spread errors of the training nodes to `scores` (N, C); truth (len(train_ids), C) is one-hot."""
    start = np.zeros_like(scores, dtype=np.float32)
    start[train_ids] = truth - scores[train_ids]

    def set_back(errors: Array) -> Array:
        errors[train_ids] = start[train_ids]
        return errors

    if how.scale is not None:
        errors = spread(start, hop, alpha=how.alpha, steps=how.steps, after=set_back)
        return np.asarray(scores + np.float32(how.scale) * errors)
    errors = spread(start, hop, alpha=how.alpha, steps=how.steps, after=lambda e: e.clip(-1, 1))
    return np.asarray(scores + autoscale(errors, float(np.abs(start).sum()) / len(train_ids)) * errors)


def autoscale(errors: Array, sigma: float) -> Array:
    """Return s (N, 1) that brings each row of `errors` to the size σ; 1 where that is more than a thousandfold."""
    size = np.abs(errors).sum(axis=1, keepdims=True)
    within_reach = size * 1000 >= sigma
    return np.where(within_reach & (size > 0), sigma / np.where(size > 0, size, 1), 1).astype(np.float32)


def smooth(scores: Array, hop: Step, train_ids: Array, truth: Array, how: Smoothing) -> Array:
    """Spread `scores` (N, C) with the truth in place of the training rows."""
    start = scores.astype(np.float32)
    start[train_ids] = truth
    return spread(start, hop, alpha=how.alpha, steps=how.steps, after=lambda z: z.clip(0, 1))
