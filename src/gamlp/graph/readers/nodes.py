"""What is known of the nodes: ids, labels, split, and every other column a feature, or features from another file.

One reader for all sizes. Without a memory limit the table is held in memory and read once; within a limit one column
beside a chunk of features stands in memory at a time, and strings that are ids never do: they are hashed when they are
read, and written as names in a second reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.build.assemble import as_split, named_split
from gamlp.graph.build.encode_labels import encode_labels
from gamlp.graph.build.ids import NodeIds, as_integers, id_values
from gamlp.graph.readers.features import CHUNK_BYTES, feature_chunks, feature_names, feature_types
from gamlp.graph.readers.npz_arrays import members, read_member
from gamlp.graph.readers.table import ArrayTable, Table, file_key, open_table
from gamlp.graph.splits import Split, SplitRule
from gamlp.progress import progress
from gamlp.storage.files import Array, read_array

IDS = ("id", "node", "name")
NO_FEATURES = (
    "Every node needs at least one: numeric columns of the node table, or a file of its own "
    "(--features) with one row per node."
)


@dataclass(frozen=True)
class NodeColumns:
    """Names of the columns, where they are not the usual ones."""

    id: str | None = None
    label: str | None = None
    split: str | None = None

    def found(self, table: Table) -> NodeColumns:
        """Return the columns that a table has for these roles."""
        return NodeColumns(
            table.pick(self.id, IDS), table.pick(self.label, ("label",)), table.pick(self.split, ("split",))
        )

    @property
    def given(self) -> list[str]:
        """The columns that are there."""
        return [name for name in (self.id, self.label, self.split) if name is not None]


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The nodes of a graph, or of one type, in files that are looked at far enough to know how many there are."""

    nodes: int
    table: Table | None = None  # of ids, labels and split
    columns: NodeColumns = NodeColumns()  # of the table
    features: Array | Table | None = None  # a matrix (N, F), mapped, or columns of numbers
    feature_columns: tuple[str, ...] = ()  # of a table of features
    known: tuple[Array, tuple[str, ...]] | None = None  # labels and classes, where no column holds them
    sets: Split | None = None  # where no column holds the split
    paths: tuple[Path, ...] = field(default_factory=tuple)  # all files, for the key

    @property
    def key(self) -> str:
        """Say what is read: another key, other nodes."""
        return f"{[file_key(path) for path in self.paths]} {self.columns} {self.feature_columns}"

    def ids(self, memory: int | None = None) -> NodeIds:
        """Return the rows of the ids, within so much memory."""
        if self.table is None or self.columns.id is None:
            return NodeIds(self.nodes)
        return NodeIds.fill(
            self.id_chunks(), self.nodes, are_strings=not self.numbered, path=self.table.path, memory=memory
        )

    def id_chunks(self) -> Iterator[Any]:
        """Read the ids, all integers or all strings."""
        import pyarrow as pa

        for values in self._ids():
            yield values.cast(pa.int64()) if self.numbered else values

    @cached_property
    def numbered(self) -> bool:
        """Say whether the ids are whole numbers, which text must write as such everywhere (007 is a word)."""
        import pyarrow as pa

        text = self.table is not None and self.table.is_text
        return all(pa.types.is_integer((as_integers(values) if text else values).type) for values in self._ids())

    def _ids(self) -> Iterator[Any]:
        if self.table is not None and self.columns.id is not None:
            for _, batch in self.table.chunks([self.columns.id], {self.columns.id: "string"}):
                yield id_values(batch.column(0), path=self.table.path)

    def names(self) -> Array | None:
        """Return the ids as an array of integers or strings; None where the row is the id."""
        if self.table is None or self.columns.id is None:
            return None
        parts = [part for values in self.id_chunks() for part in values.to_pylist()]
        return np.array(parts, dtype=np.int64 if self.numbered else np.str_)

    def labels(self) -> tuple[Array, tuple[str, ...]]:
        """Return the class number of each node, −1 where unknown, and the classes."""
        if self.known is not None:
            return self.known
        if self.table is None or self.columns.label is None:
            return np.full(self.nodes, -1, dtype=np.int64), ()
        return encode_labels(label_values(self.table.column(self.columns.label), text=self.table.is_text))

    def split(self) -> Split | SplitRule:
        """Return the split that is given, or the usual rule."""
        name, table = self.columns.split, self.table
        if self.sets is not None or table is None or name is None:
            return self.sets or SplitRule()
        return named_split(table.column(name).to_pylist(), place=lambda at: f"{table.path}, {table.line(at)}")

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features; None where they are a matrix."""
        return feature_names(self.features, self.feature_columns) if isinstance(self.features, Table) else None

    def feature_chunks(self) -> Iterator[Array]:
        """Read the features, (n, F) float32 at a time; all chunks together must have N rows."""
        done = 0
        with progress("read features", total=self.nodes) as advance:
            for rows in self._feature_chunks():
                yield rows
                done += len(rows)
                advance(len(rows))
        if done != self.nodes:
            raise ShapeError(
                f"{self.paths[-1]}: there are {done:,} rows of features for {self.nodes:,} nodes.\n"
                "Every node needs one row, in the order of the node table; a file may be cut short."
            )

    def _feature_chunks(self) -> Iterator[Array]:
        if isinstance(self.features, Table):
            yield from feature_chunks(self.features, self.feature_columns)
        elif self.features is not None:
            step = max(1, CHUNK_BYTES // max(1, self.features[:1].nbytes))
            for first in range(0, len(self.features), step):
                yield np.asarray(self.features[first : first + step])

    def feature_matrix(self) -> Array | None:
        """Return all features, (N, F); a matrix as it is in its file, mapped."""
        if not isinstance(self.features, Table):
            return self.features
        features, filled = np.empty((0, len(self.feature_columns)), np.float32), 0
        for rows in self.feature_chunks():
            if not filled:
                features = np.empty((self.nodes, rows.shape[1]), np.float32)
            features[filled : filled + len(rows)] = rows[: self.nodes - filled]
            filled += len(rows)
        return features


def open_nodes(
    nodes: Path | None, features: Path | None, columns: NodeColumns, *, in_memory: bool = False
) -> NodeTable:
    """Look at the files of the nodes; with `in_memory` they are read once and held."""
    own = NodeTable(0) if features is None else open_features(features)
    if nodes is None:
        return own
    kind = nodes.suffix.lower()
    if kind in (".npy", ".npz"):
        table = open_features(nodes) if kind == ".npy" else open_npz(nodes, with_features=features is None)
    else:
        table = open_node_table(nodes, columns, with_features=features is None, in_memory=in_memory)
    if features is None:
        return table
    if own.nodes != table.nodes:
        raise ShapeError(
            f"{features} has {own.nodes:,} rows, {nodes} {table.nodes:,} nodes.\n"
            "Every node needs one row of features, in the order of the node table."
        )
    return replace(table, features=own.features, feature_columns=own.feature_columns, paths=(*table.paths, *own.paths))


def open_features(path: Path, nodes: int | None = None) -> NodeTable:
    """Look at features alone: .npy (N, F), .npz with `features`, or a table of numbers only; `nodes` saves counting."""
    if path.suffix.lower() in (".npy", ".npz"):
        npy = path.suffix.lower() == ".npy"
        values = matrix(read_array(path, memory_map=True) if npy else read_member(path, "features"), path)
        return NodeTable(len(values), features=values, paths=(path,))
    table = open_table(path)
    return NodeTable(table.rows if nodes is None else nodes, features=table, feature_columns=table.names, paths=(path,))


def open_node_table(path: Path, columns: NodeColumns, *, with_features: bool, in_memory: bool) -> NodeTable:
    """Look at a node table; its columns without a role are features."""
    table: Table = open_table(path)
    found = columns.found(table)
    others = tuple(name for name in table.names if with_features and name not in found.given)
    if in_memory:
        types = {**feature_types(table, others), **dict.fromkeys(found.given, "string")}
        try:
            table = table.held((*found.given, *others) or table.names[:1], types)
        except FormatError:  # a word among the features: chunks of them name it and its line
            for _ in feature_chunks(table, others):
                pass
            raise
    return NodeTable(table.rows, table, found, table if others else None, others, paths=(path,))


def open_npz(path: Path, *, with_features: bool) -> NodeTable:
    """Look at a .npz of features, labels, and perhaps ids, train, valid and test."""
    held = {key: read_member(path, key) for key in members(path) if key != "features" or with_features}
    if not held.keys() & {"features", "labels", "ids"}:
        raise FormatError(f"{path} holds {', '.join(sorted(held)) or 'nothing'}.\nExpected features, labels or ids.")
    nodes = len(next(held[key] for key in ("features", "labels", "ids") if key in held))
    sets = [held.get(key, np.empty(0, np.int64)) for key in ("train", "valid", "test")]
    return NodeTable(
        nodes,
        table=ArrayTable(path, ("id",), (held["ids"],)) if "ids" in held else None,
        columns=NodeColumns(id="id" if "ids" in held else None),
        features=matrix(held["features"], path) if "features" in held else None,
        known=encode_labels(held["labels"]) if "labels" in held else None,
        sets=as_split(*sets, nodes=nodes) if "train" in held else None,
        paths=(path,),
    )


def matrix(features: Array, path: Path) -> Array:
    """Refuse features that are not a table."""
    if features.ndim != 2:
        raise ShapeError(f"{path}: the features have the shape {features.shape}.\nExpected (nodes, features).")
    return features


def label_values(column: Any, *, text: bool) -> Array:
    """Return labels for encoding: as they are typed, or as text writes them; whole numbers stay exact."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

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
