"""Columns of a table as features (N, F) float32, by way of `graph.encode`, and as labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from gamlp.errors import FormatError
from gamlp.graph.build.ids import as_integers
from gamlp.graph.encode import Columns
from gamlp.graph.readers.table import Table
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

CHUNK_BYTES = 2**25
MOST_ROWS, FEWEST_ROWS = 2**16, 2**10  # that columns are learned from
MOST_VALUES = 2**25


def matrix_chunks(matrix: Array) -> Iterator[Array]:
    """Read (n, F) rows of a matrix at a time."""
    source = ArrayReader(matrix)
    for first, last in ranges(len(matrix), max(1, CHUNK_BYTES // max(1, matrix[:1].nbytes))):
        yield source.rows(first, last, np.empty((last - first, *matrix.shape[1:]), matrix.dtype))
    source.close()


def encoded_chunks(table: Table, columns: Columns, types: Mapping[str, str]) -> Iterator[Array]:
    """Read (n, F) rows of features at a time."""
    names = [column.name for column in columns.needed(table.names)]
    step = max(1, CHUNK_BYTES // 4 // max(1, len(columns.names)))
    for start, batch in table.chunks(names, types):
        for first in range(0, batch.num_rows, step):
            yield columns.encode(batch.slice(first, step), partial(place_of, table, start + first))


def text_types(table: Table, names: Sequence[str], columns: Columns | None = None) -> dict[str, str]:
    """Return what text is read as: numbers where it begins with numbers, or where these `columns` are numbers."""
    if columns is not None:
        return {column.name: column.text_type for column in columns.columns if column.name in names}
    return {name: "double" if name in table.numbers else "string" for name in names}


def readable_types(table: Table, types: dict[str, str], *, strict: bool = False) -> dict[str, str]:
    """Return what text can be read as to its end: strings throughout where a word follows numbers, unless `strict`."""
    if table.is_text and not table.is_held and not strict and "double" in types.values():
        try:
            for _ in table.chunks([name for name, kind in types.items() if kind == "double"], types):
                pass
        except FormatError:
            return dict.fromkeys(types, "string")
    return types


def fit_columns(table: Table, names: Sequence[str], rows: int, types: Mapping[str, str]) -> Columns:
    """Learn what the columns of a table of so many rows are, from rows evenly apart, as many as fit easily.

    Memory limits do not change which rows these are; gaps are looked for in all.
    """
    count = min(rows, max(FEWEST_ROWS, min(MOST_ROWS, MOST_VALUES // max(1, len(names)))))
    wanted = np.arange(count) * rows // max(1, count)
    parts, gaps = [], set()
    for start, batch in table.chunks(names, types):
        inside = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, start + batch.num_rows)] - start
        parts.append(batch if len(inside) == batch.num_rows else batch.take(pa.array(inside)))
        gaps |= {name for name in names if batch.column(name).null_count or has_nan(batch.column(name))}
    some = pa.Table.from_batches(parts) if parts else pa.table({name: pa.nulls(0) for name in names})
    return Columns.fit(some, lambda at: table.line(int(wanted[at])), title=str(table.path), gaps=gaps)


def has_nan(column: Any) -> bool:
    """Say whether a column of floats has a NaN or an infinity."""
    if not pa.types.is_floating(column.type):
        return False
    return not pc.all(pc.is_finite(column), min_count=0).as_py()


def place_of(table: Table, start: int, at: int) -> str:
    """Name a row of a chunk that begins at row `start`."""
    return table.line(start + at)


def label_values(column: Any, *, text: bool) -> Array:
    """Return labels for encoding: as they are typed, or as text writes them; whole numbers stay exact."""
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if text:
        column = written_numbers(column)
    if pa.types.is_integer(column.type):
        return np.asarray(pc.fill_null(column.cast(pa.int64()), -1).to_numpy(zero_copy_only=False))
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.array(column.to_pylist(), dtype=object)


def written_numbers(strings: Any) -> Any:
    """Return strings as numbers if all are integers (01 is none), or all are numbers and some are fractions."""
    empty = pc.is_in(strings, value_set=pa.array(csv.ConvertOptions().null_values))
    given = pc.if_else(empty, pa.scalar(None, pa.string()), strings)
    numbers = as_integers(given)
    if pa.types.is_integer(numbers.type):
        return numbers
    try:
        fractions = pc.cast(given, pa.float64())
    except pa.ArrowInvalid:
        return strings
    return fractions if pc.any(pc.not_equal(fractions, pc.floor(fractions))).as_py() else strings
