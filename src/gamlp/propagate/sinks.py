"""Where the hops of the wanted rows go as they are computed, block of columns by block of columns.

ArraySink      straight into the result, (R, hops kept, F)                          no memory limit
block_files    a file a block, in order; a run that was killed goes on after it      within a memory limit
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np

from gamlp.storage.files import Array


class Target(NamedTuple):
    """Where rows are written: values[at …, hop, column …]."""

    values: Array  # (n, hops, columns)
    hop: int
    column: int


class RowSink(ABC):
    """Takes the wanted rows of one block of columns, `rows_at_once` of them at most in one target."""

    in_order: bool  # hop by hop, from the first row to the last
    rows_at_once: int

    @abstractmethod
    def put(self, hop: int, at: Any, values: Array) -> None:
        """Take values (n, w) of a hop; `at`, a slice or a list, are their places among the wanted rows."""

    @abstractmethod
    def target(self, hop: int, first: int, last: int) -> Target:
        """Return an array for the wanted rows first … last−1 of a hop."""

    @abstractmethod
    def written(self, hop: int, first: int, target: Target) -> None:
        """Take the array back, filled."""


class Sink(ABC):
    """Takes all blocks; those of one that is `in_order` come hop by hop, their rows from the first to the last."""

    in_order: bool

    @abstractmethod
    def block(self, number: int, columns: slice) -> AbstractContextManager[RowSink]:
        """Begin a block; it is finished when this ends without an error."""


class ArraySink(Sink):
    """The result in memory: values (R, hops kept, F), or of some columns from `first_column` on."""

    in_order = False

    def __init__(self, values: Array, hops: Sequence[int], *, first_column: int = 0) -> None:
        self.values, self._first = values, first_column
        self._place = {hop: place for place, hop in enumerate(hops)}

    @contextmanager
    def block(self, number: int, columns: slice) -> Iterator[RowSink]:
        """Begin a block."""
        yield ArrayRows(self.values, self._place, slice(columns.start - self._first, columns.stop - self._first))


class ArrayRows(RowSink):
    """Some columns of the result in memory."""

    in_order = False
    rows_at_once = 2**62  # all

    def __init__(self, values: Array, place: dict[int, int], columns: slice) -> None:
        self._values, self._place, self._columns = values, place, columns

    def put(self, hop: int, at: Any, values: Array) -> None:
        """Copy the rows."""
        self._values[at, self._place[hop], self._columns] = values

    def target(self, hop: int, first: int, last: int) -> Target:
        """Return the result itself."""
        return Target(self._values[first:last], self._place[hop], self._columns.start)

    def written(self, hop: int, first: int, target: Target) -> None:
        """Nothing is left to do."""


def as_stored(values: Array, storage: str) -> Array:
    """Return features as they are stored; float16 holds no more than 65,504."""
    from gamlp.propagate.hops import too_large

    with np.errstate(over="ignore"):
        kept = values.astype(storage, copy=False)
    if kept.dtype == np.float16 and not np.isfinite(kept).all():
        raise too_large("Some features")
    return kept
