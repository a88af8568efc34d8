"""Nodes and edges as functions of (seed, number): any batch can be drawn by itself, and again.

Batch b of a kind comes from a generator seeded with (seed, kind, b). Node i lies in community i // size; a community's
class is a hash of its number. An edge starts anywhere, at node N·u^skew of a fixed shuffling of the nodes, and ends

    inside its community with probability `inside`, at another community of its class with `same_class`, else anywhere,

so degrees are skewed, neighbours are near in number or far, and alike in class or not, in known proportions.
The shuffling is i ↦ (a·i + b) mod N with a coprime to N: no table of N numbers is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

import numpy as np

from gamlp.graph.build.sorting import Edges
from gamlp.storage.files import Array
from gamlp.storage.numba_cache import cached_njit
from gamlp.synth.shapes import SynthShape

BATCH = 2**20  # edges, or nodes, drawn at a time: part of what a seed means
KINDS = {"edges": 1, "features": 2, "split": 3, "means": 4}


@dataclass(frozen=True)
class Drawing:
    """A shape and a seed: everything about the graph follows."""

    shape: SynthShape
    seed: int = 0

    def random(self, kind: str, number: int = 0) -> np.random.Generator:
        """Return the generator of one batch."""
        return np.random.default_rng([self.seed, KINDS[kind], number])

    def labels(self, nodes: Array) -> Array:
        """Return the classes of nodes, int64."""
        return np.asarray(_classes(nodes // self.shape.community, self.seed, self.shape.classes))

    def features(self, batch: int) -> Array:
        """Return the features of nodes batch·BATCH …, float32: their class's mean and noise."""
        first = batch * BATCH
        nodes = np.arange(first, min(first + BATCH, self.shape.nodes))
        width = self.shape.features
        means = self.random("means").standard_normal((self.shape.classes, width), dtype=np.float32)
        means *= np.float32(self.shape.signal) / np.sqrt(np.float32(width)) * 4
        values = self.random("features", batch).standard_normal((len(nodes), width), dtype=np.float32)
        values += means[self.labels(nodes)]
        return values

    def sets(self, batch: int) -> Array:
        """Return 0 train, 1 valid, 2 test or −1 for nodes batch·BATCH …, int8."""
        shape, first = self.shape, batch * BATCH
        draws = self.random("split", batch).random(min(BATCH, shape.nodes - first))
        cuts = np.cumsum([shape.train, shape.valid, shape.test])
        found = np.searchsorted(cuts, draws, side="right").astype(np.int8)
        found[found == 3] = -1
        return found

    def ends(self, batch: int) -> tuple[Array, Array]:
        """Return sources and targets of edges batch·BATCH …, int64."""
        shape, random = self.shape, self.random("edges", batch)
        count = min(BATCH, shape.edges - batch * BATCH)
        source = self._anywhere(random.random(count))
        target = self._anywhere(random.random(count))
        kind, place = random.random(count), random.random(count)
        inside = kind < shape.inside
        first = source[inside] // shape.community * shape.community
        size = np.minimum(first + shape.community, shape.nodes) - first
        target[inside] = first + (place[inside] ** 2 * size).astype(np.int64)
        alike = (kind >= shape.inside) & (kind < shape.inside + shape.same_class)
        target[alike] = self._of_class(self.labels(source[alike]), place[alike])
        return source, target

    def _anywhere(self, draws: Array) -> Array:
        nodes = self.shape.nodes
        rank = np.minimum((nodes * draws**self.shape.skew).astype(np.int64), nodes - 1)
        factor = _coprime(int(nodes * 0.6180339887), nodes)
        high, low = np.divmod(rank, 2**20)  # (a · rank) mod N without passing 2⁶³
        return np.asarray((high * factor % nodes * 2**20 + low * factor) % nodes)

    def _of_class(self, labels: Array, draws: Array) -> Array:
        """Return a node of each class: of the next community of that class from a place on, or of the last tried."""
        shape = self.shape
        communities = -(-shape.nodes // shape.community)
        at = (draws * communities).astype(np.int64)
        _seek(at, labels, communities, self.seed, shape.classes)
        inside = (draws * communities % 1 * shape.community).astype(np.int64)
        return np.asarray(np.minimum(at * shape.community + inside, shape.nodes - 1))


@cached_njit
def _class_of(community: int, seed: int, classes: int) -> int:
    mixed = (np.uint64(community) + np.uint64(seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((mixed >> np.uint64(33)) % np.uint64(classes))  # type: ignore[return-value]


@cached_njit
def _classes(communities: Array, seed: int, classes: int) -> Array:
    found = np.empty(len(communities), np.int64)
    for i in range(len(communities)):
        found[i] = _class_of(communities[i], seed, classes)
    return found


@cached_njit
def _seek(at: Array, labels: Array, communities: int, seed: int, classes: int) -> None:
    """Move each place on to a community of its class."""
    for i in range(len(at)):
        for _ in range(4 * classes):
            if _class_of(at[i], seed, classes) == labels[i]:
                break
            at[i] = (at[i] + 1) % communities


class DrawnEdges:
    """The edges of a drawing as a source of edges."""

    weighted = False

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.estimate: int | None = drawing.shape.edges

    @property
    def key(self) -> str:
        """Say what is drawn."""
        return f"synth {self.drawing}"

    def batches(self, skip: int) -> Iterator[Edges]:
        """Draw batch after batch; whole ones are skipped without being drawn."""
        for batch in range(skip // BATCH, -(-self.drawing.shape.edges // BATCH)):
            drop = max(0, skip - batch * BATCH)
            source, target = self.drawing.ends(batch)
            yield source[drop:], target[drop:], None


def _coprime(start: int, nodes: int) -> int:
    return next(factor for factor in range(max(1, start), max(1, start) + nodes + 1) if gcd(factor, nodes) == 1)
