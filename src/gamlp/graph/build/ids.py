"""Which row of the node table an id means: the one place where ids are resolved, for every file format.

Without ids the rows count from 0. With ids, integers or strings, a hash table of 64-bit hashes takes 12 or 16 bytes a
slot, at 1/2 full at most, and holds no strings (`hashing`). Strings are hashed to 64 bits: two ids of the node table
that collide are found when the table is built; an id that is not in the table is taken for one that is with a
probability of N / 2⁶⁴. Where the nodes have numbers and the edges strings, a string is the number that it spells (007
spells none); where the nodes have strings, numbers are strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError, IdError, SettingsError
from gamlp.storage.files import Array
from gamlp.storage.sizes import format_size

INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"  # as a program writes it


class NodeIds:
    """The rows of N nodes, by their ids; without `fill`, the row is the id."""

    def __init__(self, nodes: int) -> None:
        self.nodes, self.are_strings = nodes, False
        self._table: tuple[Array, Array] | None = None  # hashes, rows

    @classmethod
    def fill(cls, chunks: Iterable[Any], nodes: int, *, are_strings: bool, path: Path, memory: int | None) -> NodeIds:
        """Take the ids of the node table, chunk by chunk, as `id_values` returns them: none missing, none twice."""
        from gamlp.graph.build import hashing

        ids, slots = cls(nodes), 1 << max(4, (2 * nodes - 1).bit_length())
        kind = np.int32 if nodes < 2**31 else np.int64
        size = slots * (8 + np.dtype(kind).itemsize)
        if memory is not None and size > memory:
            raise SettingsError(
                f"Looking up {nodes:,} ids needs {format_size(size)}, {format_size(memory)} of the memory are for it.\n"
                "Give more memory, or number the nodes from 0 in the order of the node table."
            )
        hashes, rows, filled = np.empty(slots, np.uint64), np.full(slots, hashing.FREE, kind), 0
        for values in chunks:
            if values.null_count:
                at = filled + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
                raise IdError(f"{path}: the id of row {at:,} is empty.\nEvery node needs an id of its own.")
            found = hashes_of(values if are_strings else values.to_numpy(zero_copy_only=False))
            at = hashing.insert(hashes, rows, found, filled)
            if at >= 0:
                raise IdError(
                    f"{path}: the id {values[at].as_py()!r} stands in 2 rows or more, row {filled + at:,} is one.\n"
                    "Every node needs an id of its own."
                )
            filled += len(values)
        ids.are_strings, ids._table = are_strings, (hashes, rows)
        return ids

    def rows(self, column: Any, *, path: Path, place: Callable[[int], str]) -> Array:
        """Return the row of each id in `column`; an unknown one is an IdError that names it and its `place`."""
        values = id_values(column, path=path)
        if values.null_count:
            at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise IdError(f"{path}, {place(at)}: an end of the edge is empty.\nGive every edge a source and a target.")
        found = self.find(values)
        if len(found) and int(found.min()) < 0:
            at = int(np.argmax(found < 0))
            by_row = f"Without an id column, ids are the rows of the node table: 0 to {self.nodes - 1:,}."
            raise IdError(
                f"{path}, {place(at)}, names node {values[at].as_py()!r}, which is not among the {self.nodes:,} nodes."
                f"\n{'Every node needs a row in the node table, isolated nodes too.' if self._table else by_row}"
            )
        return found

    def find(self, values: Any) -> Array:
        """Return the row of each id, as `id_values` returns them; −1 for one that is not among the nodes."""
        from gamlp.graph.build import hashing

        known = None
        if not self.are_strings:
            values, known = spelled_numbers(values)
        found = values if self._table is None else np.asarray(hashing.look_up(*self._table, hashes_of(values)))
        there = (found >= 0) & (found < self.nodes)
        return np.where(there if known is None else there & known, found, -1)


def id_values(column: Any, *, path: Path) -> Any:
    """Return a column of ids in one piece, as integers or as strings; floats must be whole numbers."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        return column
    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    try:
        return pc.cast(column, pa.int64() if numeric else pa.string())
    except pa.ArrowException as error:
        raise FormatError(f"{path}: ids of type {column.type} ({error}).\nIds are whole numbers or strings.") from error


def spelled(column: Any) -> Any:
    """Return ids as strings, for comparing those of two tables; what cannot be an id is empty."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    try:
        whole = pc.cast(column, pa.int64()) if pa.types.is_floating(column.type) else column
        return pc.cast(whole, pa.string())
    except pa.ArrowException:
        return pa.nulls(len(column), pa.string())


def as_integers(strings: Any) -> Any:
    """Return strings of a text file as integers if each is written as an integer is (007 is not), else as they are."""
    try:
        numbers = pc.cast(strings, pa.int64())
    except pa.ArrowInvalid:
        return strings
    same = pc.all(pc.equal(pc.cast(numbers, pa.string()), pc.cast(strings, pa.string()))).as_py()
    return numbers if same in (True, None) else strings


def spelled_numbers(values: Any) -> tuple[Array, Array | None]:
    """Return integers, and where the values are strings, which of them spell one."""
    if pa.types.is_integer(values.type):
        return np.asarray(values.to_numpy(zero_copy_only=False)), None
    known = pc.match_substring_regex(values, INTEGER)
    numbers = pc.cast(pc.if_else(known, values, "0"), pa.int64())
    return tuple(np.asarray(part.to_numpy(zero_copy_only=False)) for part in (numbers, known))  # type: ignore[return-value]


def hashes_of(values: Any) -> Array:
    """Return the hash of each id, of an array of integers or an Arrow array of strings, without empty ones."""
    from gamlp.graph.build import hashing

    if isinstance(values, np.ndarray):
        return np.asarray(hashing.hash_numbers(values.astype(np.int64, copy=False)))
    values = pc.cast(values, pa.large_string())
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    letters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return np.asarray(hashing.hash_strings(ends, letters))
