"""One way from parts to a checked Graph: every reader ends here.

The adjacency is made undirected unless told otherwise, repeated edges are one edge, and self-loops are dropped
(propagation adds its own). An unknown label is −1, NaN, None or the empty string. Classes are named by strings:
numbers in numeric order, strings in alphabetical order. Labels of two dimensions are several a node, 0 or 1 each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from gamlp.errors import FormatError, LabelError, ShapeError, SplitError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.encode import Encoded
from gamlp.graph.graph import Graph
from gamlp.graph.splits import AnySplit, Split, SplitRule, Splits
from gamlp.storage.files import Array

UNKNOWN = -1
SETS = {"train": 0, "valid": 1, "val": 1, "validation": 1, "test": 2}


def assemble(
    source: Array,
    target: Array,
    *,
    features: Any,
    labels: Any = None,
    classes: tuple[str, ...] | None = None,
    weights: Array | None = None,
    split: AnySplit | None = None,
    names: Array | None = None,
    name: str = "graph",
    symmetric: bool = True,
    feature_names: tuple[str, ...] | None = None,
    notes: tuple[str, ...] = (),
    encoded: Encoded | None = None,
) -> Graph:
    """Put a graph together from edge ends (E,), features (N, F) and labels (N,), and check it.

    With `classes` the labels are class numbers already; without, any values that name classes.
    """
    features = as_features(features)
    adjacency = adjacency_from_edges(source, target, nodes=len(features), weights=weights, symmetric=symmetric)
    labels, classes = as_labels(labels, classes, len(features))
    plain = (adjacency, features, labels, classes, split or SplitRule(), names, name, feature_names)
    return Graph(*plain, notes=notes, encoded=encoded).check()


def as_labels(labels: Any, classes: tuple[str, ...] | None, nodes: int) -> tuple[Array, tuple[str, ...]]:
    """Return class numbers, −1 where unknown, and the classes; with `classes` the labels are numbers already."""
    if labels is None:
        return np.full(nodes, -1, dtype=np.int64), classes or ()
    return encode_labels(labels) if classes is None else (labels, classes)


def as_features(values: Any) -> Array:
    """Return features as (N, F) float32 by rows; what is float32 already, memory-mapped too, is not copied."""
    values = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if values.dtype.kind not in "biuf":
        raise FormatError(f"Features are of type {values.dtype}.\nExpected numbers: drop or encode everything else.")
    with np.errstate(over="ignore"):  # a number beyond float32 becomes infinite, which the graph's check reports
        return np.ascontiguousarray(values, dtype=np.float32)


def plain(values: Any) -> Any:
    """Return torch tensors, lists and frames as numpy arrays, scipy matrices and None as they are."""
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    return values if values is None or hasattr(values, "toarray") else np.asarray(values)


def as_split(train: Any, valid: Any, test: Any, *, nodes: int) -> Split | Splits:
    """Make a split of three sets, each given as node ids or as a mask over the nodes; of masks (N, S) several."""
    masks = [np.asarray(part) for part in (train, valid, test)]
    if masks[0].ndim == 2 and masks[0].shape[1] > 1:
        shape = (nodes, masks[0].shape[1])
        wide = (mask[:, None] if mask.ndim == 1 and mask.dtype.kind == "b" else mask for mask in masks)
        return Splits(*(np.broadcast_to(mask, shape) if mask.shape == (nodes, 1) else mask for mask in wide))
    train, valid, test = (mask[:, 0] if mask.ndim == 2 and mask.shape[1] == 1 else mask for mask in masks)
    return Split(as_ids(train, "train", nodes), as_ids(valid, "valid", nodes), as_ids(test, "test", nodes))


def named_split(words: Sequence[str | None], *, place: Callable[[int], str]) -> Split:
    """Make a split of one word per node: train, valid (or val), test, or nothing."""
    plain = [str(word or "").strip().lower() for word in words]
    for at, word in enumerate(plain):
        if word and word not in SETS:
            raise SplitError(f"{place(at)}: the split is '{words[at]}'.\nExpected train, valid, test or nothing.")
    sets = np.array([SETS.get(word, -1) for word in plain])
    return Split(*(np.flatnonzero(sets == number) for number in range(3)))


def as_ids(values: Any, which: str, nodes: int) -> Array:
    """Return sorted node ids, from ids or from a mask."""
    values = np.asarray(values)
    if values.dtype.kind == "b":
        if values.shape != (nodes,):
            raise ShapeError(f"The {which} mask has the shape {values.shape} for {nodes:,} nodes.\nGive one per node.")
        return np.flatnonzero(values).astype(np.int64)
    if values.size and values.dtype.kind not in "iu":
        raise FormatError(f"The {which} set is of type {values.dtype}.\nExpected node ids or a mask of true and false.")
    return np.unique(values).astype(np.int64)


def encode_labels(values: Any) -> tuple[Array, tuple[str, ...]]:
    """Return the class number of every node, (N,) int64 with −1 = unknown, and the names of the classes."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:
        return as_indicators(array)
    if array.ndim != 1:
        raise ShapeError(f"Labels have the shape {array.shape}.\nExpected one class per node, or a row of 0 and 1.")
    if array.dtype.kind == "f":
        array = whole_numbers(array)
    return encode_numbers(array) if array.dtype.kind in "iub" else encode_strings(array)


