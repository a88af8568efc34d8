"""A graph from tables of one's own, files or objects: a list of edges, a table of nodes, perhaps features apart.

    edges     a table   columns source, target (src/dst, from/to, or the first two), perhaps weight
              .npy      (E, 2) or (2, E)          .npz   source, target, perhaps weight; or edge_index
    nodes     a table   id (or node, name; without: the row), label, split; every other column is a feature
              none      those that edges name, too where the table has no features and lacks some
              .npz      features, labels, perhaps ids, train, valid, test
    features  .npy      (N, F), mapped where it is float32: then it need not fit in memory; or a table, a row a node
              .npz      of scipy.sparse; or a table of triples: node, feature, perhaps value

`gamlp.graph.readers.table` says what a table may be. A folder or a database with tables `edges` and `nodes` is both.

Everything is checked here, with file, column and line in the message. `gamlp.graph.build.import_directory` writes the
same files to a graph directory within a memory limit. A heterogeneous graph is a folder of such files, which a small
one names (docs/hetero.md has an example):

    hetero.toml          target = the type with labels; perhaps name
    [nodes.TYPE]         file, or count = so many nodes without one; perhaps features, id, label, split
    [relations.NAME]     file, source and target = the types that it joins; perhaps columns = [of sources, of targets]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError, MissingFileError, did_you_mean
from gamlp.graph.build.assemble import assemble
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero, check_types
from gamlp.graph.build.ids import NodeIds
from gamlp.graph.encode import Columns, Encoded
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.readers.databases import is_database, table_names
from gamlp.graph.readers.edges import EdgeList, open_edges
from gamlp.graph.readers.nodes import NodeColumns, NodeTable, open_nodes
from gamlp.graph.readers.table import is_table
from gamlp.graph.readers.text_format import kind_of
from gamlp.storage.files import Array

ROLES = ("edges", "nodes")
HETERO = "hetero.toml"
NODE_KEYS = ("file", "count", "features", "id", "label", "split")
RELATION_KEYS = ("file", "source", "target", "columns")


@dataclass(frozen=True, eq=False)
class GraphFiles:
    """Nodes and edges in files that are open, but not read."""

    name: str
    nodes: NodeTable
    edges: EdgeList
    directed: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken for what, in one line, and what looks like a mistake."""
        taken = [words for words in (self.edges.roles, self.nodes.roles) if words]
        return (f"{'; '.join(taken)}.", *self.nodes.doubts())

    def read(self) -> Graph:
        """Read the graph into memory; a matrix of features is mapped."""
        ids, parts = self.nodes.ids(), self.nodes.parts()
        if parts["features"] is None:
            parts["features"] = np.empty((self.nodes.nodes, 0), np.float32)
        source, target, weights = self.edges.between(ids, ids).read()
        rest: dict[str, Any] = {"name": self.name, "symmetric": not self.directed, "notes": self.notes}
        return assemble(source, target, weights=weights, encoded=self.nodes.encoded, **rest, **parts)


def read_tables(edges: Any, nodes: Any = None, **options: Any) -> Graph:
    """Read a graph from files or objects, with the options of `open_tables`."""
    return open_tables(edges, nodes, in_memory=True, **options).read()


def open_tables(
    edges: Any,
    nodes: Any = None,
    *,
    features: Any = None,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,  # noqa: A002
    label: str | Sequence[str] | None = None,
    split: str | None = None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    directed: bool = False,
    name: str | None = None,
    in_memory: bool = False,
    encoding: Mapping[str, Columns] | None = None,
) -> GraphFiles:
    """Open files or objects; source, target, id, label, split and weight name columns that are not the usual ones.

    Several label columns make several labels a node. Columns of `ignore` are no features; the others become features
    as `encoding` says, which another graph's tables taught (`graph.encoded.columns`), or as they teach themselves.
    """
    edges, nodes, features = as_path(edges), as_path(nodes), as_path(features)
    label = label if label is None or isinstance(label, str) else ",".join(label)
    columns = NodeColumns(id=id, label=label, split=split, ignored=tuple(ignore))
    links = open_edges(edges, source, target, weight)
    known = (encoding or {}).get("")
    table = open_nodes(nodes, features, columns, in_memory=in_memory, edges=links, encoding=known).with_ends(links)
    name = name or (table_stem(edges) if isinstance(edges, Path) else "graph")
    return GraphFiles(name, table, links, directed)


def as_path(given: Any) -> Any:
    """Return a name as a path; what is none stays as it is."""
    return Path(given) if isinstance(given, str) else given


def table_stem(path: Path) -> str:
    """Return the name of a table without its suffix."""
    return path.name.removesuffix(".gz").removesuffix(kind_of(path))


