"""What is known of the nodes: ids, labels, split, and every other column a feature, or features from another file.

One reader for all sizes. Without a memory limit the table is held in memory and read once; within a limit one column
beside a chunk of features stands in memory at a time, and strings that are ids never do: they are hashed when they are
read, and written as names in a second reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError, ShapeError, did_you_mean
from gamlp.graph.build.assemble import as_features, as_split, encode_labels, named_split, plain
from gamlp.graph.build.ids import INTEGER, NodeIds, as_integers, id_values, spelled
from gamlp.graph.readers.columns import feature_chunks, feature_names, feature_types, label_values, words_named
from gamlp.graph.readers.edges import EdgeList
from gamlp.graph.readers.npz_arrays import members, read_member
from gamlp.graph.readers.table import ArrayTable, Table, file_key, is_stream, is_table, open_table
from gamlp.graph.splits import AnySplit, Split, SplitRule, Splits
from gamlp.progress import progress
from gamlp.storage.files import Array, read_array

IDS = ("id", "node_id", "node", "name")
LABELS = ("label", "labels", "target", "class", "*_label", "*_target")


@dataclass(frozen=True)
class NodeColumns:
    """Names of the columns, where they are not the usual ones."""

    id: str | None = None
    label: str | None = None
    split: str | None = None
    ignored: tuple[str, ...] = ()  # no features, though they are there


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The nodes of a graph, or of one type, in files that are looked at far enough to know how many there are."""

    nodes: int
    table: Table | None = None  # of ids, labels and split
    columns: NodeColumns = NodeColumns()  # of the table
    features: Array | Table | None = None  # a matrix (N, F), mapped, or columns of numbers
    feature_columns: tuple[str, ...] = ()  # of a table of features
    known: tuple[Array, tuple[str, ...]] | None = None  # labels and classes, where no column holds them
    sets: Split | Splits | None = None  # where no column holds the split
    paths: tuple[Path, ...] = ()  # all files, for the key
    found: int = 0  # nodes at the end that only edges name

    @property
    def key(self) -> str:
        """Say what is read: another key, other nodes."""
        return f"{[file_key(path) for path in self.paths]} {self.columns} {self.feature_columns}"

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
        """Return the class number of each node, −1 where unknown, and the classes."""
        if self.known is not None:
            return self.known
        if self.table is None or self.columns.label is None:
            return np.full(self.nodes, -1, dtype=np.int64), ()
        return encode_labels(label_values(self.table.column(self.columns.label), text=self.table.is_text))

    def split(self) -> AnySplit:
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
            for rows in feature_chunks(self.features, self.feature_columns):
                yield rows
                done += len(rows)
                advance(len(rows))
        if done != self.nodes:
            raise ShapeError(
                f"{self.paths[-1]}: there are {done:,} rows of features for {self.nodes:,} nodes.\n"
                "Every node needs one row, in the order of the node table; a file may be cut short."
            )

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

    def with_ends(self, edges: EdgeList) -> NodeTable:
        """Return the nodes with those that only edges name: without features, nothing else is known of them."""
        if self.features is not None or (self.nodes and self.columns.id is None):
            return self
        table, ends = self.table, edges.ends()
        if table is None or self.columns.id is None:
            return NodeTable(
                len(ends), ArrayTable(edges.table.path, ("id",), (pa.chunked_array([ends]),)), NodeColumns("id")
            )
        ids = pa.chunked_array(list(self.id_chunks()) or [pa.array([], pa.string())])
        more = ends.filter(pc.invert(pc.is_in(spelled(ends), spelled(ids))))
        if not len(more):
            return self
        same = pa.types.is_integer(ids.type) and pa.types.is_integer(more.type)
        kept = {self.columns.id: [ids, more] if same else [spelled(ids), spelled(more)]}
        for name in filter(None, (self.columns.label, self.columns.split)):
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
        found, count = self.columns, len(self.feature_columns)
        words = [f"id = {found.id or 'the row number'}", f"label = {found.label or 'none'}"]
        words.append(f"split = {found.split or 'drawn anew for each seed'}")
        some = f"{', '.join(self.feature_columns[:3])}{f', … ({count:,} columns)' if count > 3 else ''}"
        words.append(f"features = {some if self.features is not None else 'those of the structure'}")
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
    nodes: Any, features: Any, columns: NodeColumns, *, in_memory: bool, edges: EdgeList | None = None
) -> NodeTable:
    """Look at the nodes, which `edges` join, and at features of their own: paths, tables or matrices.

    With `in_memory` files are read once and held.
    """
    check_ignored(columns.ignored, [given for given in (nodes, features) if given is not None and is_table(given)])
    own = NodeTable(0) if features is None else open_features(features, ignored=columns.ignored)
    if nodes is None:
        return own
    suffix = nodes.suffix.lower() if isinstance(nodes, Path) else ""
    if suffix == ".npy" or is_matrix(nodes):
        table = open_features(nodes)
    elif suffix == ".npz":
        table = open_npz(nodes, with_features=features is None)
    else:
        table = open_node_table(nodes, columns, edges, with_features=features is None, in_memory=in_memory)
    if features is None:
        return table
    if own.nodes != table.nodes:
        raise ShapeError(
            f"{own.paths[0]}: {own.nodes:,} rows, {table.paths[0]}: {table.nodes:,} nodes.\n"
            "Every node needs one row of features, in the order of the node table."
        )
    return replace(table, features=own.features, feature_columns=own.feature_columns, paths=(*table.paths, *own.paths))


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


