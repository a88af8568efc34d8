"""The body of a request: read within limits, then JSON, then tables of named columns as files have them.

    {"nodes": [{"id": "a", "x": 1.5}, …], "edges": [{"source": "a", "target": "b"}, …]}        by rows
    {"nodes": {"id": ["a", …], "x": [1.5, …]}, "edges": {"source": ["a", …], …}}               or by columns

A table becomes an Arrow table, which the readers of files and data frames check as any other: names, ids, numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from gamlp.errors import FormatError, ShapeError, did_you_mean
from gamlp.serve.limits import Limits, TooMuch
from gamlp.storage.sizes import format_size

Tables = dict[str, Any]  # Arrow tables by name


async def read_body(chunks: AsyncIterator[bytes], limits: Limits, deadline: float) -> bytes:
    """Return the whole body; one that is too large is not read to its end."""
    found = bytearray()
    async with asyncio.timeout_at(deadline):
        async for chunk in chunks:
            found += chunk
            if len(found) > limits.body:
                raise TooMuch(
                    f"The body has more than {format_size(limits.body)}, the limit.\n"
                    "Send fewer nodes or edges at a time, or serve with a larger --limit body."
                )
    return bytes(found)


def read_tables(body: bytes, most: Mapping[str, int], *, needed: Sequence[str] = ()) -> Tables:
    """Return the tables of a body by their names, each of at most so many rows; those `needed` must have some."""
    content = parsed(body)
    for name in content:
        if name not in most:
            raise FormatError(f"The body has a key '{short(name)}'.\n{did_you_mean(name, most)}")
    for name in needed or list(most)[: not content]:
        if name not in content:
            raise FormatError(f"The body has no '{name}'.\nSend {{\"{name}\": [{{column: value, …}}, …], …}}.")
    found = {name: as_arrow(name, columns_of(name, table, most[name])) for name, table in content.items()}
    for name in needed or found:
        if not len(found[name]):
            raise FormatError(f"'{name}' has no rows.\nSend at least one, or leave it out.")
    return found


def parsed(body: bytes) -> dict[str, Any]:
    """Read JSON: an object, in UTF-8, without NaN and not nested without end."""
    from pydantic_core import from_json

    try:
        content = from_json(body, allow_inf_nan=False, cache_strings="none")
    except ValueError as error:
        raise FormatError(f"The body is no JSON: {short(str(error))}.\nSend an object, in UTF-8.") from None
    if not isinstance(content, dict):
        raise FormatError(f"The body is a {type(content).__name__}.\nExpected an object with tables by name.")
    return content


def columns_of(what: str, table: Any, most: int) -> dict[str, list[Any]]:
    """Return a table, by rows or by columns, as lists of one length."""
    if isinstance(table, list):
        check_count(what, len(table), most)
        return by_columns(what, table)
    if not isinstance(table, dict):
        raise FormatError(f"'{what}' is a {type(table).__name__}.\nExpected rows, [{{…}}, …], or columns, {{…: […]}}.")
    for name, values in table.items():
        if not isinstance(values, list):
            raise FormatError(f"'{what}', column '{short(name)}': this is no list.\nGive each column as a list.")
        check_count(what, len(values), most)
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{count:,} of {short(name)}" for name, count in list(lengths.items())[:4])
        raise ShapeError(f"'{what}' has {words}.\nEvery row needs a value in every column.")
    return table


def by_columns(what: str, rows: list[Any]) -> dict[str, list[Any]]:
    """Turn rows, which must all have the same columns, into columns."""
    names = rows[0].keys() if rows and isinstance(rows[0], dict) else ()
    for at, row in enumerate(rows):
        if not isinstance(row, dict):
            raise FormatError(f"'{what}', row {at:,}: this is a {type(row).__name__}.\nExpected {{column: value, …}}.")
        if row.keys() != names:
            odd = short(sorted(row.keys() ^ names)[0])
            raise ShapeError(
                f"'{what}', row {at:,}: the column '{odd}' is in this row or in the first, not in both.\n"
                "Every row needs a value in every column."
            )
    return {name: [row[name] for row in rows] for name in names}


def check_count(what: str, rows: int, most: int) -> None:
    """Refuse too many rows."""
    if rows > most:
        raise TooMuch(
            f"There are {rows:,} {what}, at most {most:,} are taken at a time.\n"
            "Send them in several requests, or all of them by gamlp predict --new."
        )


def as_arrow(what: str, columns: Mapping[str, list[Any]]) -> Any:
    """Return lists as an Arrow table; values of one column must be of one type."""
    arrays = []
    for name, values in columns.items():
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise FormatError(
                f"'{what}', column '{short(name)}': the values do not make one column ({short(str(error))}).\n"
                "Write all as numbers below 2^63, or all as strings."
            ) from None
    return pa.table(arrays, names=list(columns))


def short(text: str, most: int = 80) -> str:
    """Cut what a client sent, for a message."""
    return text if len(text) <= most else text[: most - 1] + "…"
