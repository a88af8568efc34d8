"""ogbn-mag, straight from OGB's raw folder.

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
from pathlib import Path

from gamlp.errors import FormatError, MissingFileError
from gamlp.graph.build.assemble import as_split
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.build.ids import NodeIds
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.readers.edges import open_edges
from gamlp.graph.readers.nodes import open_features
from gamlp.graph.readers.ogb import SETS, class_numbers
from gamlp.graph.readers.table import read_matrix
from gamlp.graph.splits import Split

TARGET = "paper"
RELATIONS = (
    ("author", "affiliated_with", "institution"),
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "has_topic", "field_of_study"),
)
FILES = (
    "raw/num-node-dict.csv.gz",
    "raw/triplet-type-list.csv.gz",
    *(f"raw/relations/{'___'.join(key)}/edge.csv.gz" for key in RELATIONS),
    f"raw/node-feat/{TARGET}/node-feat.csv.gz",
    f"raw/node-label/{TARGET}/node-label.csv.gz",
    *(f"split/time/{TARGET}/{part}.csv.gz" for part in SETS),
)


def read_ogb_hetero(folder: Path, name: str, *, target: str = TARGET, split: str = "time") -> HeteroGraph:
    """Read the folder of the data set; `split` names the folder of its published split."""
    raw = folder / "raw"
    types = {
        kind: read_type(folder, kind, nodes, target=target, split=split)
        for kind, nodes in node_counts(raw / "num-node-dict.csv.gz").items()
    }
    relations = {}
    for source, relation, end in read_lines(raw / "triplet-type-list.csv.gz", columns=3):
        path = raw / "relations" / f"{source}___{relation}___{end}" / "edge.csv.gz"
        edges = open_edges(path)
        if len(edges.table.names) != 2:
            raise FormatError(f"{path} has {len(edges.table.names)} columns.\nExpected two: source and target.")
        heads, tails, _ = edges.between(*(NodeIds(types[kind].nodes) for kind in (source, end))).read()
        relations[relation] = RelationParts(source, end, heads, tails)
    return assemble_hetero(types, relations, target=target, name=name)


def read_type(folder: Path, kind: str, nodes: int, *, target: str, split: str) -> TypeParts:
    """Read what there is of one type: features if there are any, labels and split of the target type."""
    features = folder / "raw" / "node-feat" / kind / "node-feat.csv.gz"
    values = open_features(features, nodes).feature_matrix() if features.is_file() else None
    if kind != target:
        return TypeParts(nodes, values)
    labels, classes = class_numbers(
        read_matrix(folder / "raw" / "node-label" / kind / "node-label.csv.gz", "float64")[:, 0]
    )
    return TypeParts(nodes, values, labels, classes, read_split(folder / "split" / split / kind, nodes))


def read_split(folder: Path, nodes: int) -> Split:
    """Read the three sets of ids."""
    return as_split(*(read_matrix(folder / f"{part}.csv.gz", "int64")[:, 0] for part in SETS), nodes=nodes)


def node_counts(path: Path) -> dict[str, int]:
    """Return how many nodes each type has."""
    lines = read_lines(path)
    if len(lines) != 2 or len(lines[0]) != len(lines[1]) or not all(word.isdecimal() for word in lines[1]):
        raise FormatError(f"{path} has {len(lines)} lines.\nExpected two: the types, and how many nodes each has.")
    return {kind: int(count) for kind, count in zip(*lines, strict=True)}


def read_lines(path: Path, *, columns: int | None = None) -> list[list[str]]:
    """Read a small table of words."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there.\nA file was expected at this place.")
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{path} could not be read to its end ({error}).\nCopy or make it again.") from error
    if columns is not None and any(len(line) != columns for line in lines):
        raise FormatError(f"{path} has lines of other than {columns} words.\nExpected {columns} in every line.")
    return lines
