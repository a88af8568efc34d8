"""What one epoch trains on: the whole graph, sampled neighbours, clusters or random walks.

A sampler is made once for a fit and called once an epoch with a random generator; it yields batches.

    whole       every node, one step an epoch
    neighbours  a batch of training nodes and `fanout` neighbours of each, for each layer (GraphSAGE)
    clustered   a few clusters and the edges within and between them, normalised anew (Cluster-GCN)
    walks       the subgraph under random walks from training nodes (GraphSAINT). With node v in C_v and edge (u, v) in
                C_uv of M subgraphs, an edge weighs C_v / C_uv and a loss M / C_v times as much: both sums are unbiased.

The walks start at training nodes instead of all nodes: with few labels, most subgraphs would otherwise hold none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from gamlp.message_passing.settings import Options
from gamlp.message_passing.views import Matrix, View, view_of
from gamlp.storage.files import Array

SLACK = 1.2  # a cluster may grow to so many times its share


@dataclass(frozen=True, eq=False)
class Batch:
    """A view, and the training nodes in it: their rows, ids in the graph and weights in the loss, a sum."""

    view: Any  # a View or a TypedView
    rows: Array
    nodes: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Source:
    """What samplers draw from: scaled features (N, F), A (N, N), its normalisation, the training nodes (sorted)."""

    features: Any
    matrix: Matrix
    normalize: Callable[[Matrix], Matrix]
    train: Array
    options: Options
    device: str = "cpu"

    @cached_property
    def view(self) -> View:
        """The whole graph, as training and evaluation on it see it."""
        return view_of(self.features, self.normalize(self.matrix), self.device)

    def subgraph(self, nodes: Array, matrix: Matrix) -> View:
        """Some nodes and the normalised matrix between them."""
        return view_of(self.features[nodes], matrix, self.device)


Sampler = Callable[[np.random.Generator], Iterator[Batch]]
Draw = Callable[[Array, np.random.Generator], tuple[Array, Any]]


def whole(source: Any) -> Sampler:
    """One batch: the whole graph."""
    batch = Batch(source.view, source.train, source.train, equal(source.train))
    return lambda random: iter([batch])


def equal(nodes: Array) -> Array:
    """Return the weights of a plain mean."""
    return np.full(len(nodes), 1 / len(nodes))


def around_batches(source: Any, draw: Draw) -> Sampler:
    """Deal the training nodes into batches; `draw` returns the nodes (sorted) and the view that it takes around one."""

    def sample(random: np.random.Generator) -> Iterator[Batch]:
        order, size = random.permutation(source.train), source.options.batch_size
        for start in range(0, len(order), size):
            seeds = np.sort(order[start : start + size])
            nodes, view = draw(seeds, random)
            yield Batch(view, np.searchsorted(nodes, seeds), seeds, equal(seeds))

    return sample


def neighbours(source: Source) -> Sampler:
    """Sample around batches of training nodes; small graphs are taken whole."""
    options = source.options
    if source.matrix.shape[0] <= options.full_batch_up_to:
        return whole(source)
    matrix = source.normalize(source.matrix)

    def draw(seeds: Array, random: np.random.Generator) -> tuple[Array, View]:
        nodes, drawn = around(matrix, seeds, layers=options.layers, fanout=options.fanout, random=random)
        return nodes, source.subgraph(nodes, drawn)

    return around_batches(source, draw)


def around(
    matrix: Matrix, seeds: Array, *, layers: int, fanout: int, random: np.random.Generator
) -> tuple[Array, Matrix]:
    """Draw `fanout` entries (with replacement) of each row reached; return the nodes (sorted) and their matrix.

    An entry drawn from a row of d entries counts d / fanout times: the sum over the row is unbiased.
    """
    reached, frontier = seeds, seeds
    chosen: list[Array] = []
    targets: list[Array] = []
    for _ in range(layers):
        degree = matrix.indptr[frontier + 1] - matrix.indptr[frontier]
        frontier, degree = frontier[degree > 0], degree[degree > 0]
        offset = (random.random((len(frontier), fanout)) * degree[:, None]).astype(np.int64)
        chosen.append((matrix.indptr[frontier][:, None] + offset).ravel())
        targets.append(np.repeat(frontier, fanout))
        frontier = np.setdiff1d(matrix.indices[chosen[-1]], reached)
        reached = np.union1d(reached, frontier)
    entries, rows = np.concatenate(chosen), np.concatenate(targets)
    share = (matrix.indptr[rows + 1] - matrix.indptr[rows]) / fanout
    place = np.searchsorted(reached, rows), np.searchsorted(reached, matrix.indices[entries])
    values = (matrix.data[entries] * share).astype(np.float32)
    return reached, sp.coo_array((values, place), shape=(len(reached), len(reached))).tocsr()


def clustered(source: Source) -> Sampler:
    """Group the clusters anew each epoch; groups without a training node are passed over."""
    options = source.options
    cluster = clusters(source.matrix, parts=options.parts)

    def sample(random: np.random.Generator) -> Iterator[Batch]:
        order = random.permutation(int(cluster.max()) + 1)
        for start in range(0, len(order), options.parts_a_batch):
            nodes = np.flatnonzero(np.isin(cluster, order[start : start + options.parts_a_batch]))
            rows = np.flatnonzero(np.isin(nodes, source.train))
            if len(rows):
                matrix = source.normalize(source.matrix[nodes][:, nodes])
                yield Batch(source.subgraph(nodes, matrix), rows, nodes[rows], equal(rows))

    return sample


def clusters(matrix: Matrix, *, parts: int) -> Array:
    """Cut a graph into clusters of nearly equal size with few edges between them: (N,) int64, 0 … parts−1.

    Nodes in breadth-first order are cut into equal clusters; then, round by round, nodes move to the cluster that holds
    most of their neighbours, up to a largest size. O(E) a round, plus one (N, parts) sparse product.
    """
    nodes = matrix.shape[0]
    parts = min(parts, nodes)
    part = np.empty(nodes, dtype=np.int64)
    _, component = connected_components(matrix, directed=False)
    starts = np.unique(component, return_index=True)[1]
    order = [breadth_first_order(matrix, start, directed=False, return_predecessors=False) for start in starts]
    part[np.concatenate(order)] = np.arange(nodes) * parts // nodes
    largest = int(np.ceil(SLACK * nodes / parts))
    rounds = 10
    while rounds and move(matrix, part, parts=parts, largest=largest):
        rounds -= 1
    return part


def move(matrix: Matrix, part: Array, *, parts: int, largest: int) -> int:
    """Move nodes to where most of their neighbours are, the surest gains first; return how many moved."""
    nodes = len(part)
    member = sp.csr_array((np.ones(nodes, np.float32), (np.arange(nodes), part)), shape=(nodes, parts))
    links = (matrix @ member).tocsr()  # (N, parts): weight of each node's edges into each cluster
    best = np.asarray(links.argmax(axis=1)).ravel()
    gain = np.asarray(links.max(axis=1).todense()).ravel() - np.asarray(links[np.arange(nodes), part]).ravel()
    size = np.bincount(part, minlength=parts)
    moved = 0
    for node in np.argsort(-gain, kind="stable")[: int((gain > 0).sum())]:
        if size[best[node]] < largest and size[part[node]] > 1:
            size[part[node]] -= 1
            size[best[node]] += 1
            part[node] = best[node]
            moved += 1
    return moved


def walks(source: Source) -> Sampler:
    """Walk from training nodes; the counts behind the normalisation are drawn once, by the first epoch's generator."""
    options = source.options
    matrix = source.normalize(source.matrix)
    numbered = sp.csr_array((np.arange(1, matrix.nnz + 1), matrix.indices, matrix.indptr), shape=matrix.shape)
    counts: list[Array] = []  # in how many drawn subgraphs each node, and each entry of the matrix, lies

    def draw(random: np.random.Generator) -> tuple[Array, Matrix]:
        nodes = walked(matrix, source.train, options=options, random=random)
        return nodes, numbered[nodes][:, nodes]

    def sample(random: np.random.Generator) -> Iterator[Batch]:
        if not counts:
            drawn = [draw(random) for _ in range(options.coverage)]
            counts.append(np.bincount(np.concatenate([nodes for nodes, _ in drawn]), minlength=matrix.shape[0]))
            counts.append(np.bincount(np.concatenate([each.data for _, each in drawn]) - 1, minlength=matrix.nnz))
        node_count, entry_count = counts
        for _ in range(options.batches):
            nodes, inside = draw(random)
            times_edge, times_node = entry_count[inside.data - 1], np.repeat(node_count[nodes], np.diff(inside.indptr))
            correction = np.where(times_edge > 0, times_node / np.maximum(times_edge, 1), 1.0)  # never counted: 1
            values = matrix.data[inside.data - 1] * correction
            weighted = sp.csr_array((values.astype(np.float32), inside.indices, inside.indptr), shape=inside.shape)
            rows = np.flatnonzero(np.isin(nodes, source.train))
            weights = options.coverage / np.maximum(node_count[nodes[rows]], 1) / len(source.train)
            yield Batch(source.subgraph(nodes, weighted), rows, nodes[rows], weights)

    return sample


def walked(matrix: Matrix, roots: Array, *, options: Options, random: np.random.Generator) -> Array:
    """Return the nodes (sorted) that random walks from random roots visit; a walk with no way on stays."""
    here = random.choice(roots, options.walk_roots)
    visited = [here]
    for _ in range(options.walk_length):
        degree = matrix.indptr[here + 1] - matrix.indptr[here]
        entry = matrix.indptr[here] + (random.random(len(here)) * degree).astype(np.int64)
        here = np.where(degree > 0, matrix.indices[np.minimum(entry, matrix.nnz - 1)], here) if matrix.nnz else here
        visited.append(here)
    return np.unique(np.concatenate(visited))