def as_indicators(array: Array) -> tuple[Array, tuple[str, ...]]:
    """Return several labels a node, (N, T) int8 of 0, 1 and −1 = unknown, and their numbers as names."""
    numbers = np.asarray(array, dtype=np.float64) if array.dtype.kind in "biufO" else array
    if numbers.dtype.kind != "f":
        raise LabelError(f"Labels of shape {array.shape} are of type {array.dtype}.\nExpected 0, 1 and −1 = unknown.")
    numbers = np.where(np.isnan(numbers), UNKNOWN, numbers)
    wrong = ~np.isin(numbers, (UNKNOWN, 0, 1))
    if wrong.any():
        row, column = (int(at[0]) for at in np.nonzero(wrong))
        raise LabelError(
            f"Label {column} of node {row:,} is {array[row, column]}.\n"
            "Of several labels a node each is 0 or 1, or −1 or NaN where unknown."
        )
    return numbers.astype(np.int8), tuple(map(str, range(numbers.shape[1])))


def whole_numbers(array: Array) -> Array:
    """Turn floats into integers, NaN into −1; a fraction is no class."""
    known = ~np.isnan(array)
    fractions = known & ((array != np.floor(array)) | np.isinf(array))
    if fractions.any():
        at = int(np.argmax(fractions))
        raise LabelError(
            f"The label of node {at:,} is {array[at]}.\n"
            "Labels are classes: integers or strings. Numbers to be predicted as such are another task (regression)."
        )
    numbers = np.full(len(array), UNKNOWN, dtype=np.int64)
    numbers[known] = array[known].astype(np.int64)
    return numbers


def encode_numbers(array: Array) -> tuple[Array, tuple[str, ...]]:
    """Number the classes in numeric order."""
    array = array.astype(np.int64)
    if len(array) and int(array.min()) < UNKNOWN:
        at = int(np.argmin(array))
        raise LabelError(f"The label of node {at:,} is {array[at]}.\nLabels must be 0 or more, or −1 where unknown.")
    labels = np.full(len(array), UNKNOWN, dtype=np.int64)
    classes, labels[array >= 0] = np.unique(array[array >= 0], return_inverse=True)
    return labels, tuple(map(str, classes.tolist()))


def encode_strings(array: Array) -> tuple[Array, tuple[str, ...]]:
    """Number the classes in alphabetical order; integers among objects are still numbers."""
    values = ["" if is_unknown(value) else value for value in array.tolist()]
    if all(value == "" or isinstance(value, Integral) for value in values):
        return encode_numbers(np.array([UNKNOWN if value == "" else int(value) for value in values], dtype=np.int64))
    words = [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in values]
    number = {name: at for at, name in enumerate(sorted({*words} - {""}))}
    return np.array([number.get(word, UNKNOWN) for word in words], dtype=np.int64), tuple(number)


def is_unknown(value: object) -> bool:
    """Say whether a single label stands for "not known"."""
    return value is None or value in ("", b"", "-1", UNKNOWN) or (isinstance(value, float) and math.isnan(value))
