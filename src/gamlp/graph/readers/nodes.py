"""What is known of the nodes: ids, labels, split, and every other column a feature, or features from another file.

One reader for all sizes. Without a memory limit the table is held in memory and read once; within a limit one column
beside a chunk of features stands in memory at a time, and strings that are ids never do: they are hashed when they are
read, and written as names in a second reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError, ShapeError, did_you_mean
from gamlp.graph.build.assemble import as_features, as_split, encode_labels, named_split, plain
from gamlp.graph.build.ids import NodeIds, as_integers, id_values, spelled
from gamlp.graph.encode import Columns, Encoded
from gamlp.graph.encode.bag import Bag
from gamlp.graph.graph import column_order
from gamlp.graph.readers.columns import (
    encoded_chunks,
    fit_columns,
    matrix_chunks,
    readable_types,
    text_types,
)
from gamlp.graph.readers.edges import EdgeList
from gamlp.graph.readers.id_column import IDS, all_different, id_column
from gamlp.graph.readers.labels import label_columns, read_labels
from gamlp.graph.readers.npz_arrays import members, read_member
from gamlp.graph.readers.sparse import SparseFile, Triples, is_scipy, open_scipy, triples_of
from gamlp.graph.readers.table import ArrayTable, Table, file_key, is_stream, is_table, open_table
from gamlp.graph.splits import AnySplit, Split, SplitRule, Splits
from gamlp.progress import progress
from gamlp.storage.files import Array, read_array

Sparse = Triples | SparseFile


@dataclass(frozen=True)
class NodeColumns:
    """Names of the columns, where they are not the usual ones."""

    id: str | None = None
    label: str | None = None
    split: str | None = None
    ignored: tuple[str, ...] = ()  # no features, though they are there
    labels: tuple[str, ...] = ()  # the columns that `label` stands for, where they are known


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The nodes of a graph, or of one type, in files that are looked at far enough to know how many there are."""

    nodes: int
    table: Table | None = None  # of ids, labels and split
    columns: NodeColumns = NodeColumns()  # of the table
    features: Array | Table | Sparse | None = None  # a matrix (N, F), mapped, columns, or mostly zeros
    feature_columns: tuple[str, ...] = ()  # of a table of features
    known: tuple[Array, tuple[str, ...]] | None = None  # labels and classes, where no column holds them
    sets: Split | Splits | None = None  # where no column holds the split
    paths: tuple[Path, ...] = ()  # all files, for the key
    found: int = 0  # nodes at the end that only edges name
    encoding: Columns | None = None  # how columns become features, where that was learned before

    @property
    def key(self) -> str:
        """Say what is read: another key, other nodes."""
        learned = "" if self.encoding is None else self.encoding.key
        return f"{[file_key(path) for path in self.paths]} {self.columns} {self.feature_columns} {learned}"

    def ids(self, memory: int | None = None) -> NodeIds:
        """Return the rows of the ids, within so much memory."""
        if self.columns.id is None or self.table is None:
            return NodeIds(self.nodes)
        chunks, path = self.id_chunks(), self.table.path
        return NodeIds.fill(chunks, self.nodes, are_strings=not self.numbered, path=path, memory=memory)

    def id_chunks(self) -> Iterator[Any]:
        """Read the ids, all integers or all strings."""
        for values in self._ids():
            yield values.cast(pa.int64()) if self.numbered else values

    @cached_property
    def numbered(self) -> bool:
        """Say whether the ids are whole numbers, which text must write as such everywhere (007 is a word)."""
        text = self.table is not None and self.table.is_text
        return all(pa.types.is_integer((as_integers(values) if text else values).type) for values in self._ids())

    def _ids(self) -> Iterator[Any]:
        if self.table is not None and self.columns.id is not None:
            for _, batch in self.table.chunks([self.columns.id], {self.columns.id: "string"}):
                yield id_values(batch.column(0), path=self.table.path)

    def names(self) -> Array | None:
        """Return the ids as an array of integers or strings; None where the row is the id."""
        if self.columns.id is None:
            return None
        parts = [part for values in self.id_chunks() for part in values.to_pylist()]
        return np.array(parts, dtype=np.int64 if self.numbered else np.str_)

    def labels(self) -> tuple[Array, tuple[str, ...]]:
        """Return the class number of each node, or several labels, −1 where unknown, and the classes."""
        if self.known is not None:
            return self.known
        if self.table is None or not self.columns.labels:
            return np.full(self.nodes, -1, dtype=np.int64), ()
        return read_labels(self.table, self.columns.labels)

    def split(self) -> AnySplit:
        """Return the split that is given, or the usual rule."""
        name, table = self.columns.split, self.table
        if self.sets is not None or table is None or name is None:
            return self.sets or SplitRule()
        return named_split(table.column(name).to_pylist(), place=lambda at: f"{table.path}, {table.line(at)}")

    @cached_property
    def encoder(self) -> Columns | None:
        """How columns become features, learned from them where it was not before; None of a matrix."""
        if self._sparse is not None:
            return Columns((self._sparse[0],))
        return None if self._learned is None else self._learned[0]

    @cached_property
    def _sparse(self) -> tuple[Bag, Any] | None:
        """Sparse features and their matrix, read when the ids of the nodes are known."""
        return self.features.read(self.ids(), self.encoding) if isinstance(self.features, Sparse) else None

    @cached_property
    def _learned(self) -> tuple[Columns, dict[str, str]] | None:
        """How columns become features, and what text is read as: strings throughout where a word is among numbers."""
        table, names, known = self.features, self.feature_columns, self.encoding
        if not isinstance(table, Table):
            return None
        if known is not None:
            column_order(names, [column.name for column in known.needed(names)])
            return known, readable_types(table, text_types(table, names, known), strict=known.strict)
        types = readable_types(table, text_types(table, names))
        return fit_columns(table, names, self.nodes, types), types

    @property
    def encoded(self) -> Encoded | None:
        """How columns became features, and how they would by other columns; None of a matrix, in a file of text too."""
        if self.encoder is None or self.encoder.strict:
            return None

        def again(others: Mapping[str, Columns]) -> tuple[Array, tuple[str, ...] | None]:
            other = self.encoded_by(others.get(""))
            features = other.feature_matrix()
            assert features is not None
            return features, other.feature_names

        return Encoded({"": self.encoder}, again)

    def encoded_by(self, columns: Columns | None) -> NodeTable:
        """Return the same nodes with features that these columns make."""
        return replace(self, encoding=columns)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features; None where they are a matrix, or the columns have no names."""
        named = not isinstance(self.features, Table) or self.features.header
        return None if self.encoder is None or not named else self.encoder.names

    def feature_chunks(self) -> Iterator[Array]:
        """Read the features, (n, F) float32 at a time; all chunks together must have N rows."""
        done = 0
        with progress("read features", total=self.nodes) as advance:
            for rows in self._chunks():
                yield rows
                done += len(rows)
                advance(len(rows))
        if done != self.nodes:
            raise ShapeError(
                f"{self.paths[-1]}: there are {done:,} rows of features for {self.nodes:,} nodes.\n"
                "Every node needs one row, in the order of the node table; a file may be cut short."
            )

    def _chunks(self) -> Iterator[Array]:
        if self._sparse is not None:
            return self._sparse[0].chunks(self._sparse[1])
        if isinstance(self.features, Table) and self._learned is not None:
            return encoded_chunks(self.features, *self._learned)
        assert isinstance(self.features, np.ndarray)
        return matrix_chunks(self.features)

    def feature_matrix(self) -> Array | None:
        """Return all features, (N, F); a matrix as it is in its file, mapped."""
        if self.encoder is None:
            assert not isinstance(self.features, Table | Sparse)
            return self.features
        features, filled = np.empty((self.nodes, len(self.encoder.names)), np.float32), 0
        for rows in self.feature_chunks():
            features[filled : filled + len(rows)] = rows[: self.nodes - filled]
            filled += len(rows)
        return features

    def with_ends(self, edges: EdgeList) -> NodeTable:
        """Return the nodes with those that only edges name: without features, nothing else is known of them."""
        if not isinstance(self.features, Triples | None) or (self.nodes and self.columns.id is None):
            return self
        table, ends = self.table, edges.ends()
        if table is None or self.columns.id is None:
            found = ArrayTable(edges.table.path, ("id",), (pa.chunked_array([ends]),))
            return replace(self, nodes=len(ends), table=found, columns=NodeColumns("id"))
        ids = pa.chunked_array(list(self.id_chunks()) or [pa.array([], pa.string())])
        more = ends.filter(pc.invert(pc.is_in(spelled(ends), spelled(ids))))
        if not len(more):
            return self
        same = pa.types.is_integer(ids.type) and pa.types.is_integer(more.type)
        kept = {self.columns.id: [ids, more] if same else [spelled(ids), spelled(more)]}
        for name in filter(None, (*self.columns.labels, self.columns.split)):
            values = table.column(name)
            kept[name] = [values, pa.nulls(len(more), values.type)]
        columns = tuple(pa.chunked_array([*chunks_of(first), second]) for first, second in kept.values())
        whole = ArrayTable(table.path, tuple(kept), columns, header=table.header, delimiter=table.delimiter)
        return replace(self, nodes=len(columns[0]), table=whole, found=len(more))

    def doubts(self) -> list[str]:
        """Warn of feature columns that look like ids: a whole number of its own in every row, or the row's number."""
        if not isinstance(self.features, Table):
            return []
        like_ids = {*self.features.named((*IDS, "*_id")), *self.features.names[:1]}
        return [
            f"{self.features.path.name}: column '{name}' has another whole number in every row, and was taken as a "
            f"feature. If it is an id: --ignore {name}, or --column id={name}."
            for name in self.feature_columns
            if name in like_ids and all_different(self.features.column(name))
        ]

    @property
    def roles(self) -> str:
        """Say what was taken for what, in a few words; nothing of arrays."""
        if self.table is None or self.known is not None:
            return ""
        if not self.paths:
            return f"nodes = the {self.nodes:,} that edges name, label = none, features = those of the structure"
        found = self.columns
        several = f"{', '.join(found.labels[:3])}, … ({len(found.labels)} columns)" if len(found.labels) > 3 else ""
        label = several or ", ".join(found.labels) or "none"
        words = [f"id = {found.id or 'the row number'}", f"label = {label}"]
        words.append(f"split = {found.split or 'drawn anew for each seed'}")
        some = "a matrix" if self.encoder is None else self.encoder.words
        empty = self.features is None or (self.encoder is not None and not self.encoder.names)
        structure = "those of the structure" if self.features is None else f"{some}, so those of the structure"
        words.append(f"features = {structure if empty else some}")
        more = f", and {self.found:,} nodes more that only edges name" if self.found else ""
        return f"{self.table.path.name}: {', '.join(words)}{more}"

    def parts(self, *, labelled: bool = True) -> dict[str, Any]:
        """Read what there is of the nodes, by the names that `assemble` and `TypeParts` give it."""
        parts = {"features": self.feature_matrix(), "names": self.names(), "feature_names": self.feature_names}
        if not labelled:
            return parts
        labels, classes = self.labels()
        return {**parts, "labels": labels, "classes": classes, "split": self.split()}


