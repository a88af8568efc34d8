"""Heterogeneous graphs that PyTorch Geometric holds: `HeteroData`."""

from __future__ import annotations

from typing import Any

from gamlp.errors import InputError, LabelError
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.readers.convert import plain, split_of

Key = tuple[str, str, str]


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
    return assemble_hetero(
        {kind: type_of(data[kind]) for kind in data.node_types},
        {
            relation_name(key, data.edge_types): edges_of(key, plain(data[key].edge_index))
            for key in data.edge_types
            if not is_reverse(data, key)
        },
        target=labelled[0] if target is None else target,
        name=name,
    )


def type_of(store: Any) -> TypeParts:
    """Return one type of nodes."""
    nodes = int(store.num_nodes)
    features, labels = store.get("x"), store.get("y")
    return TypeParts(
        nodes=nodes,
        features=None if features is None else plain(features),
        labels=None if labels is None else plain(labels),
        split=split_of(store, nodes),
    )


def edges_of(key: Key, edges: Any) -> RelationParts:
    """Return one relation."""
    return RelationParts(key[0], key[2], edges[0], edges[1])


def relation_name(key: Key, keys: list[Key]) -> str:
    """Return the name of a relation, with its types where several bear it."""
    return key[1] if sum(other[1] == key[1] for other in keys) == 1 else "-".join(key)


def is_reverse(data: Any, key: Key) -> bool:
    """Tell whether an edge type only repeats another one backwards."""
    source, name, target = key
    forward = (target, name.removeprefix("rev_"), source)
    return (
        name.startswith("rev_")
        and forward in data.edge_types
        and data[forward].edge_index.shape == data[key].edge_index.shape
    )
