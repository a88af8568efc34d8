"""Cora, CiteSeer and PubMed from their raw files, with the public split.

Files `ind.<name>.<part>`: x, y the labelled training nodes; allx, ally all nodes but the test ones; tx, ty the test
nodes, in the order of test.index; graph, the neighbours of every node. CiteSeer's test ids have gaps: the nodes in them
have no features and no label, and stay in the graph as isolated nodes. Train = the first len(y) nodes, valid = the next
500, test = test.index. The supervised split, of the papers on sampling, has the same test nodes; the last 500 of the
others are valid, and all before them train.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.build.assemble import as_split, assemble
from gamlp.graph.graph import Graph
from gamlp.graph.readers.pickles import read_pickle
from gamlp.storage.files import Array

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALID = 500


def named(name: str, supervised: bool) -> str:
    """Return the name of the data set with that split."""
    return name + "-supervised" * supervised


def files(name: str) -> tuple[str, ...]:
    """Return the names of the raw files."""
    return tuple(f"ind.{name}.{part}" for part in PARTS)


def read_planetoid(raw: Path, name: str, *, supervised: bool = False) -> Graph:
    """Read the raw folder of `name`, one of cora, citeseer and pubmed, with the public or the supervised split."""
    parts = {part: read_part(raw / f"ind.{name}.{part}", part) for part in PARTS if part != "test.index"}
    test = read_index(raw / f"ind.{name}.test.index")
    known = parts["allx"].shape[0]
    trained = max(known - VALID, 0) if supervised else len(parts["y"])
    if len(test) != parts["tx"].shape[0] or int(test.min()) < known:
        raise ShapeError(
            f"test.index of {name} names {len(test):,} nodes from {int(test.min()):,} on; there are "
            f"{parts['tx'].shape[0]:,} test rows after {known:,} others.\nDo all files come from the same data set?"
        )
    nodes = max(int(test.max()) + 1, known)
    ends = edge_ends(parts["graph"])
    features = place(parts["allx"].toarray(), parts["tx"].toarray(), test, nodes)
    one_hot = place(parts["ally"], parts["ty"], test, nodes)
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1).astype(np.int64)  # zeros: unknown
    classes = tuple(str(number) for number in range(one_hot.shape[1]))
    split = as_split(range(trained), range(trained, min(trained + VALID, known)), test, nodes=nodes)
    return assemble(*ends, features=features, labels=labels, classes=classes, split=split, name=named(name, supervised))


def read_part(path: Path, part: str) -> Any:
    """Read one pickle, of the kind that the part has: features sparse, classes one-hot, or lists of neighbours."""
    found = read_pickle(path)
    if part == "graph":
        fits, expected = isinstance(found, dict), "a dictionary of lists of node numbers"
    elif part.endswith("x"):
        fits, expected = hasattr(found, "toarray"), "a sparse matrix of features"
    else:
        fits, expected = isinstance(found, np.ndarray) and found.ndim == 2, "an array with one row a node"
    if not fits:
        raise FormatError(f"{path} holds a {type(found).__name__}.\nExpected {expected}.")
    return found


def read_index(path: Path) -> Array:
    """Read test.index: one node id a line."""
    try:
        text = path.read_text(encoding="ascii") if path.is_file() else ""  # a pipe or a device may never end
        ids = np.array([int(line) for line in text.split()], dtype=np.int64)
    except (ValueError, OSError) as error:
        raise FormatError(f"{path} is not a list of node ids ({error}).\nExpected one whole number a line.") from error
    if not len(ids):
        raise FormatError(f"{path} is empty, or no file.\nExpected the ids of the test nodes, one a line.")
    return ids


def place(others: Array, tests: Array, test: Array, nodes: int) -> Array:
    """Put the test rows at their ids, after the others; rows in the gaps stay zero."""
    if others.shape[1] != tests.shape[1]:
        raise ShapeError(
            f"The test nodes have {tests.shape[1]:,} columns, the others {others.shape[1]:,}.\n"
            "Do all files come from the same data set?"
        )
    placed = np.zeros((nodes, others.shape[1]), dtype=np.float32)
    placed[: len(others)] = others
    placed[test] = tests
    return placed


def edge_ends(neighbours: dict[Any, list[Any]]) -> tuple[Array, Array]:
    """Turn the dictionary of neighbours into edge ends."""
    try:
        source = np.repeat(np.array(list(neighbours), dtype=np.int64), [len(ends) for ends in neighbours.values()])
        return source, np.array([end for ends in neighbours.values() for end in ends], dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise FormatError(
            f"The graph names neighbours that are no node numbers ({error}).\nExpected lists of whole numbers."
        ) from error
