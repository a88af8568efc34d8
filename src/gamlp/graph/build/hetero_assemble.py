"""One way from parts to a checked HeteroGraph: every reader of heterogeneous graphs ends here.

Features of different widths are brought to the widest by a random projection, x ↦ x R with R_ij ~ N(0, 1/F), which
keeps lengths and angles nearly as they are; its seed is fixed by the type's name, and the graph says so in its notes.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.errors import FormatError, IdError, InputError, ShapeError, did_you_mean
from gamlp.graph.build.assemble import as_features, as_labels
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import check_features
from gamlp.graph.hetero import HeteroGraph, NodeType, Relation, added
from gamlp.graph.splits import AnySplit, SplitRule
from gamlp.storage.files import Array
from gamlp.targets.registry import kind_of


@dataclass(frozen=True, eq=False)
class TypeParts:
    """One type of nodes as a reader found it."""

    nodes: int
    features: Any = None  # (nodes, width)
    labels: Any = None  # (nodes,)
    classes: tuple[str, ...] | None = None  # with these, the labels are class numbers already
    split: AnySplit | None = None
    names: Array | None = None
    feature_names: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class RelationParts:
    """One relation as a reader found it; ends are numbered within their types."""

    source: str
    target: str
    heads: Array
    tails: Array


def assemble_hetero(
    types: Mapping[str, TypeParts], relations: Mapping[str, RelationParts], *, target: str, name: str = "graph"
) -> HeteroGraph:
    """Put a graph together from types and relations, and check it."""
    if target not in types:
        raise InputError(f"The target type is '{target}', which the graph lacks.\n{did_you_mean(target, types)}")
    if not relations:
        raise InputError("The graph has no relations.\nName at least one, with the types that it joins.")
    types = {target: types[target], **types}  # the target first
    ends = np.cumsum([part.nodes for part in types.values()]).tolist()
    kinds = {
        kind: NodeType(kind, end - part.nodes, end, part.features is not None)
        for (kind, part), end in zip(types.items(), ends, strict=True)
    }
    nodes, part = ends[-1], types[target]
    joined = tuple(checked_relation(key, one, kinds) for key, one in relations.items())
    adjacencies = {one.name: adjacency_from_edges(one.heads, one.tails, nodes=nodes) for one in joined}
    features, notes = one_width(types, kinds)
    columns = tuple(f"{kind}.{column}" for kind in types for column in types[kind].feature_names or ())
    known, classes = as_labels(part.labels, part.classes, part.nodes)
    if len(known) != part.nodes:
        raise ShapeError(f"There are {len(known):,} labels for {part.nodes:,} nodes of '{target}'.\nGive one each.")
    labels = np.concatenate([known, kind_of(known).unknown(nodes - part.nodes, len(classes))])
    split, names = part.split or SplitRule(), all_names(list(types.values()))
    plain = (added(list(adjacencies.values())), features, labels, classes, split, names, name, columns or None)
    return HeteroGraph(*plain, tuple(kinds.values()), joined, tuple(notes), adjacencies).check()


def check_types(relation: str, source: str, target: str, types: Collection[str]) -> None:
    """Refuse a relation that joins a type that is not there."""
    for kind in (source, target):
        if kind not in types:
            raise InputError(
                f"Relation '{relation}' joins '{source}' and '{target}'; there is no type '{kind}'.\n"
                f"{did_you_mean(kind, types)}"
            )


def checked_relation(name: str, part: RelationParts, kinds: Mapping[str, NodeType]) -> Relation:
    """Refuse unknown types and ids out of range; return the relation with its ends numbered among all nodes."""
    check_types(name, part.source, part.target, kinds)
    ends = []
    for kind, ids in ((part.source, np.asarray(part.heads)), (part.target, np.asarray(part.tails))):
        if len(ids) and ids.dtype.kind not in "iu":
            raise FormatError(f"The ends of relation '{name}' are of type {ids.dtype}.\nExpected whole numbers.")
        count = kinds[kind].nodes
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < count:
            wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
            raise IdError(
                f"Relation '{name}' names {kind} {wrong:,}, there are {count:,} nodes of this type.\n"
                f"Its ends must lie between 0 and {count - 1:,}."
            )
        ends.append(ids.astype(np.int64) + kinds[kind].start)
    if len(ends[0]) != len(ends[1]):
        sources, targets = map(len, ends)
        raise ShapeError(f"Relation '{name}' has {sources:,} sources and {targets:,} targets.\nEvery edge needs both.")
    return Relation(name, part.source, part.target, *ends)


def one_width(types: Mapping[str, TypeParts], kinds: Mapping[str, NodeType]) -> tuple[Array, list[str]]:
    """Return the features of all nodes (N, F), zeros where a type has none, and what was projected."""
    given = {kind: as_features(part.features) for kind, part in types.items() if part.features is not None}
    for kind, values in given.items():
        if len(values) != types[kind].nodes or values.ndim != 2:
            raise ShapeError(
                f"Features of '{kind}' have the shape {values.shape}, there are {types[kind].nodes:,} such nodes.\n"
                "Every node of a type with features needs one row."
            )
        check_features(values, types[kind].nodes)
    width = max((values.shape[1] for values in given.values()), default=0)
    features = np.zeros((sum(part.nodes for part in types.values()), width), np.float32)
    for kind, values in given.items():
        same = values.shape[1] == width
        features[kinds[kind].start : kinds[kind].stop] = values if same else projected(values, width, key=kind)
    return features, [
        f"The {values.shape[1]:,} features of '{kind}' were projected at random to {width:,}, the widest."
        for kind, values in given.items()
        if values.shape[1] != width
    ]


def projected(values: Array, width: int, *, key: str) -> Array:
    """Return x R, (nodes, width) float32; the word `key` is the seed of R."""
    random = np.random.default_rng([zlib.crc32(key.encode()), values.shape[1], width])
    matrix = random.standard_normal((values.shape[1], width), dtype=np.float32) / np.float32(np.sqrt(width))
    return np.asarray(values @ matrix)


def all_names(parts: list[TypeParts]) -> Array | None:
    """Return the ids that came in, of all types, as the target's are: words or integers; None where it has none."""
    if parts[0].names is None:
        return None
    own = [np.arange(part.nodes) if part.names is None else part.names for part in parts]
    if own[0].dtype.kind in "iu":
        return np.concatenate([ids if ids.dtype.kind in "iu" else np.arange(len(ids)) for ids in own])
    return np.concatenate([ids.astype(str) for ids in own])
