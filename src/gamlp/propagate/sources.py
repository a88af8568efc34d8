"""Columns that are made where they are read, so that an (N, F) matrix of mostly known values is never held.

    SparseRows   x_i = rows_k  for i = ids_k,   0    otherwise          Ŷ⁰, the errors of predictions
    WithRows     x_i = rows_k  for i = ids_k,   b_i  otherwise          predictions with the true labels in place

Every engine reads columns[first:last, block] as float32 and `content` for the key of its cache; plain and mapped arrays
and `scaling.ScaledFeatures` give the same. Cost: n·F values for n rows, whatever N is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gamlp.propagate.file_array import by_name, opened
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array


class ColumnSource(ABC):
    """Something that is read like a matrix (N, F) of float32: source[first:last, columns], or source[ids, columns]."""

    ndim, dtype = 2, np.dtype(np.float32)
    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, at: Any) -> Array:
        """Return some rows, or rows and columns, as float32."""

    @property
    @abstractmethod
    def content(self) -> list[Array | str]:
        """What the values follow from, for a hash."""


class SparseRows(ColumnSource):
    """A matrix (nodes, width) that is zero but for `rows` (n, width), which belong to the nodes `ids` (n,)."""

    def __init__(self, nodes: int, width: int, ids: Array, rows: Array) -> None:
        self.shape = (nodes, width)
        self.ids, self.rows = _in_order(ids, rows)

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        count = len(range(len(self))[rows]) if isinstance(rows, slice) else len(rows)
        width = len(range(*columns.indices(self.shape[1])))
        values = np.zeros((count, width), np.float32)
        return _put_rows(values, self.ids, self.rows, rows, columns)

    @property
    def content(self) -> list[Array | str]:
        """What the values follow from, for a hash."""
        return [f"sparse {self.shape}", self.ids, self.rows]

    def only(self, kept: Array) -> SparseRows:
        """Return the same with the rows that `kept` (n,) says, the others zero."""
        return SparseRows(*self.shape, self.ids[kept], self.rows[kept])


class WithRows(ColumnSource):
    """A base (N, F), an array or another source, in which `rows` (n, F) take the place of those of `ids` (n,)."""

    def __init__(self, base: Any, ids: Array, rows: Array) -> None:
        self.base, self.shape, self._source = base, tuple(base.shape), ArrayReader(base)
        self.ids, self.rows = _in_order(ids, rows)

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        if isinstance(rows, slice):
            first, last, _ = rows.indices(len(self))
            values = self._source.block(first, last, slice(*columns.indices(self.shape[1])))
        else:
            values = self.base[rows][:, columns]
        return _put_rows(np.array(values, np.float32, order="C"), self.ids, self.rows, rows, columns)

    def __reduce__(self) -> Any:
        """Travel to another machine by the file's name."""
        return _with_rows, (by_name(self.base), self.ids, self.rows)

    @property
    def content(self) -> list[Array | str]:
        """What the values follow from, for a hash."""
        return ["with rows", *getattr(self.base, "content", [self.base]), self.ids, self.rows]

    def check_unchanged(self) -> None:
        """Refuse to go on with a file that someone wrote to in the meantime."""
        self._source.check_unchanged()


def _with_rows(base: Any, ids: Array, rows: Array) -> WithRows:
    return WithRows(opened(base), ids, rows)


def _in_order(ids: Array, rows: Array) -> tuple[Array, Array]:
    """Return ids (int64) and their rows (float32) sorted by id."""
    ids, rows = np.asarray(ids, np.int64), np.asarray(rows, np.float32)
    if (np.diff(ids) > 0).all():
        return ids, rows
    order = np.argsort(ids, kind="stable")
    return ids[order], rows[order]


def _put_rows(values: Array, ids: Array, replacements: Array, rows: Any, columns: slice) -> Array:
    """Write the replacements of the nodes `rows`, a slice or ids, into `values`, which are theirs; ids are sorted."""
    if isinstance(rows, slice):
        first = rows.start or 0
        begin, end = np.searchsorted(ids, [first, first + len(values)])
        values[ids[begin:end] - first] = replacements[begin:end, columns]
        return values
    at = np.searchsorted(ids, rows)
    found = at < len(ids)
    found[found] = ids[at[found]] == rows[found]
    values[found] = replacements[at[found]][:, columns]
    return values
