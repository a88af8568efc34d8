"""From whatever labels come in to class numbers and class names.

Unknown is −1, NaN, None or the empty string. Classes are named by strings: numbers in
numeric order, strings in alphabetical order.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np

from gamlp.errors import LabelError, ShapeError
from gamlp.storage.files import Array

UNKNOWN = -1


def encode_labels(values: Any) -> tuple[Array, tuple[str, ...]]:
    """Return the class number of every node, (N,) int64 with −1 = unknown, and the names of the classes."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ShapeError(f"Labels have the shape {array.shape}.\nExpected one class per node: one dimension.")
    if array.dtype.kind == "f":
        array = whole_numbers(array)
    return encode_numbers(array) if array.dtype.kind in "iub" else encode_strings(array)


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
        raise LabelError(
            f"The label of node {at:,} is {int(array[at])}.\nLabels must be 0 or more, or −1 where unknown."
        )
    known = array >= 0
    classes, numbers = np.unique(array[known], return_inverse=True)
    labels = np.full(len(array), UNKNOWN, dtype=np.int64)
    labels[known] = numbers
    return labels, tuple(str(int(value)) for value in classes)


def encode_strings(array: Array) -> tuple[Array, tuple[str, ...]]:
    """Number the classes in alphabetical order; integers among objects are still numbers."""
    values = [None if is_unknown(value) else value for value in array.tolist()]
    if all(value is None or isinstance(value, Integral) for value in values):
        return encode_numbers(np.array([UNKNOWN if value is None else int(value) for value in values], dtype=np.int64))
    strings = [None if value is None else word(value) for value in values]
    classes = tuple(sorted({value for value in strings if value is not None}))
    number = {name: position for position, name in enumerate(classes)}
    labels = np.array([UNKNOWN if value is None else number[value] for value in strings], dtype=np.int64)
    return labels, classes


def is_unknown(value: object) -> bool:
    """Say whether a single label stands for "not known"."""
    return value is None or value in ("", b"", "-1", UNKNOWN) or (isinstance(value, float) and math.isnan(value))


def word(value: object) -> str:
    """Name a class by a word."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
