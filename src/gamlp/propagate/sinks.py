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

from gamlp.errors import NotFiniteError
from gamlp.storage.files import Array


class Target(NamedTuple):
    """Where rows are written: values[at …, hop, column …]."""

    values: Array  # (n, hops, columns)
    hop: int
    column: int


class Sink(ABC):
    """Takes the wanted rows of one block of columns after the other."""

    in_order: bool  # a block must come hop by hop, its rows from the first to the last
    rows_at_once: int = 2**62  # at most, in one target

    @abstractmethod
    def block(self, number: int, columns: slice) -> AbstractContextManager[Sink]:
        """Begin a block, whose rows it takes then; the block is finished when this ends without an error."""

    @abstractmethod
    def put(self, hop: int, at: Any, values: Array) -> None:
        """Take values (n, w) of a hop; `at`, a slice or a list, are their places among the wanted rows.

        Where `in_order`, as on disk, rows come in ascending order of their nodes: `Propagation.sorted_rows`.
        """

    @abstractmethod
    def target(self, hop: int, first: int, last: int) -> AbstractContextManager[Target]:
        """Lend an array for the wanted rows first … last−1 of a hop, which is filled when this ends."""


class ArraySink(Sink):
    """The result in memory: values (R, hops kept, F), or of some columns from `first_column` on."""

    in_order = False

    def __init__(self, values: Array, hops: Sequence[int], *, first_column: int = 0) -> None:
        self.values, self._first, self._columns = values, first_column, slice(0, 0)
        self._place = {hop: place for place, hop in enumerate(hops)}

    @contextmanager
    def block(self, number: int, columns: slice) -> Iterator[Sink]:
        """Begin a block."""
        self._columns = slice(columns.start - self._first, columns.stop - self._first)
        yield self

    def put(self, hop: int, at: Any, values: Array) -> None:
        """Copy the rows."""
        self.values[at, self._place[hop], self._columns] = values

    @contextmanager
    def target(self, hop: int, first: int, last: int) -> Iterator[Target]:
        """Lend the result itself."""
        yield Target(self.values[first:last], self._place[hop], self._columns.start)


def as_stored(values: Array, storage: str) -> Array:
    """Return features as they are stored; float16 holds no more than 65,504."""
    with np.errstate(over="ignore"):
        kept = values.astype(storage, copy=False)
    if kept.dtype == np.float16 and not np.isfinite(kept).all():
        raise too_large("Some features")
    return kept


def too_large(what: str) -> NotFiniteError:
    """Return the error for values that float16 cannot hold."""
    return NotFiniteError(
        f"{what} are NaN or larger than 65,504, the largest number float16 can hold.\n"
        "Store hops as float32, or scale the features first."
    )
