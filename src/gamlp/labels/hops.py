"""The last label hop: labels are features with C columns (paper, Incorporating Label Propagation).

    Ŷ^(k+1) = Â Ŷ^(k),    given to the network: Ŷ^(K)

With folds = 1 this is the paper's. A walk of K ≥ 2 steps can return, so a training node then finds a share (Â^K)_ii of
its own label in its input; validation and test nodes never do, and a network that learns to read this share learns
something that is not there when it counts. With folds = M > 1 the training labels are dealt at random into M parts Y_m,
the rest (reliable predictions) is Y_0, and the row of a training node of part m leaves out its own part:

    Ŷ^(K)_i = Σ_{q ≠ m(i)} (Â^K Y_q)_i        for the other nodes the sum over all parts, which is Â^K Y

No training node sees its own label, exactly: the part is left out, not subtracted. The price: training rows see a
share (M−1)/M of the training labels, other rows all of them, so a larger M brings the two closer.

Cost: M propagations of the labels (one more where there are reliable predictions), in blocks of columns, so that no
more than N·width extra numbers are held at a time; `initial` may be memory-mapped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency
from gamlp.propagate import Normalization, propagate
from gamlp.storage.files import Array

BLOCK_ENTRIES = 2**30  # numbers in a block of columns, 4 GiB of float32: wide enough for one pass on most graphs


def label_hops(
    adjacency: Adjacency,
    initial: Array,
    *,
    hops: int,
    normalization: Normalization,
    train_ids: Array,
    rows: Array | None = None,
    folds: int = 1,
    seed: int = 0,
    device: str = "cpu",
) -> Array:
    """Return Ŷ^(K) of `rows` (all N, if None), out of fold for training nodes: initial (N, C) → (R, C) float32."""
    if folds < 1:
        raise SettingsError(f"The labels are to be dealt into {folds} parts.\nGive 1 for plain label hops, or more.")

    def last_hop(labels: Array) -> Array:  # (N, C) → (R, C)
        done = propagate(
            adjacency, labels, hops=hops, normalization=normalization, rows=rows, keep="last", device=device
        )
        return np.asarray(done.values[:, -1])

    if folds == 1:
        return last_hop(initial).astype(np.float32, copy=False)

    part_of = deal(adjacency.nodes, train_ids, folds, seed)  # (N,), 0 = not a training node
    part_of_row = part_of if rows is None else part_of[rows]  # (R,)
    result = np.zeros((len(part_of_row), initial.shape[1]), dtype=np.float32)
    for columns in blocks(initial.shape):
        for part in range(folds + 1):
            labels = np.where((part_of == part)[:, None], initial[:, columns], np.float32(0))
            if labels.any():
                sees = (part_of_row != part) | (part == 0)
                result[sees, columns] += last_hop(labels)[sees]
    return result


def deal(nodes: int, train_ids: Array, folds: int, seed: int) -> Array:
    """Return the part (1 … folds) of each training node, 0 for the others: (N,) int32, parts of equal size."""
    shuffled = np.random.default_rng([seed, 0xF01D]).permutation(train_ids)
    part_of = np.zeros(nodes, dtype=np.int32)
    part_of[shuffled] = 1 + np.arange(len(shuffled)) % folds
    return part_of


def blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Cut the columns so that a block of all rows stays within BLOCK_ENTRIES."""
    nodes, columns = shape
    width = max(1, BLOCK_ENTRIES // nodes)
    for start in range(0, columns, width):
        yield slice(start, min(start + width, columns))
