"""Columns of a table as features (N, F) float32 (numbers, true and false, lists of one length) and as labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from gamlp.errors import FormatError, NotFiniteError, ShapeError
from gamlp.graph.build.ids import as_integers
from gamlp.graph.readers.table import Table, is_number
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

CHUNK_BYTES = 2**25


def feature_chunks(table: Table | Array | None, columns: Sequence[str]) -> Iterator[Array]:
    """Read (n, F) at a time, rows of a matrix or columns side by side; what is no number is refused with its place."""
    if not isinstance(table, Table):
        assert table is not None
        for first, last in ranges(len(table), max(1, CHUNK_BYTES // max(1, table[:1].nbytes))):
            yield np.asarray(table[first:last])
        return
    step = max(1, CHUNK_BYTES // 4 // max(1, len(columns)))
    with words_named(table, columns):
        for start, batch in table.chunks(columns, feature_types(table, columns)):
            for first in range(0, batch.num_rows, step):
                rows = batch.slice(first, step)
                parts = [column_values(rows.column(name), name, table, start + first) for name in columns]
                yield np.concatenate(parts, axis=1)


@contextmanager
def words_named(table: Table, columns: Sequence[str]) -> Iterator[None]:
    """Where reading text as numbers fails, refuse the first value that is none, by its column and place."""
    try:
        yield
    except FormatError:
        for start, batch in table.chunks(columns, dict.fromkeys(columns, "string")) if table.is_text else ():
            for name in columns:
                column_values(batch.column(name), name, table, start)
        raise


def feature_types(table: Table, columns: Sequence[str]) -> dict[str, str]:
    """Return what text is read as: numbers, or true and false."""
    return {name: "bool" if name in table.booleans else "float32" for name in columns}


def feature_names(table: Table, columns: Sequence[str]) -> tuple[str, ...] | None:
    """Name every feature: numbers by their column, lists as name[0], name[1], …; a file without header names none."""
    if not table.header:
        return None
    _, batch = next(iter(table.chunks(columns, feature_types(table, columns))), (0, None))
    widths = [1 if batch is None else column_values(batch.column(name)[:1], name, table).shape[1] for name in columns]
    return tuple(
        each
        for name, width in zip(columns, widths, strict=True)
        for each in ([name] if width == 1 else [f"{name}[{at}]" for at in range(width)])
    )


def column_values(column: Any, name: str, table: Table, start: int = 0) -> Array:
    """Return one column as (n, width) float32; its first row is row `start` of the table."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return list_values(column, name, table, start)
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    try:
        numbers = pc.cast(column, pa.float32(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        values = list(enumerate(column.to_pylist()))
        at, value = next((one for one in values if one[1] is not None and not is_number(str(one[1]))), values[0])
        raise FormatError(
            f"{table.path}: column '{name}' is no feature: {table.line(start + at)} holds {value!r}.\n"
            "Features are numbers: drop this column or encode it as numbers (one column per value, for one). "
            f"Where it is the label, say so: --column label={name}."
        ) from None
    finite = np.isfinite(numbers)
    if not finite.all():
        at = int(np.argmin(finite))
        raise NotFiniteError(
            f"{table.path}: value {start + at:,} of column '{name}' is {numbers[at]} or empty.\n"
            "Features must be finite numbers: fill or drop missing values first."
        )
    return np.asarray(numbers).reshape(-1, 1)


def list_values(column: Any, name: str, table: Table, start: int) -> Array:
    """Return a column of lists of one length as (n, length)."""
    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)
    if len(lengths) and (lengths != lengths[0]).any():
        at = int(np.argmax(lengths != lengths[0]))
        raise ShapeError(
            f"{table.path}: column '{name}' has {lengths[0]} values in its first row, {max(lengths[at], 0)} in "
            f"{table.line(start + at)}.\nEvery node needs as many features as the others."
        )
    width = int(lengths[0]) if len(lengths) else 0
    flat = column_values(pc.list_flatten(column), name, table, start * width) if width > 0 else np.empty(0, np.float32)
    return flat.reshape(len(column), max(width, 0))


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
