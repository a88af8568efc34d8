"""Graphs that other libraries hold: scipy, PyTorch Geometric (`Data` and `HeteroData`), networkx.

Features may be numpy, scipy sparse or torch; labels numbers or strings, unknown = −1, NaN, None or the empty string.
Directed graphs are made undirected unless `symmetric=False`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gamlp.errors import FormatError, InputError, LabelError, ShapeError
from gamlp.graph.build.assemble import as_split, assemble, named_split, plain
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.splits import AnySplit, Split, Splits
from gamlp.storage.files import Array


def from_scipy(
    adjacency: Any,
    features: Any,
    labels: Any = None,
    *,
    split: AnySplit | None = None,
    names: Any = None,
    symmetric: bool = True,
    name: str = "graph",
) -> Graph:
    """Take a graph from an adjacency (N, N), scipy sparse or dense, and features (N, F).

    Entries other than 0 are edges, and their values weights, unless all of them are 1.
    """
    from scipy import sparse

    try:
        matrix = sparse.coo_array(adjacency)
    except (TypeError, ValueError) as error:
        raise FormatError(f"The adjacency is no matrix ({error}).\nExpected scipy sparse or a numpy array.") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"The adjacency has the shape {matrix.shape}.\nExpected a square: a row and column per node.")
    if matrix.dtype.kind not in "biuf":
        raise FormatError(f"The adjacency is of type {matrix.dtype}.\nExpected numbers or true and false.")
    features, labels, names = plain(features), plain(labels), plain(names)
    if features.shape[0] != matrix.shape[0]:
        raise ShapeError(
            f"Features have {features.shape[0]:,} rows, the adjacency {matrix.shape[0]:,}.\n"
            "Every node needs one row, isolated nodes too. Were both numbered from the same file?"
        )
    kept = matrix.data != 0
    ends, values = (matrix.row[kept], matrix.col[kept]), matrix.data[kept].astype(np.float32)
    weights = None if (values == 1).all() else values
    rest: dict[str, Any] = {"split": split, "names": names, "symmetric": symmetric, "name": name}
    return assemble(*ends, features=features, labels=labels, weights=weights, **rest)


def from_pyg(data: Any, *, symmetric: bool = True, name: str = "graph") -> Graph:
    """Take a graph from a PyTorch Geometric `Data`: x, edge_index, and where there are any edge_weight, y and masks.

    Masks with several columns are several splits, a seed each; without masks, the split is drawn.
    """
    for key in ("x", "edge_index"):
        if getattr(data, key, None) is None:
            raise InputError(f"The data has no {key}.\nExpected torch_geometric.data.Data with x and edge_index.")
    features, edges = plain(data.x), plain(data.edge_index)
    if edges.ndim != 2 or len(edges) != 2:
        raise ShapeError(f"edge_index has the shape {edges.shape}.\nExpected (2, edges).")
    labels, weights = plain(getattr(data, "y", None)), plain(getattr(data, "edge_weight", None))
    weights = None if weights is None else weights.reshape(-1)
    rest: dict[str, Any] = {"split": split_of(data, len(features)), "symmetric": symmetric, "name": name}
    return assemble(*edges, features=features, labels=labels, weights=weights, **rest)


def from_pyg_hetero(data: Any, *, target: str | None = None, name: str = "graph") -> HeteroGraph:
    """Take a graph from a `HeteroData`: x and y of its node types, edge_index of its edge types, and masks.

    The target is the one type that has y, unless named. Reverse relations, as `ToUndirected` adds them, are left out:
    every relation counts in both directions already.
    """
    if not hasattr(data, "node_types") or not hasattr(data, "edge_types"):
        raise InputError("The data has no node and edge types.\nExpected torch_geometric.data.HeteroData.")
    labelled = [kind for kind in data.node_types if data[kind].get("y") is not None]
    if target is None and len(labelled) != 1:
        raise LabelError(
            f"{len(labelled)} types of nodes have labels (y): {', '.join(labelled) or 'none'}.\n"
            "Expected one, or say which is the target."
        )
    types, relations, names = {}, {}, [key[1] for key in data.edge_types]
    for kind in data.node_types:
        store, nodes = data[kind], int(data[kind].num_nodes)
        types[kind] = TypeParts(nodes, plain(store.get("x")), plain(store.get("y")), split=split_of(store, nodes))
    for key in data.edge_types:
        (source, relation, end), edges = key, plain(data[key].edge_index)
        forward = (end, relation.removeprefix("rev_"), source)
        if relation.startswith("rev_") and forward in data.edge_types and data[forward].edge_index.shape == edges.shape:
            continue  # it only repeats another one backwards
        own_name = relation if names.count(relation) == 1 else "-".join(key)
        relations[own_name] = RelationParts(source, end, edges[0], edges[1])
    return assemble_hetero(types, relations, target=labelled[0] if target is None else target, name=name)


def from_networkx(
    graph: Any,
    *,
    features: str | Sequence[str],
    label: str | None = None,
    split: str | None = None,
    weight: str | None = None,
    symmetric: bool = True,
    name: str = "graph",
) -> Graph:
    """Take a graph from networkx; features, label, split and weight name attributes of its nodes and edges.

    A feature attribute is a number or a vector; a split attribute says train, valid (or val) or test.
    """
    nodes = list(graph.nodes(data=True))
    row = {node: at for at, (node, _) in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    sets = [attributes.get(split) for _, attributes in nodes]
    return assemble(
        *np.array([(row[start], row[end]) for start, end, _ in edges], dtype=np.int64).reshape(-1, 2).T,
        features=node_features(nodes, [features] if isinstance(features, str) else list(features)),
        labels=None if label is None else np.array([attributes.get(label) for _, attributes in nodes], dtype=object),
        weights=None if weight is None else np.array([float(attributes.get(weight, 1)) for *_, attributes in edges]),
        split=named_split(sets, place=lambda at: f"node {nodes[at][0]!r}") if split else None,
        names=node_names(list(row)),
        symmetric=symmetric,
        name=name,
    )


def split_of(data: Any, nodes: int) -> Split | Splits | None:
    """Return the split, or the splits, that the masks make, or None where there is no training mask."""
    masks = [plain(getattr(data, f"{part}_mask", None)) for part in ("train", "val", "test")]
    if masks[0] is None:
        return None
    sets = [np.zeros(nodes, dtype=bool) if mask is None else mask.astype(bool) for mask in masks]
    return as_split(*sets, nodes=nodes)


def node_features(nodes: list[tuple[Any, dict[str, Any]]], wanted: list[str]) -> Array:
    """Put the attributes of each node side by side as one row."""
    rows: list[Array] = []
    for node, attributes in nodes:
        missing = [key for key in wanted if attributes.get(key) is None]
        if missing or not wanted:
            raise ShapeError(
                f"Node {node!r} has no attribute '{''.join(missing[:1])}'.\n"
                "Every node needs all feature attributes, each a number or a vector."
            )
        try:
            row = np.concatenate([np.ravel(np.asarray(plain(attributes[key]), dtype=np.float32)) for key in wanted])
        except (ValueError, TypeError) as error:
            raise FormatError(f"Features of node {node!r} are no numbers ({error}).\nDrop or encode them.") from None
        if rows and len(row) != len(rows[0]):
            first = len(rows[0])
            raise ShapeError(f"Node {node!r} has {len(row):,} features, the first node {first:,}.\nAll need as many.")
        rows.append(row)
    return np.array(rows, dtype=np.float32).reshape(len(rows), -1) if rows else np.empty((0, 0), dtype=np.float32)


def node_names(nodes: list[Any]) -> Array | None:
    """Return the names of nodes as integers or strings; None where they are 0 … N−1 in order."""
    if nodes == list(range(len(nodes))):
        return None
    if all(isinstance(node, int) for node in nodes):
        return np.array(nodes, dtype=np.int64)
    return np.array([str(node) for node in nodes])