def open_features(given: Any, nodes: int | None = None, *, ignored: Sequence[str] = ()) -> NodeTable:
    """Look at features alone: .npy (N, F), .npz with `features`, a matrix, or a table; `nodes` saves counting."""
    path = given if isinstance(given, Path) else Path("the features")
    if is_matrix(given):
        return NodeTable(given.shape[0], features=matrix(as_features(plain(given)), path), paths=(path,))
    if path.suffix.lower() in (".npy", ".npz"):
        npy = path.suffix.lower() == ".npy"
        values = matrix(read_array(path, memory_map=True) if npy else read_member(path, "features"), path)
        return NodeTable(len(values), features=values, paths=(path,))
    table = open_table(given, path.name)
    kept = tuple(name for name in table.names if name not in ignored)
    return NodeTable(table.rows if nodes is None else nodes, features=table, feature_columns=kept, paths=(path,))


def open_node_table(
    nodes: Any, columns: NodeColumns, edges: EdgeList | None, *, with_features: bool, in_memory: bool
) -> NodeTable:
    """Look at a node table; its columns without a role are features."""
    table = file = open_table(nodes, "the nodes")
    own = columns.id if columns.id is not None or edges is None else id_column(file, edges, columns)
    roles = (file.pick(own, IDS), file.pick(columns.label, LABELS), file.pick(columns.split, ("split",)))
    found = NodeColumns(*roles, columns.ignored)
    given = [name for name in roles if name is not None]
    others = tuple(name for name in file.names if with_features and name not in (*given, *found.ignored))
    if in_memory:
        types = {**feature_types(file, others), **dict.fromkeys(given, "string")}
        with words_named(file, others):
            table = file.held((*given, *others) or file.names[:1], types)
    return NodeTable(table.rows, table, found, table if others else None, others, paths=(table.path,))


def id_column(table: Table, edges: EdgeList, columns: NodeColumns) -> str | None:
    """Return the column that edges name nodes by: the first with a usual name whose values have most ends of edges.

    Where the ends are no row numbers, any column may be it, if it has all of them.
    """
    usual, known = table.named(IDS), (columns.label, columns.split)
    if usual[:1] == ["id"] and len(table.named((*IDS, "*_id"))) == 1:
        return "id"
    ends = edges.sample()
    if not len(ends):
        return None
    best, most = None, 0.5  # of the ends, at least
    for name in [name for name in table.named((*IDS, "*_id")) if name not in known]:
        share = shared_ends(table, name, ends)
        if share > most:
            best, most = name, share
    if best is not None or usual or is_rows(ends, table):
        return best
    others = (name for name in table.names if name not in known)
    return next((name for name in others if shared_ends(table, name, ends) == 1), None)


def all_different(column: Any) -> bool:
    """Say whether a column holds whole numbers, each once."""
    values = spelled(column)
    whole = pc.all(pc.match_substring_regex(values, INTEGER), skip_nulls=False).as_py()
    return bool(whole) and len(values) > 1 and pc.count_distinct(values).as_py() == len(values)


def shared_ends(table: Table, name: str, ends: Any) -> float:
    """Return the share of the ends that a column has; 0 where a value stands in it twice."""
    values = spelled(table.column(name))
    if pc.count_distinct(values, mode="all").as_py() < len(values):
        return 0.0
    return float(pc.mean(pc.is_in(ends, values)).as_py())


def is_rows(ends: Any, table: Table) -> bool:
    """Say whether all ends are numbers of rows."""
    if not pc.all(pc.match_substring_regex(ends, INTEGER)).as_py():
        return False
    numbers = pc.min_max(pc.cast(ends, pa.int64())).as_py()
    return bool(numbers["min"] >= 0 and numbers["max"] < table.rows)


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


def chunks_of(column: Any) -> list[Any]:
    """Return the pieces of a column."""
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]
