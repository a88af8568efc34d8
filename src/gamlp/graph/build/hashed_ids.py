"""Ids to rows by a hash table of 64-bit hashes: 12 or 16 bytes a slot and no words in memory, at 1/2 full at most.

Integers are hashed one to one. Words are hashed to 64 bits: two ids of the node table that collide are found when the
table is built; an id that is not in the table is taken for one that is with a probability of N / 2⁶⁴.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from gamlp.errors import FormatError, IdError, SettingsError
from gamlp.storage.files import Array
from gamlp.storage.sizes import format_size

FREE = -1


class HashedIds:
    """The rows of the ids of a node table."""

    def __init__(self, nodes: int, *, are_words: bool, memory: int) -> None:
        slots = 1 << max(4, (2 * nodes - 1).bit_length())
        kind = np.int32 if nodes < 2**31 else np.int64
        size = slots * (8 + np.dtype(kind).itemsize)
        if size > memory:
            raise SettingsError(
                f"Looking up {nodes:,} ids needs {format_size(size)}, {format_size(memory)} of the memory are for it.\n"
                "Give more memory, or number the nodes from 0 in the order of the node table."
            )
        self.nodes, self.are_words = nodes, are_words
        self.hashes, self.places = np.empty(slots, np.uint64), np.full(slots, FREE, kind)
        self._filled = 0

    def fill(self, columns: Iterator[Any], *, path: Path) -> None:
        """Take the ids of the node table, batch by batch."""
        for column in columns:
            if column.null_count:
                at = self._filled + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise IdError(f"{path}: the id of row {at:,} is empty.\nEvery node needs an id of its own.")
            at = insert(self.hashes, self.places, hashes_of(column, words=self.are_words), self._filled)
            if at >= 0:
                raise IdError(
                    f"{path}: the id {column[at].as_py()!r} of row {self._filled + at:,} has been there before.\n"
                    "Every node needs an id of its own."
                )
            self._filled += len(column)

    def rows(self, column: Any, *, path: Path, place: Callable[[int], str]) -> Array:
        """Return the row of each id in `column`; an unknown one is an IdError that names it and its `place`."""
        if column.null_count:
            raise IdError(f"{path}: an end of an edge is empty.\nEvery edge needs a source and a target.")
        found = look_up(self.hashes, self.places, hashes_of(column, words=self.are_words))
        if len(found) and int(found.min()) < 0:
            at = int(np.argmin(found >= 0))
            raise IdError(
                f"{path}, {place(at)}, names node {column[at].as_py()!r}, "
                f"which is not among the {self.nodes:,} nodes.\n"
                "Every node needs a row in the node table, isolated nodes too."
            )
        return np.asarray(found)


def hashes_of(column: Any, *, words: bool) -> Array:
    """Return the hash of each id of an Arrow array, which has no empty ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = pc.cast(column, pa.large_string() if words else pa.int64())
    except pa.ArrowException as error:
        raise FormatError(f"Ids of type {column.type} ({error}).\nIds are whole numbers or words.") from error
    if not words:
        return np.asarray(hash_numbers(np.asarray(column.to_numpy(zero_copy_only=False))))
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    letters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return np.asarray(hash_words(ends, letters))


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def mixed(value: np.uint64) -> np.uint64:
    """Spread the bits of a number over all 64; one to one."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def hash_numbers(values: Array) -> Array:
    """Hash integers."""
    result = np.empty(len(values), np.uint64)
    for at in range(len(values)):
        result[at] = mixed(np.uint64(values[at]))
    return result


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def hash_words(ends: Array, letters: Array) -> Array:
    """Hash words: letter by letter into 64 bits, mixed after every eight and at the end with the length."""
    result = np.empty(len(ends) - 1, np.uint64)
    for at in range(len(ends) - 1):
        state, chunk, held = np.uint64(0x9E3779B97F4A7C15), np.uint64(0), 0
        for letter in range(ends[at], ends[at + 1]):
            chunk = (chunk << np.uint64(8)) | np.uint64(letters[letter])
            held += 1
            if held == 8:
                state = mixed(state ^ chunk) + np.uint64(0x9E3779B97F4A7C15)
                chunk, held = np.uint64(0), 0
        state = mixed(state ^ chunk) + np.uint64(ends[at + 1] - ends[at])
        result[at] = mixed(state)
    return result


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def insert(hashes: Array, places: Array, found: Array, first: int) -> int:
    """Give the ids the rows first, first+1, …; return the number of the first that is there already, or −1."""
    mask = np.uint64(len(hashes) - 1)
    for at in range(len(found)):
        slot = found[at] & mask
        while places[slot] != FREE:
            if hashes[slot] == found[at]:
                return at
            slot = (slot + np.uint64(1)) & mask
        hashes[slot], places[slot] = found[at], first + at
    return -1


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def look_up(hashes: Array, places: Array, found: Array) -> Array:
    """Return the rows of ids, −1 where there is none."""
    mask = np.uint64(len(hashes) - 1)
    rows = np.empty(len(found), places.dtype)
    for at in range(len(found)):
        slot = found[at] & mask
        while places[slot] != FREE and hashes[slot] != found[at]:
            slot = (slot + np.uint64(1)) & mask
        rows[at] = places[slot]
    return rows
