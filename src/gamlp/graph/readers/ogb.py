"""The Open Graph Benchmark's node data sets, straight from their raw folders.

    raw/      edge, node-feat, node-label, num-node-list (.csv.gz without header), or data.npz and node-label.npz
    split/    <how it was made>/{train,valid,test}.csv.gz: node ids

Text is read in chunks, so a file never stands in memory as text. Edges are made undirected, as every
published run on these data does. A label of NaN is unknown; classes are named by their numbers. ogbn-mag has types:

    raw/num-node-dict.csv.gz               a line of types, a line of their numbers of nodes
    raw/triplet-type-list.csv.gz           source type, relation, target type
    raw/relations/S___R___T/edge.csv.gz    two columns of ids
    raw/node-feat/TYPE/node-feat.csv.gz    features, for some types
    raw/node-label/TYPE/node-label.csv.gz  labels, for one type
    split/time/TYPE/{train,valid,test}.csv.gz
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.build.assemble import as_indicators, as_split, whole_numbers
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero, check_types
from gamlp.graph.build.ids import NodeIds
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.readers.edges import EdgeList, open_edges
from gamlp.graph.readers.nodes import NodeTable, matrix, open_numbers
from gamlp.graph.readers.npz_arrays import read_member
from gamlp.graph.readers.table import read_matrix, reading
from gamlp.graph.readers.tables import GraphFiles
from gamlp.storage.files import Array

TEXT = ("edge.csv.gz", "node-feat.csv.gz", "node-label.csv.gz", "num-node-list.csv.gz")
BINARY = ("data.npz", "node-label.npz")
SETS = ("train.csv.gz", "valid.csv.gz", "test.csv.gz")
TARGET = "paper"
MAG_FILES = (
    "raw/num-node-dict.csv.gz",
    "raw/triplet-type-list.csv.gz",
    "raw/relations/author___affiliated_with___institution/edge.csv.gz",
    "raw/relations/author___writes___paper/edge.csv.gz",
    "raw/relations/paper___cites___paper/edge.csv.gz",
    "raw/relations/paper___has_topic___field_of_study/edge.csv.gz",
    f"raw/node-feat/{TARGET}/node-feat.csv.gz",
    f"raw/node-label/{TARGET}/node-label.csv.gz",
    *(f"split/time/{TARGET}/{part}" for part in SETS),
)


def read_ogb(folder: Path, name: str, *, split: str) -> Graph:
    """Read the folder of one data set into memory."""
    return open_ogb(folder, name, split=split).read()


def open_ogb(folder: Path, name: str, *, split: str) -> GraphFiles:
    """Open the folder of one data set; `split` names the folder of its published split."""
    raw, sets = folder / "raw", [folder / "split" / split / part for part in SETS]
    nodes, edges = (open_binary if (raw / BINARY[0]).is_file() else open_text)(raw)
    ids = as_split(*(read_matrix(path, "int64")[:, 0] for path in sets), nodes=nodes.nodes)
    return GraphFiles(name, replace(nodes, sets=ids, paths=(*nodes.paths, *sets)), edges)


def open_text(raw: Path) -> tuple[NodeTable, EdgeList]:
    """Open the text files."""
    paths = tuple(raw / file for file in TEXT)
    labels, nodes = class_numbers(read_matrix(paths[2], "float64")), int(read_matrix(paths[3], "int64")[0, 0])
    edges, features = open_pairs(paths[0]), open_numbers(paths[1], nodes)
    check_rows(raw, nodes, features.nodes, len(labels[0]))
    return replace(features, known=labels, paths=paths), edges


def open_binary(raw: Path) -> tuple[NodeTable, EdgeList]:
    """Open the .npz files; what is large in them is mapped."""
    paths = tuple(raw / file for file in BINARY)
    features = matrix(read_member(paths[0], "node_feat"), paths[0])
    labels = class_numbers(read_member(paths[1], "node_label").astype(np.float64).reshape(-1))
    nodes = int(np.ravel(read_member(paths[0], "num_nodes_list"))[0])
    check_rows(raw, nodes, len(features), len(labels[0]))
    return NodeTable(nodes, features=features, known=labels, paths=paths), open_edges(paths[0])


def check_rows(raw: Path, nodes: int, features: int, labels: int) -> None:
    """Compare the rows that came with the number of nodes stated."""
    for what, rows in (("features", features), ("labels", labels)):
        if rows != nodes:
            raise ShapeError(
                f"{raw}: there are {rows:,} rows of {what} for {nodes:,} nodes.\n"
                "A file may be cut short, or come from another data set; fetch it again."
            )


def read_ogb_hetero(folder: Path, name: str, *, target: str = TARGET, split: str = "time") -> HeteroGraph:
    """Read the folder of a data set with types; `split` names the folder of its published split."""
    raw = folder / "raw"
    counts, relations = node_counts(raw / "num-node-dict.csv.gz"), {}
    types = {kind: read_type(folder, kind, nodes, target=target, split=split) for kind, nodes in counts.items()}
    for source, relation, end in read_lines(raw / "triplet-type-list.csv.gz", columns=3):
        check_types(relation, source, end, counts)
        edges = open_pairs(raw / "relations" / f"{source}___{relation}___{end}" / "edge.csv.gz")
        heads, tails, _ = edges.between(*(NodeIds(counts[kind]) for kind in (source, end))).read()
        relations[relation] = RelationParts(source, end, heads, tails)
    return assemble_hetero(types, relations, target=target, name=name)


def read_type(folder: Path, kind: str, nodes: int, *, target: str, split: str) -> TypeParts:
    """Read what there is of one type: features if there are any, labels and split of the target type."""
    features = folder / "raw" / "node-feat" / kind / "node-feat.csv.gz"
    values = open_numbers(features, nodes).feature_matrix() if features.is_file() else None
    if kind != target:
        return TypeParts(nodes, values)
    labels = read_matrix(folder / "raw" / "node-label" / kind / "node-label.csv.gz", "float64")[:, 0]
    sets = (read_matrix(folder / "split" / split / kind / part, "int64")[:, 0] for part in SETS)
    return TypeParts(nodes, values, *class_numbers(labels), as_split(*sets, nodes=nodes))


def open_pairs(path: Path) -> EdgeList:
    """Open a list of edges with nothing but their ends."""
    edges = open_edges(path)
    if len(edges.table.names) != 2:
        raise FormatError(f"{path} has {len(edges.table.names)} columns.\nExpected two: source and target.")
    return edges


def class_numbers(values: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the labels as they are numbered, NaN as −1, and the classes "0" … "C−1"; of T columns, T labels a node."""
    if values.ndim == 2 and values.shape[1] > 1:
        return as_indicators(values)
    labels = whole_numbers(values.reshape(-1))
    return labels, tuple(str(number) for number in range(int(labels.max(initial=-1)) + 1))


def node_counts(path: Path) -> dict[str, int]:
    """Return how many nodes each type has."""
    lines = read_lines(path)
    if len(lines) != 2 or len(lines[0]) != len(lines[1]) or not all(word.isdecimal() for word in lines[1]):
        raise FormatError(f"{path} has {len(lines)} lines.\nExpected two: the types, and how many nodes each has.")
    return {kind: int(count) for kind, count in zip(*lines, strict=True)}


def read_lines(path: Path, *, columns: int | None = None) -> list[list[str]]:
    """Read a small table of words."""
    with reading(path), gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = [line for line in csv.reader(file) if line]
    if columns is not None and any(len(line) != columns for line in lines):
        raise FormatError(f"{path} has lines of other than {columns} words.\nExpected {columns} in every line.")
    return lines