def open_nodes(
    nodes: Any,
    features: Any,
    columns: NodeColumns,
    *,
    in_memory: bool,
    edges: EdgeList | None = None,
    encoding: Columns | None = None,
) -> NodeTable:
    """Look at the nodes, which `edges` join, and at features of their own: paths, tables or matrices.

    With `in_memory` files are read once and held. `encoding` is how columns became features elsewhere.
    """
    check_ignored(columns.ignored, [given for given in (nodes, features) if given is not None and is_table(given)])
    own = NodeTable(0) if features is None else open_features(features, ignored=columns.ignored, encoding=encoding)
    if nodes is None:
        return own
    suffix = nodes.suffix.lower() if isinstance(nodes, Path) else ""
    if suffix == ".npy" or is_matrix(nodes):
        table = open_features(nodes)
    elif suffix == ".npz" and is_scipy(nodes):
        table = open_features(nodes, encoding=encoding)
    elif suffix == ".npz":
        table = open_npz(nodes, with_features=features is None)
    else:
        how: dict[str, Any] = {"with_features": features is None, "in_memory": in_memory, "encoding": encoding}
        table = open_node_table(nodes, columns, edges, **how)
    if features is None:
        return table
    if own.nodes != table.nodes and not isinstance(own.features, Triples):
        raise ShapeError(
            f"{own.paths[0]}: {own.nodes:,} rows, {table.paths[0]}: {table.nodes:,} nodes.\n"
            "Every node needs one row of features, in the order of the node table."
        )
    more: dict[str, Any] = {"feature_columns": own.feature_columns, "encoding": own.encoding}
    return replace(table, features=own.features, paths=(*table.paths, *own.paths), **more)


