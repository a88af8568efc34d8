"""New nodes and changes of a graph from tables, read as the graph's own tables are, ids resolved against its own.

    read_new_nodes(graph, edges, nodes)   nodes that it does not have, and their edges                    → NewNodes
    read_changes(graph, edges, nodes)     the same with a column `op`: add (the usual), change or remove  → Changes
    difference(graph, snapshot)           what makes one graph of another, by their ids                   → Changes

An edge that is changed has another weight; a node that is changed has the features of its row, and its label where the
table has labels. A removed node or edge needs its ids alone. Edges name nodes of the graph and of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError, IdError, InputError, SettingsError, did_you_mean
from gamlp.graph.build.changed_adjacency import NO_IDS
from gamlp.graph.build.changes import Changes, EdgeSet
from gamlp.graph.build.ids import NodeIds, spelled
from gamlp.graph.build.new_nodes import NewNodes
from gamlp.graph.graph import Adjacency, Graph, check_width
from gamlp.graph.readers.edges import EdgeList, open_edges
from gamlp.graph.readers.nodes import NodeColumns, NodeTable, open_nodes
from gamlp.graph.readers.table import Table, open_table
from gamlp.graph.readers.tables import as_path
from gamlp.graph.splits import Split
from gamlp.storage.files import Array

OPERATION = "op"
OPERATIONS = ("add", "change", "remove")
Rows = dict[str, Array]


def read_new_nodes(graph: Graph, edges: Any, nodes: Any, ids: NodeIds | None = None, **columns: Any) -> NewNodes:
    """Read nodes that a graph does not have, and their edges; `columns` are the options of `open_tables`.

    `ids` may be those of the graph, where they have been made before (`ids_of`).
    """
    links = open_edges(as_path(edges), *_ends(columns))
    own = ids or ids_of(graph)
    new = nodes_of(graph, _opened(graph, nodes, columns, links), own)
    known = JoinedIds(own, new.names)
    source, target, weights = links.between(known, known).read()
    return NewNodes(new, source.astype(np.int64), target.astype(np.int64), weights)


def read_changes(graph: Graph, edges: Any = None, nodes: Any = None, **columns: Any) -> Changes:
    """Read changes from a table of edges, a table of nodes, or both."""
    made, own = Changes(), ids_of(graph)
    names = np.zeros(0, np.int64 if graph.names is None else graph.names.dtype)
    if nodes is not None:
        made = node_changes(graph, open_table(as_path(nodes), "the nodes"), own, columns)
        names = names if made.added is None or made.added.names is None else made.added.names
    if edges is None:
        return made
    table = open_table(as_path(edges), "the edges")
    known, sets = JoinedIds(own, names), {}
    for name, rows in operations(table).items():
        asked = open_edges(SomeRows.of(table, rows), *_ends(columns))
        if name == "remove":
            asked = replace(asked, columns=asked.columns[:2])
        source, target, weights = asked.between(known, known).read()
        sets[name] = EdgeSet(source.astype(np.int64), target.astype(np.int64), weights)
    if graph.adjacency.weights is None and len(sets["change"].source):
        raise InputError("Edges are to be changed, and the graph's have no weights.\nWrite 'add' or 'remove'.")
    return replace(made, edges_added=sets["add"], edges_changed=sets["change"], edges_removed=sets["remove"])


def node_changes(graph: Graph, table: Table, own: NodeIds, columns: Mapping[str, Any]) -> Changes:
    """Return what becomes of the nodes."""
    rows = operations(table)
    given = [name for name in OPERATIONS if len(rows[name])]
    parts = {name: _opened(graph, SomeRows.of(table, rows[name]), columns) for name in given}
    made: dict[str, Any] = {}
    if "add" in parts:
        made["added"] = nodes_of(graph, parts["add"], own)
    if "change" in parts:
        ids, new = numbers(own, parts["change"]), fitted(graph, parts["change"])
        order = np.argsort(ids)
        made |= {"changed": ids[order], "features": new.features[order]}
        if new.labels.ndim > 1:
            made["relabelled"] = ids[order]  # which apply_changes refuses
        elif parts["change"].columns.label is not None:
            words = tuple(new.classes[label] if label >= 0 else "" for label in new.labels[order])
            made |= {"relabelled": ids[order], "labels": words}
    if "remove" in parts:
        made["removed"] = np.sort(numbers(own, parts["remove"]))
    for name in ("changed", "removed"):
        if len(twice := made.get(name, NO_IDS)) and (np.diff(twice) == 0).any():
            at = int(twice[np.argmin(np.diff(twice))])
            named = at if graph.names is None else graph.names[at]
            raise IdError(f"{table.path}: node '{named}' is {name} twice.\nName every node once.")
    if len(both := np.intersect1d(made.get("changed", NO_IDS), made.get("removed", NO_IDS))):
        named = both[0] if graph.names is None else graph.names[both[0]]
        raise IdError(f"{table.path}: node '{named}' is changed and removed.\nSay one of them.")
    return Changes(**made)


def difference(graph: Graph, snapshot: Graph) -> Changes:
    """Return the changes that make `snapshot` of a graph; nodes are told by their ids, and keep their order here."""
    if graph.types or snapshot.types:
        raise SettingsError("Graphs with several types of nodes are not compared.\nTrain on the new one as it is.")
    if graph.labels.ndim > 1 or snapshot.labels.ndim > 1:
        raise SettingsError("Graphs with several labels a node are not compared.\nGive the changes as tables.")
    check_same_encoding(graph, snapshot)
    snapshot = snapshot.with_columns(graph.feature_names)
    check_width(snapshot, graph.features.shape[1])
    ours, theirs = (np.arange(one.nodes) if one.names is None else one.names for one in (graph, snapshot))
    if ours.dtype.kind != theirs.dtype.kind:
        ours, theirs = ours.astype(str), theirs.astype(str)
    _, here, there = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    order = np.argsort(here)
    here, there = here[order], there[order]
    fresh = np.setdiff1d(np.arange(snapshot.nodes), there)
    number = np.empty(snapshot.nodes, np.int64)
    number[there], number[fresh] = here, graph.nodes + np.arange(len(fresh))
    other = here[(graph.features[here] != snapshot.features[there]).any(axis=1)]
    at = np.empty(graph.nodes, np.int64)
    at[here] = there
    now, before = (np.array([*one.classes, ""], object) for one in (snapshot, graph))
    relabelled = here[now[snapshot.labels[there]] != before[graph.labels[here]]]
    return Changes(
        None if not len(fresh) else some_nodes(snapshot, fresh), other, snapshot.features[at[other]],
        relabelled, tuple(now[snapshot.labels[at[relabelled]]]), np.setdiff1d(np.arange(graph.nodes), here),
        **edge_difference(graph, snapshot, number, here),
    )  # fmt: skip


def check_same_encoding(graph: Graph, snapshot: Graph) -> None:
    """Refuse features that were made of columns in other ways: they have the same names and other meanings."""
    ours, theirs = graph.encoded, snapshot.encoded
    if ours is None or theirs is None or (ours.plain and theirs.plain) or ours.same(theirs.columns):
        return
    raise SettingsError(
        f"{snapshot.name} learned its categories, words or dates from its own tables, and not from those of "
        f"{graph.name}: the features of both cannot be compared.\nGive the changes as tables, with a column op."
    )


def edge_difference(graph: Graph, snapshot: Graph, number: Array, kept: Array) -> dict[str, EdgeSet]:
    """Return the edges that came, have another weight, or went; entries of both directions where there are both."""
    total = int(max(number.max(initial=0) + 1, graph.nodes))
    (old, weights), (new, others) = entry_keys(graph, None, total), entry_keys(snapshot, number, total)
    stays = np.isin(old // total, kept) & np.isin(old % total, kept)
    gone, came = np.setdiff1d(old[stays], new), np.setdiff1d(new, old)

    def edges(keys: Array) -> EdgeSet:
        if others is None:
            return EdgeSet(keys // total, keys % total)
        at = np.minimum(np.searchsorted(new, keys), max(0, len(new) - 1))  # of an edge that went: of no meaning
        return EdgeSet(keys // total, keys % total, others[at] if len(new) else np.ones(len(keys), np.float32))

    result = {"edges_added": edges(came), "edges_removed": edges(gone)}
    if weights is not None and others is not None:
        both, here, there = np.intersect1d(old, new, assume_unique=True, return_indices=True)
        result["edges_changed"] = edges(both[weights[here] != others[there]])
    return result


def entry_keys(graph: Graph, number: Array | None, total: int) -> tuple[Array, Array | None]:
    """Return row·total + column of every entry that is no self-loop, in order, and the weights."""
    adjacency = graph.adjacency
    row, column = np.repeat(np.arange(graph.nodes), np.diff(adjacency.indptr)), np.asarray(adjacency.indices, np.int64)
    other = row != column
    row, column = row[other], column[other]
    keys = row * total + column if number is None else number[row] * total + number[column]
    order = np.argsort(keys, kind="stable")
    return keys[order], None if adjacency.weights is None else np.asarray(adjacency.weights)[other][order]


def some_nodes(graph: Graph, ids: Array) -> Graph:
    """Return some nodes of a graph, without edges."""
    names = None if graph.names is None else graph.names[ids]
    sets = [np.flatnonzero(np.isin(ids, part)) for part in graph.split.sets.values()]
    split = Split(*sets) if isinstance(graph.split, Split) else Split(NO_IDS, NO_IDS, NO_IDS)
    parts = (np.asarray(graph.features[ids]), graph.labels[ids], graph.classes, split, names)
    return Graph(Adjacency(np.zeros(len(ids) + 1, np.int64), np.zeros(0, np.int32)), *parts)


def nodes_of(graph: Graph, table: NodeTable, ids: NodeIds) -> Graph:
    """Return the nodes of a table, which the graph must not have, with ids like its own, which `ids` finds."""
    table.ids()  # refuses ids that are empty, or stand in two rows
    new = fitted(graph, table)
    names = new.names
    if names is None:
        if graph.names is not None:
            raise FormatError(f"{table.paths[0]} has no column of ids.\nName it: --column id=…")
        return replace(new, names=graph.nodes + np.arange(new.nodes))
    if not ids.are_strings and names.dtype.kind not in "iu":
        raise IdError(f"{table.paths[0]}: ids are words, those of {graph.name} numbers.\nGive numbers.")
    names = names.astype(str) if ids.are_strings else names
    if (there := ids.find(pa.array(names.tolist())) >= 0).any():
        raise IdError(
            f"{table.paths[0]}: node '{names[there][0]}' is in {graph.name} already.\n"
            "Leave it out; gamlp update changes nodes that are there (op = change)."
        )
    return replace(new, names=names)


def fitted(graph: Graph, table: NodeTable) -> Graph:
    """Return the nodes of a table with the columns of the graph, without edges."""
    parts = table.parts()
    if parts["features"] is None:
        parts["features"] = np.empty((table.nodes, 0), np.float32)
    parts["features"] = np.asarray(parts["features"], np.float32)
    new = Graph(Adjacency(np.zeros(table.nodes + 1, np.int64), np.zeros(0, np.int32)), **parts)
    new = new.with_columns(graph.feature_names) if graph.feature_names is not None else new
    check_width(new, graph.features.shape[1])
    return new.check()


def ids_of(graph: Graph) -> NodeIds:
    """Return the rows of a graph's ids."""
    if graph.names is None:
        return NodeIds(graph.nodes)
    words = graph.names.dtype.kind not in "iu"
    chunk = pa.array(graph.names.tolist() if words else graph.names)
    return NodeIds.fill([chunk], graph.nodes, are_strings=words, path=Path(graph.name), memory=None)


