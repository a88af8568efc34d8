"""The graph that everything starts from, checked once, here.

Shape letters used throughout: N nodes, E adjacency entries, F features, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gamlp.errors import IdError, LabelError, NotFiniteError, SettingsError, ShapeError, SplitError, did_you_mean
from gamlp.graph.splits import AnySplit, Split, SplitRule
from gamlp.storage.array_reader import ArrayReader, chunks
from gamlp.storage.files import Array, digest
from gamlp.storage.threads import prefetch, ranges
from gamlp.targets.registry import kind_of

if TYPE_CHECKING:
    from gamlp.graph.encode import Encoded
    from gamlp.graph.hetero import HeteroGraph, NodeType, Relation


@dataclass(frozen=True, eq=False)
class Adjacency:
    """A sparse N×N matrix by rows: the neighbours of node i are indices[indptr[i]:indptr[i+1]].

    indptr (N+1,) int64; indices (E,) int32, or int64 from 2³¹ nodes on; weights (E,) float32, or None where every
    entry is 1. Symmetric where the graph is undirected, as every reader makes it unless told otherwise.
    """

    indptr: Array
    indices: Array
    weights: Array | None = None

    @property
    def nodes(self) -> int:
        """N, the number of nodes."""
        return len(self.indptr) - 1

    @property
    def entries(self) -> int:
        """E, the number of stored entries: twice the edges of an undirected graph without self-loops."""
        return len(self.indices)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content, for cache keys."""
        return digest(self.indptr, self.indices, *([] if self.weights is None else [self.weights]))

    def check(self) -> None:
        """Refuse an adjacency that would crash or mislead a kernel."""
        if self.indptr.ndim != 1 or len(self.indptr) < 2:
            raise ShapeError("The graph has no nodes.\nAt least one node is needed.")
        starts = self.indptr
        if starts[0] != 0 or starts[-1] != self.entries or not _is_sorted(starts):
            raise ShapeError(
                f"The row offsets of the adjacency do not rise from 0 to its {self.entries:,} entries.\n"
                "Expected CSR form: one offset per node and one more, never falling."
            )
        for part in chunks(self.indices):
            check_ends(part, self.nodes)
        if self.weights is not None:
            check_weights(self.weights, self.entries)


def check_ends(ends: Array, nodes: int) -> None:
    """Refuse ends of edges, at least one, that are no nodes."""
    low, high = int(ends.min()), int(ends.max())
    if low < 0 or high >= nodes:
        raise IdError(
            f"An edge names node {low if low < 0 else high:,}, the graph has {nodes:,} nodes.\n"
            f"Edge ends must lie between 0 and {nodes - 1:,}."
        )


def check_weights(weights: Array, edges: int) -> None:
    """Refuse weights that do not belong to the edges, or cannot be used."""
    if weights.shape != (edges,):
        raise ShapeError(f"There are {weights.size:,} edge weights for {edges:,} edges.\nGive one per edge.")
    if not all(np.isfinite(part).all() and bool((part >= 0).all()) for part in chunks(weights)):
        raise NotFiniteError("Some edge weights are negative, NaN or infinite.\nWeights must be ≥ 0 and finite.")


def _is_sorted(offsets: Array) -> bool:
    last = 0
    for part in chunks(offsets):
        if part[0] < last or bool((np.diff(part) < 0).any()):
            return False
        last = int(part[-1])
    return True