def check_ignored(names: Sequence[str], given: Sequence[Any]) -> None:
    """Refuse to ignore columns that are in none of the tables."""
    tables = [open_table(one) for one in given] if names else []
    there = [name for table in tables for name in table.names]
    for name in names:
        if name not in there:
            where = " and ".join(str(table.path) for table in tables) or "the files of the nodes, which are no tables"
            raise FormatError(f"--ignore {name}: no such column in {where}.\n{did_you_mean(name, there)}")


def is_matrix(given: Any) -> bool:
    """Say whether an object is a matrix: an array, a tensor, scipy's sparse ones."""
    return not isinstance(given, Path) and not is_stream(given) and hasattr(given, "shape")


def open_features(
    given: Any, nodes: int | None = None, *, ignored: Sequence[str] = (), encoding: Columns | None = None
) -> NodeTable:
    """Look at features alone: .npy (N, F), .npz with `features` or of scipy, a matrix, a table, or triples.

    `nodes` saves counting.
    """
    path = given if isinstance(given, Path) else Path("the features")
    if is_matrix(given):
        return NodeTable(given.shape[0], features=matrix(as_features(plain(given)), path), paths=(path,))
    if path.suffix.lower() in (".npy", ".npz"):
        npy = path.suffix.lower() == ".npy"
        if not npy and is_scipy(path):
            values = open_scipy(path)
            rows = values.matrix.shape[0] if isinstance(values, SparseFile) else len(values)
            return NodeTable(rows, features=values, paths=(path,), encoding=encoding)
        values = matrix(read_array(path, memory_map=True) if npy else read_member(path, "features"), path)
        return NodeTable(len(values), features=values, paths=(path,))
    table = open_table(given, path.name)
    triples = triples_of(table)
    if triples is not None and nodes is None:
        return NodeTable(0, features=triples, paths=(path,), encoding=encoding)
    kept = tuple(name for name in table.names if name not in ignored)
    rows = table.rows if nodes is None else nodes
    return NodeTable(rows, features=table, feature_columns=kept, paths=(path,), encoding=encoding)


