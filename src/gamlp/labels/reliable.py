"""Which predictions of the last stage can be trusted as labels (paper, Reliable Label Propagation).

    P = softmax(H / T),  T in (0, 1]          V_r = { i in valid ∪ test : max_j P_ij > ε }

Rows are those of the candidates alone, never of all N nodes: a graph of 10⁸ nodes has 10⁶ candidates. Cost O(R·C).
The candidates are the validation and test *nodes*; their labels are no argument here.

SLE (Sun et al. 2021, for SAGN) makes labels of them: from the second stage on, the training set grows by the trusted
candidates, with their most likely class as a hard label, and the label input is propagated from this enlarged set:

    V_l' = V_l ∪ V_r,    y_i = argmax_j P_ij

In reliable label utilization the soft rows are the input, and a weighted divergence, not a hard label, is the target.
"""

from __future__ import annotations

import numpy as np

from gamlp.errors import SettingsError
from gamlp.labels.hops import check_rows
from gamlp.storage.files import Array


def soften(logits: Array, temperature: float) -> Array:
    """Return softmax(logits / T) by rows, (R, C) → (R, C) float32; a small T hardens, and never overflows."""
    if not temperature > 0:
        raise SettingsError(f"The temperature is {temperature}.\nIt must be above 0; 1 leaves the softmax as it is.")
    below_top = logits.astype(np.float32)
    below_top -= below_top.max(axis=1, keepdims=True)  # before the division: the top stays exactly 0
    with np.errstate(over="ignore"):  # −∞ is the right exponent of a class that T rules out
        probabilities = np.exp(below_top / np.float32(temperature))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return np.asarray(probabilities)


def is_reliable(probabilities: Array, threshold: float) -> Array:
    """Say for each row whether its top probability exceeds the threshold, (R, C) → (R,) bool; 0 trusts every row."""
    if threshold <= 0:
        return np.ones(len(probabilities), dtype=bool)
    return np.asarray(probabilities.max(axis=1) > threshold)


def reliable_set(probabilities: Array, candidates: Array, threshold: float) -> Array:
    """Return the candidates that can be trusted, in their order; row i of `probabilities` is candidates[i]."""
    check_rows(candidates, probabilities, "candidate")
    return np.asarray(candidates[is_reliable(probabilities, threshold)])


def enlarged_training_set(
    probabilities: Array, candidates: Array, threshold: float, train_ids: Array, train_labels: Array
) -> tuple[Array, Array]:
    """Return the training nodes followed by the trusted candidates, and a label for each.

    Row i of `probabilities` (R, C) is candidates[i]. A candidate that is a training node keeps its true label.
    """
    check_rows(candidates, probabilities, "candidate")
    check_rows(train_ids, train_labels, "training")
    new = is_reliable(probabilities, threshold) & ~np.isin(candidates, train_ids)
    ids = np.concatenate([train_ids, candidates[new]])
    labels = np.concatenate([train_labels, probabilities[new].argmax(axis=1).astype(train_labels.dtype)])
    return ids, labels
