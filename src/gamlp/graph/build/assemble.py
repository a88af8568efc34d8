"""One way from parts to a checked Graph: every reader ends here.

The adjacency is made undirected unless told otherwise, repeated edges are one edge, and self-loops are dropped
(propagation adds its own).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gamlp.errors import FormatError, InputError, ShapeError, SplitError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.build.encode_labels import encode_labels
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split, SplitRule
from gamlp.storage.files import Array

SETS = {"train": 0, "valid": 1, "val": 1, "validation": 1, "test": 2}


def assemble(
    source: Array,
    target: Array,
    *,
    features: Any,
    labels: Any = None,
    classes: tuple[str, ...] | None = None,
    weights: Array | None = None,
    split: Split | SplitRule | None = None,
    names: Array | None = None,
    name: str = "graph",
    symmetric: bool = True,
    feature_names: tuple[str, ...] | None = None,
) -> Graph:
    """Put a graph together from edge ends (E,), features (N, F) and labels (N,), and check it.

    With `classes` the labels are class numbers already; without, any values that name classes.
    """
    features = as_features(features)
    nodes = len(features)
    if not nodes:
        raise InputError("The graph has no nodes.\nAt least one node with features is needed.")
    if labels is None:
        labels, classes = np.full(nodes, -1, dtype=np.int64), classes or ()
    elif classes is None:
        labels, classes = encode_labels(labels)
    for ends in (source, target):
        if len(ends) and ends.dtype.kind not in "iu":
            raise FormatError(f"Edge ends are of type {ends.dtype}.\nExpected whole numbers: the rows of the features.")
    adjacency = adjacency_from_edges(source, target, nodes=nodes, weights=weights, symmetric=symmetric)
    return Graph(
        adjacency=adjacency,
        features=features,
        labels=labels,
        classes=classes,
        split=SplitRule() if split is None else split,
        names=names,
        name=name,
        feature_names=feature_names,
    ).check()


def as_features(values: Any) -> Array:
    """Return features as (N, F) float32 by rows; what is float32 already, memory-mapped too, is not copied."""
    values = values.toarray() if hasattr(values, "toarray") else values
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise FormatError(f"Features are of type {values.dtype}.\nExpected numbers: drop or encode everything else.")
    with np.errstate(over="ignore"):  # a number beyond float32 becomes infinite, which the graph's check reports
        return np.ascontiguousarray(values, dtype=np.float32)


def as_split(train: Any, valid: Any, test: Any, *, nodes: int) -> Split:
    """Make a split of three sets, each given as node ids or as a mask over the nodes."""
    return Split(*(as_ids(part, which, nodes) for part, which in ((train, "train"), (valid, "valid"), (test, "test"))))


def named_split(words: Sequence[str | None], *, place: Callable[[int], str]) -> Split:
    """Make a split of one word per node: train, valid (or val), test, or nothing."""
    plain = [str(word or "").strip().lower() for word in words]
    for at, word in enumerate(plain):
        if word and word not in SETS:
            raise SplitError(f"{place(at)}: the split is '{words[at]}'.\nExpected train, valid, test or nothing.")
    sets = np.array([SETS.get(word, -1) for word in plain])
    return as_split(*(np.flatnonzero(sets == number) for number in range(3)), nodes=len(plain))


def as_ids(values: Any, which: str, nodes: int) -> Array:
    """Return sorted node ids, from ids or from a mask."""
    values = np.asarray(values)
    if values.dtype.kind == "b" and values.shape != (nodes,):
        raise ShapeError(
            f"The {which} mask has the shape {values.shape}, the graph {nodes:,} nodes.\nGive one per node."
        )
    if values.dtype.kind == "b":
        return np.flatnonzero(values).astype(np.int64)
    if values.size and values.dtype.kind not in "iu":
        raise FormatError(f"The {which} set is of type {values.dtype}.\nExpected node ids or a mask of true and false.")
    return np.unique(values).astype(np.int64)
