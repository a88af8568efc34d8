"""A graph with several types of nodes and several relations between them; labels belong to one type, the target.

It is a `Graph` too, the one that forgets types and relations: all nodes are numbered in one row, the target type first,
so that a node of the target type has the same number in both; edges have no direction; an entry of the adjacency counts
the relations that join two nodes. Label hops and every method for plain graphs read this side of it.

    nodes      0 … T−1 the target type | the second type | …              T target nodes, N nodes in all
    features   (N, F): rows of zeros for types without features           (`from_neighbours` fills them)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gamlp.errors import IdError, SettingsError, did_you_mean
from gamlp.graph.graph import Adjacency, Graph, check_features, column_order
from gamlp.graph.splits import Splits
from gamlp.storage.files import Array, digest
from gamlp.targets.registry import kind_of


@dataclass(frozen=True)
class NodeType:
    """The nodes `start` … `stop` − 1 of the graph."""

    name: str
    start: int
    stop: int
    described: bool  # whether it came with features

    @property
    def nodes(self) -> int:
        """How many there are."""
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class Relation:
    """Edges of one kind from nodes of one type to nodes of another (or the same); ends are nodes of the graph."""

    name: str
    source: str
    target: str
    heads: Array  # (edges,)
    tails: Array  # (edges,)

    @property
    def ends(self) -> tuple[str, str]:
        """The types it joins."""
        return self.source, self.target


@dataclass(frozen=True, eq=False, repr=False)
class HeteroGraph(Graph):
    """Types, the target first, relations, and the plain graph of all nodes; `gamlp.graph.build.hetero_assemble`."""

    adjacencies: Mapping[str, Adjacency] = field(default_factory=dict, repr=False)  # undirected, of each relation

    @property
    def target(self) -> NodeType:
        """The type whose nodes have labels."""
        return self.types[0]

    def need_relations(self) -> HeteroGraph:
        """It has relations."""
        return self

    @property
    def targets(self) -> Array:
        """The ids of the nodes of the target type."""
        return np.arange(self.target.stop)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all relations and features."""
        return digest(self.features, *self._relations)

    @cached_property
    def fingerprints(self) -> Mapping[str, str]:
        """As of a plain graph; the adjacency is all relations and types."""
        return {**super().fingerprints, "adjacency": digest(*self._relations)}

    @property
    def _relations(self) -> list[str | Array]:
        types = [f"{one.name} {one.nodes} {one.described}" for one in self.types]
        names = [f"{one.name} {one.source} {one.target}" for one in self.relations]
        return [*types, *names, *(ends for one in self.relations for ends in (one.heads, one.tails))]

    def with_columns(self, names: Sequence[str] | None) -> HeteroGraph:
        """Return the graph with the columns of each type in the order of `names`, which are written TYPE.COLUMN."""
        if names is None or self.feature_names is None or tuple(names) == self.feature_names:
            return self
        column_order(self.feature_names, names)
        features, both = np.array(self.features), (self.feature_names, names)
        for kind in self.types:
            have, wanted = ([name for name in some if name.startswith(f"{kind.name}.")] for some in both)
            if have == wanted:
                continue
            if len(have) != features.shape[1]:
                raise SettingsError(
                    f"The columns of '{kind.name}' are in another order, and they were projected to a wider width.\n"
                    f"Bring them into the order {', '.join(wanted[:5])}{', …' if len(wanted) > 5 else ''}."
                )
            features[kind.start : kind.stop] = self.features[kind.start : kind.stop, column_order(have, wanted)]
        return replace(self, features=features, feature_names=tuple(names))

    def relation(self, name: str) -> Relation:
        """Return the relation of that name."""
        named = {one.name: one for one in self.relations}
        if name not in named:
            raise SettingsError(f"There is no relation '{name}'.\n{did_you_mean(name, named)}")
        return named[name]

    def joined(self, names: Iterable[str]) -> Adjacency:
        """Return the undirected adjacency of some relations over all N nodes; entries count the relations."""
        return added([self.adjacencies[self.relation(name).name] for name in names])

    def check(self) -> HeteroGraph:
        """Refuse what is no graph; return self."""
        self.adjacency.check()
        for kind in self.types:
            if kind.described:
                check_features(self.features[kind.start : kind.stop], kind.nodes)
        kind_of(self.labels).check(self.labels, self.nodes, self.classes)
        if isinstance(self.split, Splits):
            self.split.check(self.target.nodes)
            return self
        self.split.check(self.nodes)
        last = max((int(ids.max(initial=-1)) for ids in self.split.sets.values()), default=-1)
        if last >= self.target.stop:
            raise IdError(
                f"The split names node {last:,}, there are {self.target.nodes:,} nodes of '{self.target.name}'.\n"
                "Train, valid and test nodes are of the target type."
            )
        return self


def added(parts: list[Adjacency]) -> Adjacency:
    """Return the sum of undirected adjacencies over the same nodes; weights only where some entry is not 1."""
    from gamlp.graph.build.csr import adjacency_from_edges

    if len(parts) == 1:
        return parts[0]
    nodes = parts[0].nodes
    rows = np.concatenate([np.repeat(np.arange(nodes), np.diff(part.indptr)) for part in parts])
    columns = np.concatenate([part.indices for part in parts])
    total = adjacency_from_edges(rows, columns, nodes=nodes, weights=np.ones(len(rows), np.float32), symmetric=False)
    ones = total.weights is None or bool((total.weights == 1).all())
    return Adjacency(total.indptr, total.indices) if ones else total


def from_neighbours(graph: HeteroGraph) -> Array:
    """Return features (N, F) in which every node of a type without features has its neighbours' mean.

    Each round fills the types that have known neighbours; a node without any keeps zeros.
    """
    features = np.array(graph.features, dtype=np.float32)
    known = np.zeros(graph.nodes, dtype=bool)
    for kind in graph.types:
        known[kind.start : kind.stop] = kind.described
    waiting = [kind for kind in graph.types if not kind.described]
    while waiting:
        means = {kind: mean_of_known(graph.adjacency, features, known, kind) for kind in waiting}
        filled = {kind: mean for kind, mean in means.items() if mean[1].any()}
        if not filled:
            break
        for kind, (mean, has) in filled.items():
            features[kind.start : kind.stop] = mean
            known[kind.start : kind.stop] = has
        waiting = [kind for kind in waiting if kind not in filled]
    return features


def mean_of_known(adjacency: Adjacency, features: Array, known: Array, kind: NodeType) -> tuple[Array, Array]:
    """Return the mean over the known neighbours of each node of a type, (nodes, F), and which have any."""
    from scipy.sparse import csr_array

    offsets = adjacency.indptr[kind.start : kind.stop + 1]
    entries = slice(int(offsets[0]), int(offsets[-1]))
    indices = adjacency.indices[entries]
    weights = np.ones(len(indices), np.float32) if adjacency.weights is None else adjacency.weights[entries]
    matrix = csr_array((weights * known[indices], indices, offsets - offsets[0]), shape=(kind.nodes, adjacency.nodes))
    total = np.asarray(matrix.sum(axis=1)).ravel()
    mean = np.asarray(matrix @ features) / np.where(total > 0, total, 1)[:, None]
    return mean.astype(np.float32), total > 0
