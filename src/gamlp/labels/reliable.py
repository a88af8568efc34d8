"""Which predictions of the last stage can be trusted as labels (paper, Reliable Label Propagation).

    P = softmax(H / T),  T in (0, 1]          V_r = { i in valid ∪ test : max_j P_ij > ε }

Rows are those of the candidates alone, never of all N nodes: a graph of 10⁸ nodes has 10⁶ candidates. Cost O(R·C).
The candidates are the validation and test *nodes*; their labels are no argument here.

SLE (Sun et al. 2021, for SAGN) makes labels of them: from the second stage on, the training set grows by the trusted
candidates, with their most likely class as a hard label, and the label input is propagated from this enlarged set:

    V_l' = V_l ∪ V_r,    y_i = argmax_j P_ij

Of several labels a node, each is trusted for itself: where max(p, 1 − p) > ε. A node is reliable if one of its labels
is; the others are gaps in its row, which teach nothing and are 0 as input. A label that hardly any node has is trusted
to be absent nearly everywhere, by its base rate alone: raise ε there.

In reliable label utilization the soft rows are the input, and a weighted divergence, not a hard label, is the target.
"""

from __future__ import annotations

import numpy as np

from gamlp.errors import SettingsError
from gamlp.labels.hops import check_rows
from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.targets.registry import SINGLE, kind_of


def soften(logits: Array, temperature: float, *, kind: TargetKind = SINGLE) -> Array:
    """Return softmax(logits / T) by rows, or the link of another kind of target, (R, C) → (R, C) float32."""
    if not temperature > 0:
        raise SettingsError(f"The temperature is {temperature}.\nIt must be above 0; 1 leaves the softmax as it is.")
    return kind.probabilities(logits, temperature)


def is_reliable(probabilities: Array, threshold: float, *, kind: TargetKind = SINGLE) -> Array:
    """Say for each row whether its top probability exceeds the threshold, (R, C) → (R,) bool; 0 trusts every row."""
    if threshold <= 0:
        return np.ones(len(probabilities), dtype=bool)
    return np.asarray((kind.confidence(probabilities) > threshold).any(axis=1))


def reliable_set(probabilities: Array, candidates: Array, threshold: float, *, kind: TargetKind = SINGLE) -> Array:
    """Return the candidates that can be trusted, in their order; row i of `probabilities` is candidates[i]."""
    check_rows(candidates, probabilities, "candidate")
    return np.asarray(candidates[is_reliable(probabilities, threshold, kind=kind)])


def enlarged_training_set(
    probabilities: Array, candidates: Array, threshold: float, train_ids: Array, train_labels: Array
) -> tuple[Array, Array]:
    """Return the training nodes followed by the trusted candidates, and a label for each.

    Row i of `probabilities` (R, C) is candidates[i]. A candidate that is a training node keeps its true label.
    """
    check_rows(candidates, probabilities, "candidate")
    check_rows(train_ids, train_labels, "training")
    kind = kind_of(train_labels)
    new = is_reliable(probabilities, threshold, kind=kind) & ~np.isin(candidates, train_ids)
    ids = np.concatenate([train_ids, candidates[new]])
    taken = kind.answered(kind.trusted(probabilities[new], threshold))
    return ids, np.concatenate([train_labels, taken.astype(train_labels.dtype)])
