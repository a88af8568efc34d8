"""Where edges come from: a table read in batches, or arrays. Every source can begin after some edges it gave before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gamlp.errors import ShapeError
from gamlp.graph.build.edge_groups import Edges, check_ends
from gamlp.graph.build.hashed_ids import HashedIds
from gamlp.graph.build.ids import id_values
from gamlp.graph.readers.columns import ROWS, TableFile, open_table, valid
from gamlp.graph.readers.edges import EdgeColumns, as_weights, choose, read_arrays
from gamlp.graph.readers.streams import reading
from gamlp.storage.files import Array

BATCH = 2**20


class EdgeSource(Protocol):
    """A stream of edges that can be begun again."""

    weighted: bool
    estimate: int | None  # how many edges there are, about; None = unknown

    @property
    def key(self) -> str:
        """Say what it reads: another key, other edges."""

    def batches(self, skip: int) -> Iterator[Edges]:
        """Yield (source, target, weight) of the edges from number `skip` on, as rows of the node table."""


class ArrayEdges:
    """Edges in arrays, mapped ones too."""

    def __init__(self, source: Array, target: Array, weights: Array | None, *, nodes: int, key: str) -> None:
        if source.shape != target.shape or (weights is not None and weights.shape != source.shape):
            raise ShapeError(
                "Sources, targets and weights of the edges differ in number.\nEvery edge needs one of each."
            )
        self.ends, self.weights, self.nodes, self._key = (source, target), weights, nodes, key
        self.weighted = weights is not None
        self.estimate: int | None = len(source)

    @property
    def key(self) -> str:
        """Say what it reads."""
        return self._key

    def batches(self, skip: int) -> Iterator[Edges]:
        """Yield slices."""
        for first in range(skip, len(self.ends[0]), BATCH):
            span = slice(first, first + BATCH)
            source, target = (np.ascontiguousarray(ends[span]) for ends in self.ends)
            for ends in (source, target):
                check_ends(ends, self.nodes)
            yield source, target, None if self.weights is None else np.asarray(self.weights[span], np.float32)


class TableEdges:
    """Edges of a Parquet or text file."""

    def __init__(self, path: Path, columns: EdgeColumns, *, nodes: int, ids: HashedIds | None = None) -> None:
        self.table = open_table(path)
        self.chosen = choose(self.table, columns)
        self.nodes, self.ids = nodes, ids
        self.weighted = len(self.chosen) == 3
        self.estimate = None if self.table.is_text else parquet_rows(path)

    @property
    def key(self) -> str:
        """Say what it reads."""
        return f"{file_key(self.table.path)} {self.chosen}"

    def batches(self, skip: int) -> Iterator[Edges]:
        """Read batch by batch; whole row groups of a Parquet file are skipped, lines of text are read and dropped."""
        kind = "string" if self.ids is not None and self.ids.are_words else "int64"
        types = dict(zip(self.chosen, (kind, kind, "float32"), strict=False))
        start, stream = table_batches(self.table, self.chosen, types, skip)
        for batch in stream:
            rows = batch.slice(max(0, skip - start))
            if rows.num_rows:
                yield self._edges(rows, max(start, skip))
            start += batch.num_rows

    def _edges(self, batch: Any, start: int) -> Edges:
        ends = [self._rows(batch.column(name), start) for name in self.chosen[:2]]
        weights = as_weights_of(batch.column(self.chosen[2]), self.table.path) if self.weighted else None
        return ends[0], ends[1], weights

    def _rows(self, column: Any, start: int) -> Array:
        values = id_values(column, path=self.table.path)
        if self.ids is None:
            from gamlp.graph.build.ids import NodeIds

            return NodeIds(self.nodes).rows(values, path=self.table.path, place=lambda at: self.table.line(start + at))
        return self.ids.rows(values, path=self.table.path, place=lambda at: self.table.line(start + at))


def edge_source(path: Path, columns: EdgeColumns, *, nodes: int, ids: HashedIds | None) -> EdgeSource:
    """Open a file of edges."""
    if path.suffix.lower() not in (".npy", ".npz"):
        return TableEdges(path, columns, nodes=nodes, ids=ids)
    source, target, weights = read_arrays(path)
    return ArrayEdges(source, target, weights, nodes=nodes, key=file_key(path))


def file_key(path: Path) -> str:
    """Return what tells a file from another, and from itself after a change."""
    found = path.stat()
    return f"{path.resolve()} {found.st_size} {found.st_mtime_ns}"


def parquet_rows(path: Path) -> int:
    """Return the number of rows that a Parquet file states."""
    from pyarrow import parquet

    with reading(path):
        return int(parquet.read_metadata(path).num_rows)


def table_batches(table: TableFile, columns: list[str], types: dict[str, str], skip: int) -> tuple[int, Iterator[Any]]:
    """Return the number of the first row read, at most `skip`, and the batches from there on."""
    if table.is_text:
        return 0, table.batches(columns, types)
    from pyarrow import parquet

    with reading(table.path):
        described = parquet.read_metadata(table.path)
    counts = np.cumsum([0] + [described.row_group(at).num_rows for at in range(described.num_row_groups)])
    first = max(0, int(np.searchsorted(counts, skip, side="right")) - 1)
    groups = list(range(min(first, described.num_row_groups), described.num_row_groups))

    def stream() -> Iterator[Any]:
        with reading(table.path), parquet.ParquetFile(table.path, pre_buffer=False) as file:
            yield from map(valid, file.iter_batches(batch_size=ROWS, row_groups=groups, columns=columns))

    return int(counts[groups[0]]) if groups else skip, stream()


def as_weights_of(column: Any, path: Path) -> Array:
    """Return one batch's weights."""
    import pyarrow as pa

    return as_weights(pa.chunked_array([column]), path)