def numbers(ids: NodeIds, table: NodeTable) -> Array:
    """Return the rows of the graph that a table of nodes names."""
    if table.table is None or table.columns.id is None:
        raise FormatError(f"{table.paths[0]} has no column of ids.\nName it: --column id=…")
    own, column = table.table, table.table.column(table.columns.id)
    return ids.rows(column, path=own.path, place=own.line).astype(np.int64)


class JoinedIds(NodeIds):
    """The ids of a graph, and those of nodes that come after it."""

    def __init__(self, own: NodeIds, names: Array | None) -> None:
        count = 0 if names is None else len(names)
        super().__init__(own.nodes + count)
        self.own, self.are_strings = own, own.are_strings
        self._new = spelled(pa.array([] if names is None else names.tolist()))

    def rows(self, column: Any, *, path: Path, place: Callable[[int], str]) -> Array:
        """Return the row of each id; an unknown one is an IdError that names it and its place."""
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        at = pc.index_in(spelled(column), self._new) if len(self._new) else pa.nulls(len(column), pa.int32())
        old = np.flatnonzero(at.is_null().to_numpy(zero_copy_only=False))
        found = pc.fill_null(at, 0).to_numpy(zero_copy_only=False).astype(np.int64) + self.own.nodes
        found[old] = self.own.rows(column.take(pa.array(old)), path=path, place=lambda row: place(int(old[row])))
        return np.asarray(found)


