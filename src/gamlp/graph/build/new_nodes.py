"""Nodes that are not in a graph yet, given alone, with the edges that join them to it and to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gamlp.errors import SettingsError, ShapeError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Adjacency, Graph, check_ends, check_weights
from gamlp.storage.files import Array


class Beside(NamedTuple):
    """The adjacency's entries of which one end is new, with local numbers: old neighbours first, then the new nodes."""

    old: Array  # (m,) the nodes of the graph that new ones are joined to, ascending
    adjacency: Adjacency  # (m + n, m + n)


@dataclass(frozen=True, eq=False)
class NewNodes:
    """n nodes and their edges source[e] → target[e]: below N a node of the graph, N + k the new node k."""

    nodes: Graph  # their features, labels and names; the edges are not in it
    source: Array  # (E',) int64
    target: Array
    weights: Array | None = None  # (E',) float32; as the graph has them, or not

    def check(self, graph: Graph) -> NewNodes:
        """Refuse edges that do not belong to new nodes, and weights that the graph does not have, or has."""
        check_ends_and_weights(graph, self.source, self.target, self.weights, graph.nodes + self.nodes.nodes)
        old = (self.source < graph.nodes) & (self.target < graph.nodes)
        if old.any():
            ends = [end[int(np.argmax(old))] for end in (self.source, self.target)]
            names = [str(end if graph.names is None else graph.names[end]) for end in ends]
            raise SettingsError(
                f"The edge from '{names[0]}' to '{names[1]}' joins two nodes that are in the graph already.\n"
                "Only edges of new nodes are given; gamlp update changes the graph itself."
            )
        return self

    def beside(self, nodes: int, *, directed: bool) -> Beside:
        """Return their entries beside a graph of so many nodes: both directions, no doubles, no self-loops."""
        own = nodes + np.arange(self.nodes.nodes)
        ends, local = np.unique(np.concatenate([self.source, self.target, own]), return_inverse=True)
        edges = local[: len(self.source)], local[len(self.source) : -len(own)]
        near = adjacency_from_edges(*edges, nodes=len(ends), weights=self.weights, symmetric=not directed, threads=1)
        return Beside(ends[: -len(own)], near)


def check_ends_and_weights(
    graph: Graph, source: Array, target: Array, weights: Array | None, nodes: int, *, weighted: bool = True
) -> None:
    """Refuse edges that name no node, and weights other than the graph's kind."""
    if source.shape != target.shape:
        raise ShapeError(f"The edges have {source.size:,} sources and {target.size:,} targets.\nEvery edge needs both.")
    for ends in (source, target):
        if len(ends):
            check_ends(ends, nodes)
    if weighted and (weights is None) != (graph.adjacency.weights is None):
        has, given = ("no", "have") if weights is not None else ("", "have no")
        raise SettingsError(
            f"The edges {given} weights, and those of {graph.name} have {has or 'some'}.\n"
            f"{'Leave the column out.' if weights is not None else 'Add a column weight.'}"
        )
    if weights is not None:
        check_weights(weights, len(source))
