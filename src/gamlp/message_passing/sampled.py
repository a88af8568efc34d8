"""What one epoch trains on: the whole graph, sampled neighbours, clusters, random parts or random walks.

A sampler is made once for a fit and called once an epoch with a random generator and the nodes to learn from; it yields
batches.

    whole       every node, one step an epoch
    neighbours  a batch of training nodes and `fanout` neighbours of each, for each layer (GraphSAGE, UniMP)
    clustered   a few clusters and the edges within and between them, normalised anew (Cluster-GCN)
    dealt       all nodes at random into `parts`, anew each epoch, and the edges within a part (DeeperGCN)
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
    """A view, the ids of its nodes, and the training nodes among them: their rows and weights in the loss, a sum."""

    view: Any  # a View or a TypedView
    ids: Array
    rows: Array
    weights: Array

    @property
    def nodes(self) -> Array:
        """The ids of the training nodes."""
        return self.ids[self.rows]


@dataclass(frozen=True, eq=False)
class Source:
    """What samplers draw from: scaled features (N, F), A (N, N), its normalisation."""

    features: Any
    matrix: Matrix
    normalize: Callable[[Matrix], Matrix]
    options: Options
    device: str = "cpu"

    @property
    def nodes(self) -> int:
        """N, the number of nodes."""
        return int(self.matrix.shape[0])

    @cached_property
    def view(self) -> View:
        """The whole graph, as training and evaluation on it see it."""
        return view_of(self.features, self.normalize(self.matrix), self.device)

    def subgraph(self, nodes: Array, matrix: Matrix) -> View:
        """Some nodes and the normalised matrix between them."""
        return view_of(self.features[nodes], matrix, self.device)

    def part(self, nodes: Array, train: Array) -> Batch | None:
        """Some nodes (sorted) and the edges between them, normalised anew; None without a training node."""
        rows = np.flatnonzero(np.isin(nodes, train))
        if not len(rows):
            return None
        return Batch(self.subgraph(nodes, self.normalize(self.matrix[nodes][:, nodes])), nodes, rows, equal(rows))


Sampler = Callable[[np.random.Generator, Array], Iterator[Batch]]
Draw = Callable[[Array, np.random.Generator], tuple[Array, Any]]


def whole(source: Any) -> Sampler:
    """One batch: the whole graph."""
    ids = np.arange(source.nodes)
    return lambda random, train: iter([Batch(source.view, ids, train, equal(train))])


def equal(nodes: Array) -> Array:
    """Return the weights of a plain mean."""
    return np.full(len(nodes), 1 / len(nodes))


def around_batches(source: Any, draw: Draw) -> Sampler:
    """Deal the training nodes into batches; `draw` returns the nodes (sorted) and the view that it takes around one."""

    def sample(random: np.random.Generator, train: Array) -> Iterator[Batch]:
        order, size = random.permutation(train), source.options.batch_size
        for start in range(0, len(order), size):
            seeds = np.sort(order[start : start + size])
            nodes, view = draw(seeds, random)
            yield Batch(view, nodes, np.searchsorted(nodes, seeds), equal(seeds))

    return sample


def neighbours(source: Source) -> Sampler:
    """Sample around batches of training nodes; small graphs are taken whole."""
    options = source.options
    if source.nodes <= options.full_batch_up_to:
        return whole(source)
    matrix = source.normalize(source.matrix)

    def draw(seeds: Array, random: np.random.Generator) -> tuple[Array, View]:
        nodes, drawn = around(matrix, seeds, layers=options.layers, fanout=options.fanout, random=random)
        return nodes, source.subgraph(nodes, drawn)

    return around_batches(source, draw)


def around(
    matrix: Matrix, seeds: Array, *, layers: int, fanout: int, random: np.random.Generator
) -> tuple[Array, Matrix]:
    """Draw entries of each row reached; return the nodes (sorted) and their matrix, the sum over a row unbiased."""
    reached, frontier = seeds, seeds
    drawn: list[tuple[Array, Array, Array]] = []
    for _ in range(layers):
        entries, which, times = some_entries(matrix.indptr, frontier, fanout, random)
        drawn.append((matrix.data[entries] * times, frontier[which], matrix.indices[entries]))
        frontier = np.setdiff1d(matrix.indices[entries], reached)
        reached = np.union1d(reached, frontier)
    values, rows, columns = (np.concatenate(each) for each in zip(*drawn, strict=True))
    place = np.searchsorted(reached, rows), np.searchsorted(reached, columns)
    return reached, sp.coo_array((values.astype(np.float32), place), shape=(len(reached), len(reached))).tocsr()


def some_entries(offsets: Array, rows: Array, count: int, random: np.random.Generator) -> tuple[Array, Array, Array]:
    """Draw `count` different entries of each row of a CSR matrix, or all where there are no more.

    Returns the entries, the place of each one's row in `rows`, and how often it counts: d / count, of d entries.
    """
    degree = offsets[rows + 1] - offsets[rows]
    count = min(count, int(degree.max(initial=1)))
    places = np.tile(np.arange(count), (len(rows), 1))
    many = np.flatnonzero(degree > count)
    for number in range(count):  # Floyd's draw: a place that is taken gives way to the last one
        last = degree[many] - count + number
        place = (random.random(len(many)) * (last + 1)).astype(np.int64)
        taken = (places[many, :number] == place[:, None]).any(axis=1)
        places[many, number] = np.where(taken, last, place)
    there = places < degree[:, None]
    which = np.nonzero(there)[0]
    times = degree / np.maximum(np.minimum(degree, count), 1)
    return offsets[rows][which] + places[there], which, times[which]


def clustered(source: Source) -> Sampler:
    """Group the clusters anew each epoch; groups without a training node are passed over."""
    options = source.options
    cluster = clusters(source.matrix, parts=options.parts)

    def sample(random: np.random.Generator, train: Array) -> Iterator[Batch]:
        order = random.permutation(int(cluster.max()) + 1)
        for start in range(0, len(order), options.parts_a_batch):
            nodes = np.flatnonzero(np.isin(cluster, order[start : start + options.parts_a_batch]))
            if batch := source.part(nodes, train):
                yield batch

    return sample


def dealt(source: Source) -> Sampler:
    """Deal the nodes into random parts anew each epoch; parts without a training node are passed over."""
    parts = source.options.parts
    if parts == 1:
        return whole(source)

    def sample(random: np.random.Generator, train: Array) -> Iterator[Batch]:
        dealt_to = random.integers(parts, size=source.nodes)
        for part in range(parts):
            if batch := source.part(np.flatnonzero(dealt_to == part), train):
                yield batch

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

    def draw(random: np.random.Generator, train: Array) -> tuple[Array, Matrix]:
        nodes = walked(matrix, train, options=options, random=random)
        return nodes, numbered[nodes][:, nodes]

    def sample(random: np.random.Generator, train: Array) -> Iterator[Batch]:
        if not counts:
            drawn = [draw(random, train) for _ in range(options.coverage)]
            counts.append(np.bincount(np.concatenate([nodes for nodes, _ in drawn]), minlength=matrix.shape[0]))
            counts.append(np.bincount(np.concatenate([each.data for _, each in drawn]) - 1, minlength=matrix.nnz))
        node_count, entry_count = counts
        for _ in range(options.batches):
            nodes, inside = draw(random, train)
            times_edge, times_node = entry_count[inside.data - 1], np.repeat(node_count[nodes], np.diff(inside.indptr))
            correction = np.where(times_edge > 0, times_node / np.maximum(times_edge, 1), 1.0)  # never counted: 1
            values = matrix.data[inside.data - 1] * correction
            weighted = sp.csr_array((values.astype(np.float32), inside.indices, inside.indptr), shape=inside.shape)
            rows = np.flatnonzero(np.isin(nodes, train))
            weights = options.coverage / np.maximum(node_count[nodes[rows]], 1) / len(train)
            yield Batch(source.subgraph(nodes, weighted), nodes, rows, weights)

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
