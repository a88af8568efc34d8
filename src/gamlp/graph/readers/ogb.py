"""The Open Graph Benchmark's node data sets, straight from their raw folders.

    raw/      edge, node-feat, node-label, num-node-list (.csv.gz without header), or data.npz and node-label.npz
    split/    <how it was made>/{train,valid,test}.csv.gz: node ids

Text is read in chunks, so a file never stands in memory as text. Edges are made undirected, as every
published run on these data does. A label of NaN is unknown; classes are named by their numbers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.build.assemble import as_split
from gamlp.graph.build.encode_labels import whole_numbers
from gamlp.graph.graph import Graph
from gamlp.graph.readers.edges import EdgeList, open_edges
from gamlp.graph.readers.nodes import NodeTable, matrix, open_features
from gamlp.graph.readers.npz_arrays import read_member
from gamlp.graph.readers.table import read_matrix
from gamlp.graph.readers.tables import GraphFiles
from gamlp.storage.files import Array

TEXT = ("edge.csv.gz", "node-feat.csv.gz", "node-label.csv.gz", "num-node-list.csv.gz")
BINARY = ("data.npz", "node-label.npz")
SETS = ("train", "valid", "test")


def read_ogb(folder: Path, name: str, *, split: str) -> Graph:
    """Read the folder of one data set into memory."""
    return open_ogb(folder, name, split=split).read()


def open_ogb(folder: Path, name: str, *, split: str) -> GraphFiles:
    """Open the folder of one data set; `split` names the folder of its published split."""
    raw, sets = folder / "raw", [folder / "split" / split / f"{part}.csv.gz" for part in SETS]
    binary = (raw / BINARY[0]).is_file()
    nodes, edges = (open_binary if binary else open_text)(raw)
    ids = as_split(*(read_matrix(path, "int64")[:, 0] for path in sets), nodes=nodes.nodes)
    return GraphFiles(name, replace(nodes, sets=ids, paths=(*nodes.paths, *sets)), edges)


def open_text(raw: Path) -> tuple[NodeTable, EdgeList]:
    """Open the text files."""
    labels, nodes = read_matrix(raw / TEXT[2], "float64")[:, 0], int(read_matrix(raw / TEXT[3], "int64")[0, 0])
    edges, features = open_edges(raw / TEXT[0]), open_features(raw / TEXT[1], nodes)
    if len(edges.table.names) != 2:
        raise FormatError(f"{raw / TEXT[0]} has {len(edges.table.names)} columns.\nExpected two: source and target.")
    check_rows(raw, nodes, features.nodes, len(labels))
    paths = tuple(raw / file for file in TEXT)
    return replace(features, known=class_numbers(labels), paths=paths), edges


def open_binary(raw: Path) -> tuple[NodeTable, EdgeList]:
    """Open the .npz files; what is large in them is mapped."""
    paths = tuple(raw / file for file in BINARY)
    features = matrix(read_member(paths[0], "node_feat"), paths[0])
    labels = read_member(paths[1], "node_label").astype(np.float64).reshape(-1)
    nodes = int(np.ravel(read_member(paths[0], "num_nodes_list"))[0])
    check_rows(raw, nodes, len(features), len(labels))
    return NodeTable(nodes, features=features, known=class_numbers(labels), paths=paths), open_edges(paths[0])


def check_rows(raw: Path, nodes: int, features: int, labels: int) -> None:
    """Compare the rows that came with the number of nodes stated."""
    for what, rows in (("features", features), ("labels", labels)):
        if rows != nodes:
            raise ShapeError(
                f"{raw}: there are {rows:,} rows of {what} for {nodes:,} nodes.\n"
                "A file may be cut short, or come from another data set; fetch it again."
            )


def class_numbers(values: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the labels as they are numbered, NaN as −1, and the classes "0" … "C−1"."""
    labels = whole_numbers(values)
    return labels, tuple(str(number) for number in range(int(labels.max(initial=-1)) + 1))
