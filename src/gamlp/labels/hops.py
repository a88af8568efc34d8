"""The label input: labels are features with C columns (paper, Incorporating and Reliable Label Propagation).

    Ŷ⁰_i = one-hot(y_i)  for training nodes,    P_i  for reliable nodes,    0  otherwise
    Ŷ^(k+1) = Â Ŷ^(k),    given to the network: Ŷ^(K)

Several labels a node: 1 for those it has, 0 for those it has not and for gaps. At the first stage no node is reliable.
A node that is named twice is a training node: a true label is never replaced by a prediction. Ŷ⁰ costs a class for each
training node, or C float32 where it has several labels, and C float32 for each reliable one; no zero is stored.

With folds = 1 this is the paper's. A walk of K ≥ 2 steps can return, so a training node then finds a share (Â^K)_ii of
its own label in its input; validation and test nodes never do, and a network that learns to read this share learns
something that is not there when it counts. With folds = M > 1 the training labels are dealt at random into M parts Y_m,
the rest (reliable predictions) is Y_0, and the row of a training node of part m leaves out its own part:

    Ŷ^(K)_i = Σ_{q ≠ m(i)} (Â^K Y_q)_i        for the other nodes the sum over all parts, which is Â^K Y

No training node sees its own label, exactly: the part is left out, not subtracted. The price: training rows see a
share (M−1)/M of the training labels, other rows all of them, so a larger M brings the two closer.

Cost: M propagations of the labels (one more where there are reliable predictions) by whatever engine, within its memory
limit; only ÂᴷŶ⁰ of the wanted rows, (R, C), is held.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gamlp.errors import LabelError, SettingsError, ShapeError
from gamlp.propagate.sources import NO_IDS, OneHotRows, SparseRows
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges
from gamlp.targets.registry import kind_of

if TYPE_CHECKING:
    from gamlp.graph.graph import Adjacency
    from gamlp.propagate.engines.base import Engine
    from gamlp.propagate.spec import Propagation

ROWS_AT_ONCE = 2**16  # added up


def initial_labels(
    nodes: int,
    classes: int,
    train_ids: Array,
    train_labels: Array,
    *,
    reliable_ids: Array | None = None,
    reliable_probabilities: Array | None = None,
    otherwise: Array | None = None,
) -> OneHotRows:
    """Return Ŷ⁰ (N, C); train_labels and reliable_probabilities have one row per id beside them.

    Gaps in several labels a node are 0, or as in `otherwise`, which has one row per training id.
    """
    check_rows(train_ids, train_labels, "training")
    ids, rows = NO_IDS, np.zeros((0, classes), np.float32)
    if reliable_ids is not None and reliable_probabilities is not None:
        check_rows(reliable_ids, reliable_probabilities, "reliable")
        others = ~np.isin(reliable_ids, train_ids)
        ids, rows = reliable_ids, reliable_probabilities
        ids, rows = (ids, rows) if others.all() else (ids[others], rows[others])
    if train_labels.ndim > 1:  # several labels a node: no row is one-hot
        ids, rows = np.concatenate([train_ids, ids]), np.nan_to_num(rows)
        rows = np.concatenate([kind_of(train_labels).rows(train_labels, classes, otherwise), rows])
        return OneHotRows(nodes, classes, NO_IDS, NO_IDS, SparseRows(nodes, classes, ids, rows))
    if len(train_labels) and not 0 <= int(train_labels.min()) <= int(train_labels.max()) < classes:
        raise LabelError(
            f"Training labels run from {train_labels.min()} to {train_labels.max()}, there are {classes} classes.\n"
            f"Those of training nodes must lie between 0 and {classes - 1}."
        )
    return OneHotRows(nodes, classes, train_ids, train_labels, SparseRows(nodes, classes, ids, rows))


def check_rows(ids: Array, rows: Array, name: str) -> None:
    """Refuse labels that do not stand beside their ids."""
    if len(ids) != len(rows):
        raise ShapeError(
            f"There are {len(rows):,} rows for {len(ids):,} {name} nodes.\n"
            "Give one row per id, in the order of the ids, not one per node of the graph."
        )


def label_hops(
    engine: Engine,
    adjacency: Adjacency,
    initial: OneHotRows,
    spec: Propagation,
    *,
    train_ids: Array,
    weights: Array | None = None,
    folds: int = 1,
    seed: int = 0,
) -> Array:
    """Return Ŷ^(K) of spec.rows, out of fold for training nodes: initial (N, C) → (R, C) as the spec stores them.

    With `weights` (K+1,), of hops 0 … K, their weighted sum.
    """
    if folds < 1:
        raise SettingsError(f"The labels are to be dealt into {folds} parts.\nGive 1 for plain label hops, or more.")
    spec = replace(spec, keep="last" if weights is None else "all", stationary=False)

    def propagated(labels: OneHotRows) -> Array:
        values = engine.transient().propagate(adjacency, labels, spec).values  # (R, 1 or K+1, C)
        if weights is None:
            return values[:, -1]
        return np.asarray(np.einsum("rkc,k->rc", values, weights), dtype=np.float32)

    if folds == 1:
        return propagated(initial)

    part_of = deal(adjacency.nodes, train_ids, folds, seed)  # (N,), 0 = not a training node
    part_of_row = part_of if spec.rows is None else part_of[spec.rows]  # (R,)
    result = np.zeros((len(part_of_row), initial.shape[1]), np.float32)
    for part in range(folds + 1):
        labels = initial.only(part_of == part)
        if len(labels.ids):
            hop = propagated(labels)
            for first, last in ranges(len(result), ROWS_AT_ONCE):
                sees = (part_of_row[first:last] != part) | (part == 0)
                result[first:last][sees] += hop[first:last][sees]
            del hop  # its files go before the next ones are made
    return result


def hop_weights(kind: str, hops: int) -> Array | None:
    """Return the weight of label hops 0 … K in the input, or None for the last alone.

    "residual" is the mean of (1−α_l) Ŷ^(l) + α_l Ŷ^(K) with α_l = cos(πl/2K), the last residual connection of the KDD
    2022 version: α_0 = 1, so no node reads its own label off Ŷ^(0). "uniform" is the mean of all hops, which does.
    """
    if kind == "last":
        return None
    weights = np.full(hops + 1, 1 / (hops + 1))
    if kind == "residual":
        shares = np.cos(np.pi * np.arange(hops + 1) / (2 * hops))
        weights = (1 - shares) / (hops + 1)
        weights[-1] += shares.sum() / (hops + 1)
    return weights.astype(np.float32)


def deal(nodes: int, train_ids: Array, folds: int, seed: int) -> Array:
    """Return the part (1 … folds) of each training node, 0 for the others: (N,) int32, parts of equal size."""
    shuffled = np.random.default_rng([seed, 0xF01D]).permutation(train_ids)
    part_of = np.zeros(nodes, dtype=np.int32)
    part_of[shuffled] = 1 + np.arange(len(shuffled)) % folds
    return part_of
