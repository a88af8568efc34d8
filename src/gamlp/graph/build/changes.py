"""A graph becomes another: nodes and edges added, changed and removed, everything else taken over.

    apply_changes(graph, changes)  →  the graph, and `Moved`: where each node is now, and which rows are other ones

Added nodes come after all others; the nodes behind a removed one move up, in their order, and those that had no ids get
their old numbers as such. So the neighbours of every node stay in order, and the graph is what an import of the changed
tables would make of it. Edges count as they do in an import (`csr`): both directions unless the graph is directed, no
self-loops. An edge that is added where there is one changes nothing; with weights it is refused, as is what removes or
changes an edge that is not there. Labels of classes that the graph does not have become classes behind its own.

Cost: one pass over the adjacency to copy it; only rows that change are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gamlp.errors import InputError, SettingsError
from gamlp.graph.build.changed_adjacency import NO_IDS, changed_adjacency
from gamlp.graph.build.new_nodes import NewNodes
from gamlp.graph.graph import Graph
from gamlp.graph.splits import AnySplit, Split, Splits
from gamlp.storage.files import Array
from gamlp.targets.registry import kind_of


class EdgeSet(NamedTuple):
    """Edges by the numbers of their ends before anything is removed: below N a node of the graph, N + k one added."""

    source: Array = NO_IDS
    target: Array = NO_IDS
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class Changes:
    """What becomes of a graph of N nodes."""

    added: Graph | None = None  # nodes, without edges; their labels by their own classes, their split by its sets
    changed: Array = field(default_factory=lambda: NO_IDS)  # (n,) nodes with other features, ascending
    features: Array | None = None  # (n, F) theirs
    relabelled: Array = field(default_factory=lambda: NO_IDS)  # (n',) nodes with other labels, ascending
    labels: tuple[str, ...] = ()  # (n',) theirs, empty = unknown
    removed: Array = field(default_factory=lambda: NO_IDS)  # nodes, with all their edges, ascending
    edges_added: EdgeSet = field(default_factory=EdgeSet)
    edges_changed: EdgeSet = field(default_factory=EdgeSet)  # to other weights
    edges_removed: EdgeSet = field(default_factory=EdgeSet)

    @classmethod
    def of_new(cls, new: NewNodes) -> Changes:
        """Return the changes that add new nodes and their edges."""
        return cls(added=new.nodes, edges_added=EdgeSet(new.source, new.target, new.weights))


class Moved(NamedTuple):
    """Where the nodes of the old graph are in the new one, and what is not as it was."""

    number: Array | None  # (N,) the new number of each old node, −1 = removed; None where all have theirs
    added: int
    rows: Array  # new numbers of nodes whose row of the adjacency is another, those that were added among them
    features: Array  # new numbers of nodes whose features are others, those that were added among them

    def now(self, ids: Array) -> Array:
        """Return the new numbers of old nodes, those that are left."""
        found = ids if self.number is None else self.number[ids]
        return np.asarray(found[found >= 0])


def apply_changes(graph: Graph, changes: Changes, *, directed: bool) -> tuple[Graph, Moved]:
    """Return the changed graph, and what became of the rows of the old one."""
    if graph.types:
        raise SettingsError(
            f"{graph.name} has {len(graph.types)} types of nodes; only plain graphs are changed.\n"
            "Change its files, and read them again."
        )
    count, removed = 0 if changes.added is None else changes.added.nodes, changes.removed
    left, number = graph.nodes - len(removed), None
    if not left + count:
        raise InputError("All nodes are removed.\nAt least one node is needed.")
    if len(removed):
        stays = ~np.isin(np.arange(graph.nodes), removed)
        number = np.where(stays, np.cumsum(stays) - 1, -1)
    adjacency, rows = changed_adjacency(graph, changes, number, count, directed=directed)
    moved = Moved(number, count, rows, NO_IDS)
    moved = moved._replace(features=np.union1d(moved.now(changes.changed), left + np.arange(count)))
    labels, classes = new_labels(graph, changes)
    split, names = new_split(graph, changes, moved), new_names(graph, changes)
    plain = (adjacency, new_features(graph, changes), labels, classes, split, names, graph.name, graph.feature_names)
    made = Graph(*plain, encoded=graph.encoded)
    return made if made.features is graph.features else made.check(), moved  # edges were checked one by one


def new_features(graph: Graph, changes: Changes) -> Array:
    """Return the features, the very same array where no node is other than it was."""
    given = changes.features
    if not len(changes.removed) and changes.added is None and not len(changes.changed):
        return graph.features
    features = np.array(graph.features, np.float32)
    if given is not None:
        features[changes.changed] = given
    more = [] if changes.added is None else [changes.added.features]
    return np.concatenate([np.delete(features, changes.removed, axis=0), *more])


def new_labels(graph: Graph, changes: Changes) -> tuple[Array, tuple[str, ...]]:
    """Return labels and classes; what the graph has no class for becomes one behind its own."""
    if not len(changes.removed) and not len(changes.relabelled) and changes.added is None:
        return graph.labels, graph.classes
    if graph.labels.ndim > 1:
        return several_labels(graph, changes), graph.classes
    classes = {name: at for at, name in enumerate(graph.classes)}
    own = () if changes.added is None else changes.added.classes
    for name in (*own, *changes.labels):
        if name:
            classes.setdefault(name, len(classes))
    labels = graph.labels.copy()
    labels[changes.relabelled] = [classes.get(name, -1) for name in changes.labels]
    left = np.delete(labels, changes.removed)
    if changes.added is None:
        return left, tuple(classes)
    translation = np.array([*(classes[name] for name in own), -1], np.int64)
    return np.concatenate([left, translation[changes.added.labels]]), tuple(classes)


def several_labels(graph: Graph, changes: Changes) -> Array:
    """Return the labels (N', T) where a node has several; those of nodes that are there stay as they are."""
    if len(changes.relabelled):
        raise SettingsError(
            f"{graph.name} has several labels a node, which are not changed one by one.\n"
            "Leave the label columns out, or make the graph again."
        )
    kind, left, added = kind_of(graph.labels), np.delete(graph.labels, changes.removed, axis=0), changes.added
    if added is None:
        return left
    place = {name: at for at, name in enumerate(graph.classes)}
    places = np.array([place.get(name, -1) for name in added.classes], np.int64)
    same = added.labels.ndim == graph.labels.ndim
    width = len(graph.classes)
    more = kind.translated(added.labels, places, width) if same else kind.unknown(added.nodes, width)
    return np.concatenate([left, more.astype(left.dtype)])


def new_names(graph: Graph, changes: Changes) -> Array | None:
    """Return the ids; nodes without any have their old numbers for ids as soon as one is removed, or added with one."""
    added = changes.added
    if not len(changes.removed) and (added is None or (graph.names is None and added.names is None)):
        return graph.names
    own = np.arange(graph.nodes) if graph.names is None else graph.names
    if added is None:
        return np.delete(own, changes.removed)
    more = graph.nodes + np.arange(added.nodes) if added.names is None else added.names
    return np.concatenate([np.delete(own, changes.removed), more])


def new_split(graph: Graph, changes: Changes, moved: Moved) -> AnySplit:
    """Return the split with the nodes that are left, and those added ones that say which set they are of."""
    split, left = graph.split, graph.nodes - len(changes.removed)
    if isinstance(split, Splits):
        nothing = np.zeros((moved.added, split.train.shape[1]), bool)
        return Splits(
            *(np.concatenate([np.delete(part, changes.removed, axis=0), nothing]) for part in split.sets.values())
        )
    if not isinstance(split, Split):
        return split
    more = changes.added.split.sets if changes.added is not None and isinstance(changes.added.split, Split) else {}
    sets = [np.concatenate([moved.now(ids), left + more.get(name, NO_IDS)]) for name, ids in split.sets.items()]
    return Split(*sets)
