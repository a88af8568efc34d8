"""The Open Graph Benchmark's node data sets, straight from their raw folders.

    raw/      edge, node-feat, node-label, num-node-list (.csv.gz without header), or data.npz and node-label.npz
    split/    <how it was made>/{train,valid,test}.csv.gz: node ids

Text is read in a stream of batches, so a file never stands in memory as text. Edges are made undirected, as every
published run on these data does. A label of NaN is unknown; classes are named by their numbers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.build.assemble import as_split, assemble
from gamlp.graph.build.encode_labels import whole_numbers
from gamlp.graph.graph import Graph
from gamlp.graph.readers.npz_arrays import read_member
from gamlp.graph.readers.streams import read_matrix
from gamlp.storage.files import Array

TEXT = ("edge.csv.gz", "node-feat.csv.gz", "node-label.csv.gz", "num-node-list.csv.gz")
BINARY = ("data.npz", "node-label.npz")
SETS = ("train", "valid", "test")


def read_ogb(folder: Path, name: str, *, split: str) -> Graph:
    """Read the folder of one data set; `split` names the folder of its published split."""
    binary = (folder / "raw" / BINARY[0]).is_file()
    edges, features, labels = (read_binary if binary else read_text)(folder / "raw")
    labels, classes = class_numbers(labels)
    sets = [read_matrix(folder / "split" / split / f"{part}.csv.gz", np.int64)[:, 0] for part in SETS]
    return assemble(
        edges[0],
        edges[1],
        features=features,
        labels=labels,
        classes=classes,
        split=as_split(*sets, nodes=len(features)),
        name=name,
    )


def read_text(raw: Path) -> tuple[Array, Array, Array]:
    """Return edges (2, E), features (N, F) and labels (N,) from the text files."""
    edges, features, labels = (
        read_matrix(raw / file, kind) for file, kind in zip(TEXT, (np.int64, np.float32, np.float64), strict=False)
    )
    nodes = int(read_matrix(raw / TEXT[3], np.int64)[0, 0])
    if edges.shape[1] != 2:
        raise FormatError(f"{raw / TEXT[0]} has {edges.shape[1]} columns.\nExpected two: source and target.")
    check_rows(raw, nodes, features, labels)
    return edges.T, features, labels[:, 0]


def read_binary(raw: Path) -> tuple[Array, Array, Array]:
    """Return edges, features and labels from the .npz files, mapped where they are large."""
    data, labelled = (raw / file for file in BINARY)
    edges, features = read_member(data, "edge_index"), read_member(data, "node_feat")
    labels = read_member(labelled, "node_label").astype(np.float64).reshape(-1)
    if edges.ndim != 2 or len(edges) != 2:
        raise FormatError(f"{data}: edge_index has the shape {edges.shape}.\nExpected (2, edges).")
    nodes = int(np.ravel(read_member(data, "num_nodes_list"))[0])
    check_rows(raw, nodes, features, labels)
    return edges, features, labels


def check_rows(raw: Path, nodes: int, features: Array, labels: Array) -> None:
    """Compare the rows that came with the number of nodes stated."""
    for what, array in (("features", features), ("labels", labels)):
        if len(array) != nodes:
            raise ShapeError(
                f"{raw}: there are {len(array):,} rows of {what} for {nodes:,} nodes.\n"
                "A file may be cut short, or come from another data set; fetch it again."
            )


def class_numbers(values: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the labels as they are numbered, NaN as −1, and the classes "0" … "C−1"."""
    labels = whole_numbers(values)
    return labels, tuple(str(number) for number in range(int(labels.max(initial=-1)) + 1))
