"""Columns that are made where they are read, so that an (N, F) matrix of mostly known values is never held.

    SparseRows   x_i = rows_k  for i = ids_k,   0    otherwise          the errors of predictions
    OneHotRows   x_i = one-hot(class_k)  for i = ids_k,  others as in SparseRows          Ŷ⁰
    WithRows     x_i = rows_k  for i = ids_k,   b_i  otherwise          predictions with the true labels in place

Every engine reads columns[first:last, block] as float32 and `content` for the key of its cache; plain and mapped arrays
and `scaling.ScaledFeatures` give the same. Cost: n·F values for n rows, whatever N is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gamlp.errors import StorageError
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array, is_whole_file
from gamlp.storage.huge_pages import empty
from gamlp.storage.threads import Run, ranges

VALUES_AT_ONCE = 2**18  # that a thread reads and works on
READERS = 4  # threads that read from files: more would read in small parts
NO_IDS = np.empty(0, np.int64)

Found = TypeVar("Found")


class ColumnSource(ABC):
    """Something that is read like a matrix (N, F) of float32: source[first:last, columns], or source[ids, columns]."""

    ndim, dtype = 2, np.dtype(np.float32)
    shape: tuple[int, int]
    content: list[Array | str]  # what the values follow from, for a hash
    sparse: bool = False  # whether it can tell rows that are not zero from others

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, at: Any) -> Array:
        """Return some rows, or rows and columns, as float32."""

    def filled(self, columns: slice) -> Array | None:
        """Return all rows that are not zero in these columns, and perhaps some that are; None = any may be."""
        return None


class ColumnReader:
    """Reads blocks of columns, one after the other, a range of rows at a time by several threads.

    Without a memory limit every thread takes the next range when it is done with one. Within `chunk_bytes` ranges go in
    rounds of a few, each with a buffer of its own: files are read in order, and no more is held than the buffers.
    """

    def __init__(self, chunk_bytes: int | None, run: Run, *, threads: int) -> None:
        self.chunk_bytes, self.run, self.readers = chunk_bytes, run, min(threads, READERS)
        self._buffers: list[Array] = []

    def each(self, source: Any, columns: slice, work: Callable[[int, Array], Found]) -> Iterator[tuple[int, Found]]:
        """Yield (first, work(first, values)) for ranges of rows, in order; values (n, w) are float32."""
        width = columns.stop - columns.start
        if self.chunk_bytes is None:

            def look(first: int, last: int) -> tuple[int, Found]:
                return first, work(first, np.ascontiguousarray(source[first:last, columns], dtype=np.float32))

            yield from self.run([partial(look, *rows) for rows in ranges(len(source), max(1, VALUES_AT_ONCE // width))])
            return
        reader = ArrayReader(source)
        some = ranges(len(source), max(1, self.chunk_bytes // 2 // self.readers // reader.bytes_a_row(width)))
        if not self._buffers or len(self._buffers[0]) < some[0][1] * width:
            self._buffers = [empty((some[0][1] * width,), np.float32) for _ in range(self.readers)]

        def read(rows: tuple[int, int], buffer: Array) -> tuple[int, Found]:
            return rows[0], work(rows[0], reader.block(*rows, columns, buffer))

        for at in range(0, len(some), self.readers):
            yield from self.run([partial(read, *pair) for pair in zip(some[at:], self._buffers, strict=False)])
        reader.check_unchanged()
        reader.close()


class SparseRows(ColumnSource):
    """A matrix (nodes, width) that is zero but for `rows` (n, width), which belong to the nodes `ids` (n,)."""

    sparse = True

    def __init__(self, nodes: int, width: int, ids: Array, rows: Array) -> None:
        self.shape = (nodes, width)
        self.ids, self.rows = _in_order(ids, rows)
        self.content = [f"sparse {self.shape}", self.ids, self.rows]

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        count = len(range(len(self))[rows]) if isinstance(rows, slice) else len(rows)
        values = np.zeros((count, len(range(*columns.indices(self.shape[1])))), np.float32)
        return _put_rows(values, self.ids, self.rows, rows, columns)

    def filled(self, columns: slice) -> Array:
        """Return the rows that there are."""
        return self.ids[self.rows[:, columns].any(axis=1)]

    def only(self, kept: Array) -> SparseRows:
        """Return the same with the rows that `kept` (n,) says, the others zero."""
        return SparseRows(*self.shape, self.ids[kept], self.rows[kept])


class OneHotRows(ColumnSource):
    """A matrix (nodes, classes) of one-hot rows, and of soft ones beside: the labels Ŷ⁰, one number for each row.

    `known` (n,) nodes have the classes `labels` (n,), the nodes of `soft` its rows, all others zeros.
    """

    sparse = True

    def __init__(self, nodes: int, classes: int, known: Array, labels: Array, soft: SparseRows | None = None) -> None:
        self.shape, self.soft = (nodes, classes), soft or SparseRows(nodes, classes, NO_IDS, np.zeros((0, classes)))
        order = np.argsort(known, kind="stable")
        self.known, self.labels = np.asarray(known, np.int64)[order], np.asarray(labels, np.int32)[order]
        self.content = [f"one-hot {self.shape}", self.known, self.labels, *self.soft.content]

    @property
    def ids(self) -> Array:
        """The nodes whose rows are not zero, sorted."""
        return np.sort(np.concatenate([self.known, self.soft.ids])) if len(self.soft.ids) else self.known

    @property
    def rows(self) -> Array:
        """Their rows, (n, classes): for a few nodes."""
        return self[self.ids, :]

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        values = self.soft[rows, columns]
        first, last, _ = columns.indices(self.shape[1])
        if isinstance(rows, slice):
            begin, end = np.searchsorted(self.known, [rows.start or 0, (rows.start or 0) + len(values)])
            place, labels = self.known[begin:end] - (rows.start or 0), self.labels[begin:end]
        else:
            found = np.asarray(np.searchsorted(self.known, rows))
            found[found == len(self.known)] = 0
            place = np.flatnonzero(self.known[found] == rows) if len(self.known) else NO_IDS
            labels = self.labels[found[place]]
        here = (labels >= first) & (labels < last)
        values[place[here], labels[here] - first] = 1
        return values

    def filled(self, columns: slice) -> Array:
        """Return the nodes of these classes, and the soft rows."""
        here = (self.labels >= columns.start) & (self.labels < columns.stop)
        return np.concatenate([self.known[here], self.soft.filled(columns)])

    def only(self, nodes: Array) -> OneHotRows:
        """Return the same with the rows of the nodes that `nodes` (N,) bool says, the others zero."""
        kept = nodes[self.known]
        return OneHotRows(*self.shape, self.known[kept], self.labels[kept], self.soft.only(nodes[self.soft.ids]))


class MappedSource(ColumnSource):
    """Made of another matrix (N, F'), an array, a mapped file or a source, which is read a range of rows at a time."""

    def __init__(self, base: Any) -> None:
        self.base, self._source = base, ArrayReader(base)

    def check_unchanged(self) -> None:
        """Refuse to go on with a file that someone wrote to in the meantime."""
        self._source.check_unchanged()

    def _read(self, rows: Any, columns: slice) -> Array:
        """Return what is there of these rows, float32."""
        if not isinstance(rows, slice):
            return np.asarray(self.base[rows, columns], np.float32)
        first, last, _ = rows.indices(len(self))
        return self._source.block(first, last, slice(*columns.indices(self.base.shape[1])))


class WithRows(MappedSource):
    """A base (N, F) in which `rows` (n, F) take the place of those of `ids` (n,)."""

    def __init__(self, base: Any, ids: Array, rows: Array) -> None:
        super().__init__(base)
        self.shape = tuple(base.shape)
        self.ids, self.rows = _in_order(ids, rows)
        self.content = ["with rows", *getattr(base, "content", [base]), self.ids, self.rows]

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        values = np.array(self._read(rows, columns), order="C")
        return _put_rows(values, self.ids, self.rows, rows, columns)

    def __reduce__(self) -> Any:
        return opened_again, (WithRows, by_name(self.base), self.ids, self.rows)


@dataclass(frozen=True)
class FileArray:
    """A mapped array by the name of its file, as it travels to processes that see the same files."""

    path: str
    bytes: int
    offset: int
    dtype: str
    shape: tuple[int, ...]
    by_columns: bool

    def open(self) -> Array:
        """Map the file on this machine."""
        found = Path(self.path).stat().st_size if Path(self.path).is_file() else None
        if found != self.bytes:
            seen = "does not see" if found is None else f"sees {found:,} bytes, not {self.bytes:,}, of"
            raise StorageError(
                f"A machine of the cluster {seen} {self.path}.\n"
                "Keep the graph on storage that all machines share, under the same name."
            )
        order: Any = "F" if self.by_columns else "C"
        return np.memmap(self.path, np.dtype(self.dtype), "r", self.offset, self.shape, order)


def by_name(array: Any) -> Any:
    """Return a mapped array by the name of its file, anything else as it is."""
    if not is_whole_file(array):
        return array
    path, by_columns = Path(array.filename).resolve(), bool(not array.flags.c_contiguous)
    return FileArray(str(path), path.stat().st_size, array.offset, array.dtype.str, array.shape, by_columns)


def opened_again(kind: Callable[..., ColumnSource], base: Any, *rest: Any) -> ColumnSource:
    """Return a source that has travelled: its file is opened on this machine."""
    return kind(base.open() if isinstance(base, FileArray) else base, *rest)


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
