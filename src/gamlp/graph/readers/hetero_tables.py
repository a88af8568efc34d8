"""A heterogeneous graph from a folder of files of one's own, named in a small file, hetero.toml.

    name = "library"                   # optional
    target = "book"                    # the type whose nodes are classified

    [nodes.book]                       # one table for each type of nodes
    file = "books.parquet"             # id, label, split; every other column a feature
    label = "genre"                    # columns with other names: id, label, split
    features = "books.npy"             # optional, in place of the columns

    [nodes.reader]
    count = 1200                       # instead of a file: so many nodes, numbered from 0

    [relations.borrowed]               # one table for each relation
    file = "loans.csv"
    source = "reader"                  # the types that it joins
    target = "book"
    columns = ["who", "what"]          # optional, in place of source and target (or the first two)

Files are those of `tables`: Parquet, CSV or TSV (.npy and .npz too), with ids as strings or integers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError, InputError, MissingFileError, did_you_mean
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.build.ids import NodeIds
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.readers.edges import EdgeColumns, open_edges
from gamlp.graph.readers.nodes import NodeColumns, NodeTable, open_nodes

CONTENTS = "hetero.toml"
NODE_KEYS = ("file", "count", "features", "id", "label", "split")
RELATION_KEYS = ("file", "source", "target", "columns")


def is_hetero_folder(folder: Path) -> bool:
    """Say whether `folder` holds a heterogeneous graph."""
    return (folder / CONTENTS).is_file()


def read_hetero_tables(folder: Path) -> HeteroGraph:
    """Read the folder; every file is named in its hetero.toml."""
    content = read_toml(folder / CONTENTS)
    nodes = {kind: open_type(folder, kind, table) for kind, table in content["nodes"].items()}
    ids = {kind: part.ids() for kind, part in nodes.items()}
    relations = {name: read_relation(folder, name, table, ids) for name, table in content["relations"].items()}
    types = {kind: type_parts(part, labelled=kind == content["target"]) for kind, part in nodes.items()}
    return assemble_hetero(types, relations, target=content["target"], name=content.get("name", folder.name))


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


def open_type(folder: Path, kind: str, table: Mapping[str, Any]) -> NodeTable:
    """Open the nodes of one type."""
    columns = NodeColumns(id=table.get("id"), label=table.get("label"), split=table.get("split"))
    features = None if "features" not in table else folder / table["features"]
    if "file" in table or features is not None:
        return open_nodes(folder / table["file"] if "file" in table else None, features, columns, in_memory=True)
    if not isinstance(table.get("count"), int) or table["count"] < 1:
        raise FormatError(f"{folder / CONTENTS}: nodes.{kind} has neither file, features nor count.\nGive one of them.")
    return NodeTable(table["count"])


def type_parts(table: NodeTable, *, labelled: bool) -> TypeParts:
    """Read what there is of one type; labels and split are the target's."""
    parts = TypeParts(table.nodes, table.feature_matrix(), names=table.names(), feature_names=table.feature_names)
    if not labelled:
        return parts
    labels, classes = table.labels()
    return replace(parts, labels=labels, classes=classes, split=table.split())


def read_relation(folder: Path, name: str, table: Mapping[str, Any], ids: Mapping[str, NodeIds]) -> RelationParts:
    """Read the edges of one relation; ids become rows of their types' tables."""
    for key in ("file", "source", "target"):
        if not isinstance(table.get(key), str):
            raise FormatError(f"{folder / CONTENTS}: relations.{name} has no {key}.\nGive file, source and target.")
    for end in (table["source"], table["target"]):
        if end not in ids:
            raise InputError(
                f"Relation '{name}' joins '{table['source']}' and '{table['target']}'; there is no type '{end}'.\n"
                f"{did_you_mean(end, ids)}"
            )
    columns = table.get("columns", (None, None))
    if len(columns) != 2:
        raise FormatError(
            f"{folder / CONTENTS}: relations.{name} names {len(columns)} columns.\nExpected two: source and target."
        )
    edges = open_edges(folder / table["file"], EdgeColumns(*columns))
    heads, tails, _ = edges.between(ids[table["source"]], ids[table["target"]]).read()
    return RelationParts(table["source"], table["target"], heads, tails)
