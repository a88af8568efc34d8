"""Columns of a table as features (N, F) float32: numbers, true and false, and lists of numbers of one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gamlp.errors import FormatError, NotFiniteError, ShapeError
from gamlp.graph.readers.table import Table, is_number
from gamlp.storage.files import Array

CHUNK_BYTES = 2**25


def feature_chunks(table: Table, columns: Sequence[str]) -> Iterator[Array]:
    """Read columns side by side, (n, F) float32 at a time; what is no number is refused with its column and place."""
    step = max(1, CHUNK_BYTES // 4 // max(1, len(columns)))
    try:
        for start, batch in table.chunks(columns, feature_types(table, columns)):
            for first in range(0, batch.num_rows, step):
                rows = batch.slice(first, step)
                parts = [column_values(rows.column(name), name, table, start + first) for name in columns]
                yield np.concatenate(parts, axis=1)
    except FormatError:
        if table.is_text:
            find_word(table, columns)
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


def find_word(table: Table, columns: Sequence[str]) -> None:
    """Refuse the first value of a text file that is no number."""
    for start, batch in table.chunks(columns, dict.fromkeys(columns, "string")):
        for name in columns:
            column_values(batch.column(name), name, table, start)


def column_values(column: Any, name: str, table: Table, start: int = 0) -> Array:
    """Return one column as (n, width) float32; its first row is row `start` of the table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return list_values(column, name, table, start)
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    try:
        numbers = pc.cast(column, pa.float32(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        at, value = first_word(column.to_pylist())
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


def first_word(values: list[Any]) -> tuple[int, Any]:
    """Return the first value that is no number, and its row."""
    return next(
        ((at, value) for at, value in enumerate(values) if value is not None and not is_number(str(value))),
        (0, values[0]),
    )


def list_values(column: Any, name: str, table: Table, start: int) -> Array:
    """Return a column of lists of one length as (n, length)."""
    import pyarrow.compute as pc

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