@dataclass(frozen=True)
class SomeRows(Table):
    """Some rows of a table, in their order."""

    base: Table | None = None
    kept: Array | None = None

    @classmethod
    def of(cls, base: Table, kept: Array) -> SomeRows:
        """Return some rows of a table, without the column that says what becomes of them."""
        names = tuple(name for name in base.names if name != OPERATION)
        text = {"header": base.header, "delimiter": base.delimiter, "numbers": base.numbers}
        return cls(base.path, names, **text, base=base, kept=kept)  # type: ignore[arg-type]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        assert self.kept is not None
        return len(self.kept)

    def line(self, row: int) -> str:
        """Name the place of a row in the file."""
        assert self.base is not None
        assert self.kept is not None
        return self.base.line(int(self.kept[row]))

    def chunks(self, columns: Sequence[str], types: Mapping[str, str], *, skip: int = 0) -> Iterator[tuple[int, Any]]:
        """Read some columns of these rows."""
        assert self.base is not None
        assert self.kept is not None
        done = 0
        for start, batch in self.base.chunks(columns, types):
            begin, end = np.searchsorted(self.kept, [start, start + batch.num_rows])
            part = batch.take(pa.array(self.kept[begin:end] - start)).slice(max(0, skip - done))
            if part.num_rows:
                yield max(done, skip), part
            done += int(end - begin)

    def held(self, columns: Sequence[str], types: Mapping[str, str]) -> Table:
        """Return the table as it is: it is small."""
        return replace(self, names=tuple(columns))


