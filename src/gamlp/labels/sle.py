"""Predictions that become labels: self-label enhancement and label reuse.

SLE (Sun et al. 2021, for SAGN): from the second stage on, the training set grows by the candidates whose confidence
exceeds ε, with their most likely class as a hard label, and the label input is propagated from this enlarged set:

    V_l' = V_l ∪ { i in candidates : max_j P_ij > ε },    y_i = argmax_j P_ij

Reliable label utilization differs: there the soft rows are the input, and a weighted divergence, not a hard label, is
the target. Label reuse (Wang et al. 2021) has no threshold: a node without a label takes the network's own soft
prediction as its label row, and the network runs again.

    Ŷ⁰_i = Y_i where a label is known,    softmax(f(X, Ŷ⁰))_i elsewhere
"""

from __future__ import annotations

import numpy as np

from gamlp.labels.initial import check_rows
from gamlp.labels.reliable import is_reliable
from gamlp.storage.files import Array


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


def reuse_labels(initial: Array, probabilities: Array, ids: Array) -> Array:
    """Return `initial` (N, C) anew, where those of `ids` without a label have their row of `probabilities` (R, C)."""
    check_rows(ids, probabilities, "predicted")
    reused = initial.copy()
    missing = ~initial[ids].any(axis=1)
    reused[ids[missing]] = probabilities[missing]
    return reused
