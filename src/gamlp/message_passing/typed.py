"""A heterogeneous graph as networks over its types see it: whole, or subgraphs around training nodes.

HGSampling (Hu et al. 2020) draws a subgraph with about as many nodes of each type, however rare a type is:

    budget[s] += 1 / |N_r(t)|      for every new node t, every relation r, and all s in N_r(t) that are not taken yet
    new nodes                      `nodes_a_type` of each type, drawn with probabilities ∝ budget²

The first new nodes are a batch of training nodes; `rounds` of drawing follow. All edges between nodes that are taken
are in it, so it is dense. Cost of one: O(edges into its nodes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from gamlp.graph.hetero import HeteroGraph
from gamlp.message_passing.features import scaled
from gamlp.message_passing.sampled import Batch, Sampler, equal
from gamlp.message_passing.settings import Options
from gamlp.propagate.scaling import Scaling
from gamlp.storage.files import Array

Kind = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class TypedView:
    """Features (N, F) of all nodes, where each type begins and ends, and the edges (2, E_r) of the 2R relations.

    Ends are rows of the features; `local` has them numbered within their types.
    """

    features: torch.Tensor
    ranges: dict[str, tuple[int, int]]
    edges: dict[Kind, torch.Tensor]

    @cached_property
    def local(self) -> dict[Kind, torch.Tensor]:
        """The edges, with ends numbered within their types."""
        return {key: pairs - self._starts(key).to(pairs.device) for key, pairs in self.edges.items()}

    def _starts(self, key: Kind) -> torch.Tensor:
        return torch.tensor([[self.ranges[key[0]][0]], [self.ranges[key[2]][0]]])


def typed_view(graph: HeteroGraph, *, scaling: Scaling, device: str) -> TypedView:
    """Return the whole graph; every relation counts in both directions."""
    features = scaled(np.asarray(graph.features), scaling)
    dense = features.toarray() if hasattr(features, "toarray") else features
    ranges = {kind.name: (kind.start, kind.stop) for kind in graph.types}
    edges = {}
    for one in graph.relations:
        pairs = torch.from_numpy(np.stack([one.heads, one.tails])).to(device)
        edges[one.source, one.name, one.target] = pairs
        edges[one.target, f"rev_{one.name}", one.source] = pairs.flip(0)
    return TypedView(torch.from_numpy(np.ascontiguousarray(dense, np.float32)).to(device), ranges, edges)


def whole(view: TypedView, train: Array) -> Sampler:
    """One batch: the whole graph."""
    batch = Batch(view, train, train, equal(train))  # type: ignore[arg-type]
    return lambda random: iter([batch])


def subgraphs(view: TypedView, train: Array, options: Options) -> Sampler:
    """Parts around batches of training nodes; small graphs are taken whole."""
    if len(view.features) <= options.full_batch_up_to:
        return whole(view, train)
    into = {key: Sources(pairs.cpu().numpy(), len(view.features)) for key, pairs in view.edges.items()}

    def sample(random: np.random.Generator) -> Iterator[Batch]:
        order = random.permutation(train)
        for start in range(0, len(order), options.batch_size):
            seeds = np.sort(order[start : start + options.batch_size])
            nodes = reached(view.ranges, into, seeds, options=options, random=random)
            yield Batch(subgraph(view, into, nodes), np.searchsorted(nodes, seeds), seeds, equal(seeds))  # type: ignore[arg-type]

    return sample


class Sources:
    """The sources of one relation's edges, grouped by target."""

    def __init__(self, pairs: Array, nodes: int) -> None:
        self.sources = pairs[0][np.argsort(pairs[1], kind="stable")]
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(pairs[1], minlength=nodes))])

    def of(self, targets: Array) -> tuple[Array, Array]:
        """Return the sources of all edges into `targets`, and which of the targets each edge leads to."""
        degree = self.starts[targets + 1] - self.starts[targets]
        which = np.repeat(np.arange(len(targets)), degree)
        first = np.cumsum(degree) - degree
        return self.sources[(self.starts[targets] - first)[which] + np.arange(len(which))], which


def reached(
    ranges: dict[str, tuple[int, int]],
    into: dict[Kind, Sources],
    seeds: Array,
    *,
    options: Options,
    random: np.random.Generator,
) -> Array:
    """Return the nodes (sorted) of one subgraph."""
    count = max(last for _, last in ranges.values())
    taken, budget, new = np.zeros(count, dtype=bool), np.zeros(count), seeds
    taken[seeds] = True
    for _ in range(options.rounds):
        for relation in into.values():
            near, which = relation.of(new)
            np.add.at(budget, near, 1 / np.bincount(which, minlength=len(new))[which])
        budget[taken] = 0
        new = np.concatenate(
            [first + drawn(budget[first:last], options.nodes_a_type, random) for first, last in ranges.values()]
        )
        taken[new] = True
    return np.flatnonzero(taken)


def drawn(budget: Array, count: int, random: np.random.Generator) -> Array:
    """Draw `count` different nodes with probabilities ∝ budget², or all that have any.

    The earliest of exponential waiting times with these rates are such a draw.
    """
    able = np.flatnonzero(budget)
    waiting = random.exponential(size=len(able)) / budget[able] ** 2
    return able if len(able) <= count else able[np.argpartition(waiting, count)[:count]]


def subgraph(view: TypedView, into: dict[Kind, Sources], nodes: Array) -> TypedView:
    """Return these nodes (sorted) and all edges between them."""
    device = view.features.device
    place = np.full(len(view.features), -1)
    place[nodes] = np.arange(len(nodes))
    edges = {}
    for key, relation in into.items():
        first, last = np.searchsorted(nodes, view.ranges[key[2]])
        near, which = relation.of(nodes[first:last])
        inside = place[near] >= 0
        edges[key] = torch.from_numpy(np.stack([place[near][inside], first + which[inside]])).to(device)
    ranges = {name: tuple(np.searchsorted(nodes, ends).tolist()) for name, ends in view.ranges.items()}
    return TypedView(view.features[torch.from_numpy(nodes).to(device)], ranges, edges)