def operations(table: Table) -> Rows:
    """Return the rows of each operation; without a column `op` all are added."""
    if OPERATION not in table.names:
        return {"add": np.arange(table.rows), "change": NO_IDS, "remove": NO_IDS}
    words = [str(word or "add").strip().lower() for word in table.column(OPERATION).to_pylist()]
    for at, word in enumerate(words):
        if word not in OPERATIONS:
            raise FormatError(f"{table.path}, {table.line(at)}: op is '{word}'.\n{did_you_mean(word, OPERATIONS)}")
    return {name: np.flatnonzero([word == name for word in words]) for name in OPERATIONS}


def _opened(graph: Graph, nodes: Any, columns: Mapping[str, Any], edges: EdgeList | None = None) -> NodeTable:
    """Open a table of nodes by the columns that were named; they become features as those of the graph did."""
    own: dict[str, Any] = {name: columns.get(name) for name in ("id", "label", "split")}
    named = NodeColumns(**own, ignored=tuple(columns.get("ignore", ())))
    encoding = None if graph.encoded is None else graph.encoded.columns.get("")
    given = (as_path(nodes), as_path(columns.get("features")), named)
    return open_nodes(*given, in_memory=True, edges=edges, encoding=encoding)


def _ends(columns: Mapping[str, Any]) -> tuple[str | None, ...]:
    return tuple(columns.get(name) for name in ("source", "target", "weight"))
