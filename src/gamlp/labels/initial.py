"""The labels that go into propagation (paper, Reliable Label Propagation).

    Ŷ⁰_i = one-hot(y_i)  for training nodes,    P_i  for reliable nodes,    0  otherwise

At the first stage no node is reliable. A node that is named twice is a training node: a true label is never replaced
by a prediction. Costs C float32 for each of these nodes; the zeros are not stored.
"""

from __future__ import annotations

import numpy as np

from gamlp.errors import LabelError, ShapeError
from gamlp.propagate.sources import SparseRows
from gamlp.storage.files import Array


def initial_labels(
    nodes: int,
    classes: int,
    train_ids: Array,
    train_labels: Array,
    *,
    reliable_ids: Array | None = None,
    reliable_probabilities: Array | None = None,
) -> SparseRows:
    """Return Ŷ⁰ (N, C); train_labels and reliable_probabilities have one row per id beside them."""
    check_rows(train_ids, train_labels, "training")
    if len(train_labels) and not 0 <= int(train_labels.min()) <= int(train_labels.max()) < classes:
        raise LabelError(
            f"Training labels run from {train_labels.min()} to {train_labels.max()}, there are {classes} classes.\n"
            f"Those of training nodes must lie between 0 and {classes - 1}."
        )
    ids, rows = np.asarray(train_ids, np.int64), one_hot(train_labels, classes)
    if reliable_ids is not None and reliable_probabilities is not None:
        check_rows(reliable_ids, reliable_probabilities, "reliable")
        others = ~np.isin(reliable_ids, train_ids)
        ids = np.concatenate([ids, reliable_ids[others]])
        rows = np.concatenate([rows, reliable_probabilities[others]])
    return SparseRows(nodes, classes, ids, rows)


def one_hot(labels: Array, classes: int) -> Array:
    """Return labels (n,) as rows (n, C) of zeros and a one."""
    rows = np.zeros((len(labels), classes), np.float32)
    rows[np.arange(len(labels)), labels] = 1
    return rows


def check_rows(ids: Array, rows: Array, name: str) -> None:
    """Refuse labels that do not stand beside their ids."""
    if len(ids) != len(rows):
        raise ShapeError(
            f"There are {len(rows):,} rows for {len(ids):,} {name} nodes.\n"
            "Give one row per id, in the order of the ids, not one per node of the graph."
        )