@dataclass(frozen=True, eq=False)
class Graph:
    """N nodes with features, some with labels. Immutable; `check` has been passed by every Graph a reader returns."""

    adjacency: Adjacency
    features: Array  # (N, F) float32, in memory or memory-mapped; F = 0 where the graph came without any
    labels: Array  # (N,) int64 classes, or (N, T) int8 of 0 and 1 where a node has several labels; −1 = unknown
    classes: tuple[str, ...] = ()  # the C class names, in the order of the label numbers, or those of the T labels
    split: AnySplit = field(default_factory=SplitRule)  # fixed, one of several, or drawn anew for each seed
    names: Array | None = None  # (N,) the ids that came in, strings or integers; None = 0…N−1
    name: str = "graph"
    feature_names: tuple[str, ...] | None = None  # of the F columns; None where they came as a matrix
    types: tuple[NodeType, ...] = ()  # of a heterogeneous graph; a plain one has neither types nor relations
    relations: tuple[Relation, ...] = ()
    notes: tuple[str, ...] = ()  # what a reader changed and the user should know
    encoded: Encoded | None = field(default=None, kw_only=True)  # how tables became features; None of a matrix

    def __repr__(self) -> str:
        kinds = f", {len(self.types)} types, {len(self.relations)} relations" if self.types else ""
        known = int(kind_of(self.labels).known(self.labels).sum())
        return f"{type(self).__name__} '{self.name}': {self.counts}{kinds}; {known:,} labels known"

    @property
    def counts(self) -> str:
        """How many nodes, entries, features and classes, in words."""
        sizes = {"nodes": self.nodes, "entries": self.adjacency.entries, "features": self.features.shape[1]}
        words = "classes" if self.labels.ndim == 1 else "labels a node"
        return ", ".join(f"{count:,} {what}" for what, count in {**sizes, words: len(self.classes)}.items())

    @property
    def nodes(self) -> int:
        """N, the number of nodes."""
        return self.adjacency.nodes

    @property
    def targets(self) -> Array | None:
        """The ids of the nodes that can have a label; None = all."""
        return None

    def need_relations(self) -> HeteroGraph:
        """Return the graph as one with relations, or say that it has none."""
        raise SettingsError(
            f"{self.name} has one kind of nodes and edges, and so no relation subsets.\n"
            "Use a method for plain graphs: gamlp-jk instead of nars-gamlp-jk, sign instead of nars, …"
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of adjacency and features: what propagation depends on."""
        return digest(self.adjacency.fingerprint, self.features)

    @cached_property
    def fingerprints(self) -> Mapping[str, str]:
        """A hash of each thing that a result depends on, by its name; arrays of mapped files are read once."""
        names = self.feature_names
        return {
            "adjacency": self.adjacency.fingerprint,
            "features": digest("features", self.features),
            "feature_names": "" if names is None else digest(*names),
            "ids": "" if self.names is None else digest("ids", self.names),
            "labels": digest("labels", self.labels),
            "classes": digest(*self.classes),
            "split": self.split.fingerprint,
        }

    def split_for(self, seed: int) -> Split:
        """Return the fixed split, or the one that `seed` draws."""
        return self.split.draw(self.labels, seed)

    def with_columns(self, names: Sequence[str] | None) -> Graph:
        """Return the graph with its features in the order of `names`; columns without names stay as they are."""
        if names is None or self.feature_names is None or tuple(names) == self.feature_names:
            return self
        order = column_order(self.feature_names, names)
        return replace(self, features=np.ascontiguousarray(self.features[:, order]), feature_names=tuple(names))

    def with_labels(self, labels: Array) -> Graph:
        """Return the same graph with other labels."""
        return replace(self, labels=labels)

    def check(self) -> Graph:
        """Refuse what is no graph, with one message that says why; return self. See also `check_trainable`."""
        self.adjacency.check()
        check_features(self.features, self.nodes)
        if self.feature_names is not None and len(self.feature_names) != self.features.shape[1]:
            given, width = len(self.feature_names), self.features.shape[1]
            raise ShapeError(f"There are {given:,} names for {width:,} features.\nGive one per column.")
        kind_of(self.labels).check(self.labels, self.nodes, self.classes)
        if self.names is not None and len(self.names) != self.nodes:
            raise ShapeError(f"There are {len(self.names):,} node names for {self.nodes:,} nodes.\nGive one per node.")
        self.split.check(self.nodes)
        return self


def check_trainable(graph: Graph, split: Split | None = None) -> None:
    """Refuse a graph that nothing can be learned from; `split` is that of the seed, if it is drawn already."""
    kind = kind_of(graph.labels)
    known = graph.labels[kind.known(graph.labels)]
    if not len(known):
        kinds = "" if graph.targets is None else " of the target type"
        raise SplitError(f"No node{kinds} has a label.\nAt least two classes with labelled nodes are needed to learn.")
    if not kind.differ(known):
        raise LabelError(
            f"All labelled nodes have the class '{kind.words(known[:1], graph.classes)[0]}'.\n"
            "At least two classes are needed to learn from; −1 and empty labels mean unknown and do not count."
        )
    (graph.split_for(0) if split is None else split).check_trainable(graph.labels)


def column_order(have: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return where each wanted column stands; one that is missing, or that nobody wants, is refused by its name."""
    place, known = {name: at for at, name in enumerate(have)}, set(wanted)
    missing, extra = [name for name in wanted if name not in place], [name for name in have if name not in known]
    if missing:
        raise SettingsError(
            f"The graph has no feature column '{missing[0]}', which is one of the {len(wanted):,} expected.\n"
            f"{did_you_mean(missing[0], extra) if extra else 'Add it.'}"
        )
    if extra:
        raise SettingsError(
            f"The graph has a feature column '{extra[0]}' that is not one of the {len(wanted):,} expected.\n"
            f"Remove it: expected are {', '.join(list(wanted)[:5])}{', …' if len(wanted) > 5 else ''}."
        )
    return [place[name] for name in wanted]


def check_width(graph: Graph, features: int) -> None:
    """Refuse features other than those of training."""
    if graph.features.shape[1] != features:
        raise ShapeError(
            f"The graph has {graph.features.shape[1]:,} features a node, the model was trained with {features:,}.\n"
            "Give the same columns in the same order, or none where there were none."
        )


def check_features(features: Array, nodes: int) -> None:
    """Refuse features of the wrong shape, and NaN or infinite ones, naming the first bad place."""
    if features.ndim != 2:
        raise ShapeError(f"Features have {features.ndim} dimensions.\nExpected two: one row per node, one column each.")
    if len(features) != nodes:
        raise ShapeError(
            f"Features have {len(features):,} rows, the graph has {nodes:,} nodes.\n"
            "Every node needs one row, isolated nodes too. Were both numbered from the same file?"
        )
    if features.shape[1] == 0:
        return
    rows_a_step = max(1, 2**22 // features.shape[1])  # 16 MiB of float32 at a time, read where they are mapped
    source, steps = ArrayReader(features), ranges(nodes, rows_a_step)
    parts = (source.block(*step, slice(0, features.shape[1])) for step in steps)
    for (start, _), part in zip(steps, prefetch(parts) if len(steps) > 1 else parts, strict=True):
        check_finite(part, start)


def check_finite(rows: Array, start: int) -> None:
    """Refuse NaN and infinite features of the nodes from `start` on, naming the first bad place."""
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = (int(at[0]) for at in np.nonzero(~finite))
        raise NotFiniteError(
            f"Feature {column} of node {start + row:,} is {rows[row, column]}.\n"
            "Features must be finite numbers: fill or drop missing values first."
        )