def tables_in(place: Path) -> list[Path]:
    """Return the tables `edges` and `nodes` of a folder or a database file; none where there is no `edges`."""
    if is_database(place):
        found = [place / name for name in table_names(place)]
    else:
        found = [path for path in place.iterdir() if is_table(path) or path.suffix in (".npy", ".npz")]
    both = [[path for path in found if table_stem(path) == role] for role in ROLES]
    for role, paths in zip(ROLES, both, strict=True):
        if len(paths) > 1:
            raise FormatError(f"{place} has {', '.join(sorted(path.name for path in paths))}.\nWhich are the {role}?")
    return [path for paths in both for path in paths] if both[0] else []


def read_hetero_tables(folder: Path, encoding: Mapping[str, Columns] | None = None) -> HeteroGraph:
    """Read the folder; every file is named in its hetero.toml. `encoding` is as in `open_tables`, by type."""
    content = read_toml(folder / HETERO)
    target, known = content["target"], encoding or {}  # labels and split are the target's own
    nodes = {kind: open_type(folder, kind, table, known.get(kind)) for kind, table in content["nodes"].items()}
    columns = {kind: part.encoder for kind, part in nodes.items() if part.encoder is not None}
    if not all(one.plain for one in columns.values()):
        columns = {kind: one.scaled() for kind, one in columns.items()}  # types have one scale
        nodes = {kind: part.encoded_by(columns.get(kind)) for kind, part in nodes.items()}
    ids = {kind: part.ids() for kind, part in nodes.items()}
    relations = {name: read_relation(folder, name, table, ids) for name, table in content["relations"].items()}
    types = {kind: TypeParts(part.nodes, **part.parts(labelled=kind == target)) for kind, part in nodes.items()}
    graph = assemble_hetero(types, relations, target=target, name=content.get("name", folder.name))

    def again(others: Mapping[str, Columns]) -> tuple[Array, tuple[str, ...] | None]:
        other = read_hetero_tables(folder, others)
        return other.features, other.feature_names

    notes = tuple(f"{part.roles}." for part in nodes.values() if part.roles)
    encoded = Encoded(columns, again) if columns else None
    return replace(graph, encoded=encoded, notes=(*notes, *graph.notes))


def read_toml(path: Path) -> dict[str, Any]:
    """Read hetero.toml and refuse a missing or unknown key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise MissingFileError(f"{path} cannot be read ({error}).\nIs the folder right?") from error
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{path} is not valid TOML: {error}.\nCorrect that line.") from error
    refuse_unknown(path, "", content, ("name", "target", "nodes", "relations"))
    for key, kind in (("target", str), ("nodes", dict), ("relations", dict)):
        if not isinstance(content.get(key), kind):
            words = "the name of a type" if kind is str else f"tables, [{key}.NAME]"
            raise FormatError(f"{path}: {key} is {content.get(key)!r}.\nExpected {words}.")
    for key, known in (("nodes", NODE_KEYS), ("relations", RELATION_KEYS)):
        for name, table in content[key].items():
            if not isinstance(table, dict):
                raise FormatError(f"{path}: {key}.{name} = {table!r}.\nExpected a table, [{key}.{name}].")
            refuse_unknown(path, f"{key}.{name}.", table, known)
    return content


def refuse_unknown(path: Path, place: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse a key that means nothing."""
    for key in table:
        if key not in known:
            raise FormatError(f"{path}: there is no key '{place}{key}'.\n{did_you_mean(key, known)}")


def open_type(folder: Path, kind: str, table: Mapping[str, Any], encoding: Columns | None = None) -> NodeTable:
    """Open the nodes of one type."""
    columns = NodeColumns(id=table.get("id"), label=table.get("label"), split=table.get("split"))
    features = None if "features" not in table else folder / table["features"]
    if "file" in table or features is not None:
        file = folder / table["file"] if "file" in table else None
        return open_nodes(file, features, columns, in_memory=True, encoding=encoding)
    if not isinstance(table.get("count"), int) or table["count"] < 1:
        raise FormatError(f"{folder / HETERO}: nodes.{kind} has neither file, features nor count.\nGive one of them.")
    return NodeTable(table["count"])


def read_relation(folder: Path, name: str, table: Mapping[str, Any], ids: Mapping[str, NodeIds]) -> RelationParts:
    """Read the edges of one relation; ids become rows of their types' tables."""
    for key in ("file", "source", "target"):
        if not isinstance(table.get(key), str):
            raise FormatError(f"{folder / HETERO}: relations.{name} has no {key}.\nGive file, source and target.")
    check_types(name, table["source"], table["target"], ids)
    columns = table.get("columns", (None, None))
    if len(columns) != 2:
        raise FormatError(f"{folder / HETERO}: relations.{name} names {len(columns)} columns.\nExpected two.")
    ends = table["source"], table["target"]
    heads, tails, _ = open_edges(folder / table["file"], *columns).between(*(ids[kind] for kind in ends)).read()
    return RelationParts(*ends, heads, tails)