def open_numbers(path: Path, nodes: int) -> NodeTable:
    """Look at a table that is a matrix: finite numbers and nothing else."""
    own = open_features(path, nodes)
    return replace(own, encoding=Columns.numbers(own.feature_columns))


def open_node_table(
    nodes: Any,
    columns: NodeColumns,
    edges: EdgeList | None,
    *,
    with_features: bool,
    in_memory: bool,
    encoding: Columns | None = None,
) -> NodeTable:
    """Look at a node table; its columns without a role are features."""
    table = file = open_table(nodes, "the nodes")
    labels = label_columns(file, columns.label)
    own = columns.id
    if own is None and edges is not None:
        own = id_column(file, edges, (*labels, columns.split))
    roles = (file.pick(own, IDS), file.pick(columns.split, ("split",)))
    found = NodeColumns(roles[0], ",".join(labels) or None, roles[1], columns.ignored, labels)
    given = list(dict.fromkeys(name for name in (roles[0], *labels, roles[1]) if name is not None))
    others = tuple(name for name in file.names if with_features and name not in (*given, *found.ignored))
    if in_memory:
        types = {**text_types(file, others, encoding), **dict.fromkeys(given, "string")}
        table = held(file, (*given, *others) or file.names[:1], types)
    features = table if others else None
    return NodeTable(table.rows, table, found, features, others, paths=(table.path,), encoding=encoding)


def held(file: Table, columns: Sequence[str], types: Mapping[str, str]) -> Table:
    """Return columns in memory; text is read as strings throughout where a word follows numbers."""
    try:
        return file.held(columns, types)
    except FormatError:
        if not file.is_text:
            raise
        return file.held(columns, dict.fromkeys(types, "string"))


def open_npz(path: Path, *, with_features: bool) -> NodeTable:
    """Look at a .npz of features, labels, and perhaps ids, train, valid and test."""
    there = {"labels" if key == "y" else key: key for key in sorted(members(path), reverse=True)}  # y is labels, too
    held = {key: read_member(path, name) for key, name in there.items() if key != "features" or with_features}
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


def chunks_of(column: Any) -> list[Any]:
    """Return the pieces of a column."""
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]
