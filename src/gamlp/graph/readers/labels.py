"""Labels from the columns of a node table: one class a node, or several labels, in any way that tables have them.

    label                     a word or a number                                     → (N,) one class
    label = a,b,c or go_*     several columns of 0 and 1 (true, false), empty = gap  → (N, T), named by the columns
    label                     lists of 0 and 1, all of one length                    → (N, T), named 0 … T−1
    label                     lists of names, or names with ; between                → (N, T), named by them

An empty cell is a node of which nothing is known; an empty list, or a lone ;, one that is known to have no label.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError, LabelError, did_you_mean
from gamlp.graph.build.assemble import as_indicators, encode_labels, is_unknown
from gamlp.graph.readers.columns import label_values
from gamlp.graph.readers.table import Table
from gamlp.storage.files import Array
from gamlp.targets.multi import BETWEEN

USUAL = ("label", "labels", "target", "class", "*_label", "*_target")
YES_OR_NO = {1: 1, 0: 0, "true": 1, "false": 0, "yes": 1, "no": 0}


def label_columns(table: Table, given: str | None) -> tuple[str, ...]:
    """Return the columns of the labels: those that are named, as a,b,c or go_*, or the one with a usual name."""
    if given is None or given in table.names:
        name = table.pick(given, USUAL)
        return () if name is None else (name,)
    found: dict[str, None] = {}
    for part in (part.strip() for part in given.split(",")):
        named = [name for name in table.names if name == part or fnmatchcase(name, part)]
        if not named:
            raise FormatError(f"{table.path} has no column '{part}'.\n{did_you_mean(part, table.names)}")
        found |= dict.fromkeys(named)
    return tuple(found)


def has_labels(names: Sequence[str], given: str) -> bool:
    """Say whether columns of these names can be the labels that were named."""
    return any(name == part.strip() or fnmatchcase(name, part.strip()) for part in given.split(",") for name in names)


def read_labels(table: Table, columns: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Return the labels of all nodes, (N,) or (N, T), and the names of the classes or labels."""
    if len(columns) > 1:
        values = [yes_or_no(label_values(table.column(name), text=table.is_text), name, table) for name in columns]
        return np.stack(values, axis=1), tuple(columns)
    column = table.column(columns[0])
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return of_lists(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        several = pc.any(pc.match_substring(column, BETWEEN)).as_py()
        if several:
            return of_names([parted(value) for value in column.to_pylist()])
    return encode_labels(label_values(column, text=table.is_text))


def yes_or_no(values: Array, name: str, table: Table) -> Array:
    """Return one label of each node, (N,) int8 of 0, 1 and −1; anything else is refused with its place."""
    found = np.full(len(values), -1, np.int8)
    for at, value in enumerate(values.tolist()):
        if not is_unknown(value):
            plain = value.strip().lower() if isinstance(value, str) else value
            if plain not in YES_OR_NO:
                raise LabelError(
                    f"{table.path}: column '{name}' has {value!r} in {table.line(at)}.\n"
                    "Of several label columns each holds 0 or 1, or nothing where it is not known."
                )
            found[at] = YES_OR_NO[plain]
    return found


def of_lists(column: Any) -> tuple[Array, tuple[str, ...]]:
    """Return labels from lists: of 0 and 1, or of names."""
    lists = column.to_pylist()
    given = [one for one in lists if one is not None]
    lengths, values = {len(one) for one in given}, {value for one in given for value in one}
    if len(lengths) == 1 and max(lengths) > 1 and values <= {0, 1, None}:
        width = max(lengths)
        return as_indicators(np.array([[-1] * width if one is None else nones(one) for one in lists]))
    return of_names(lists)


def nones(values: Sequence[Any]) -> list[int]:
    """Return a list of 0 and 1 with −1 in its gaps."""
    return [-1 if value is None else int(value) for value in values]


def parted(value: str | None) -> list[str] | None:
    """Return the names in a cell; None where it is empty."""
    return None if is_unknown(value) else [part.strip() for part in str(value).split(BETWEEN) if part.strip()]


def of_names(lists: Sequence[Sequence[Any] | None]) -> tuple[Array, tuple[str, ...]]:
    """Return labels from the names of those that each node has; None = nothing is known of it.

    >>> of_names([["b", "a"], [], None])
    (array([[ 1,  1],
           [ 0,  0],
           [-1, -1]], dtype=int8), ('a', 'b'))
    """
    names = sorted({str(name) for one in lists for name in one or ()})
    place = {name: at for at, name in enumerate(names)}
    labels = np.full((len(lists), len(names)), -1, np.int8)
    for at, one in enumerate(lists):
        if one is not None:
            labels[at] = 0
            labels[at, [place[str(name)] for name in one]] = 1
    return labels, tuple(names)
