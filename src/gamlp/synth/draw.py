"""Generated graphs: shapes of known data sets; nodes and edges as functions of (seed, number), drawn in any order.

The sizes of a shape are the published ones (see `graph.datasets`), edges before symmetrising. What no table states, how
skewed degrees are and how often neighbours share a class, is chosen: the graphs are for measuring, not for accuracy.

Batch b of a kind comes from a generator seeded with (seed, kind, b). Node i lies in community i // size; a community's
class is a hash of its number. An edge starts anywhere, at node N·u^skew of a fixed shuffling of the nodes, and ends

    inside its community with probability `inside`, at another community of its class with `same_class`, else anywhere,

so degrees are skewed, neighbours are near in number or far, and alike in class or not, in known proportions. With a
`homophily` h a share h of the edges joins two nodes of one class, and the others a node with one of the next class, the
last class with the first: where h is small neighbours differ, and still tell the class.
The shuffling is i ↦ (a·i + b) mod N with a coprime to N: no table of N numbers is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar

import numpy as np

from gamlp.errors import SettingsError, did_you_mean
from gamlp.graph.build.sorting import Edges
from gamlp.storage.files import Array
from gamlp.storage.numba_cache import cached_njit

BATCH = 2**20  # edges, or nodes, drawn at a time: part of what a seed means
KINDS = {"edges": 1, "features": 2, "split": 3, "means": 4}


@dataclass(frozen=True)
class SynthShape:
    """What a generated graph looks like."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    train: float  # shares of all nodes
    valid: float
    test: float
    community: int = 200  # nodes, neighbours in number, of one class
    inside: float = 0.6  # share of edges within a community
    same_class: float = 0.2  # share of edges to another community of the same class
    skew: float = 2.0  # an end is node N·u^skew, u uniform: 1 is even, 2 has hubs
    signal: float = 0.5  # length of a class's mean beside noise of 1 in each feature
    homophily: float | None = None  # share of edges within a class, the others to the next class; None = as above

    def with_homophily(self, share: float) -> SynthShape:
        """Return the shape with so many edges within a class, and communities that every class has some of."""
        return replace(self, homophily=share, community=max(1, min(10, self.nodes // (20 * self.classes))))

    def scaled(self, scale: float) -> SynthShape:
        """Return the shape with `scale` times the nodes and edges."""
        nodes, edges = max(2 * self.classes, round(self.nodes * scale)), max(1, round(self.edges * scale))
        return replace(self, nodes=nodes, edges=edges)


KNOWN = (
    SynthShape("products", 2_449_029, 61_859_140, 100, 47, 0.08, 0.016, 0.904),
    SynthShape("papers100M", 111_059_956, 1_615_685_872, 128, 172, 0.0109, 0.0011, 0.0019),
    SynthShape("video", 1_000_000, 1_434_382, 64, 253, 0.005, 0.01, 0.03),  # the KDD version's industry graph
    SynthShape("mag", 1_939_743, 21_111_007, 128, 349, 0.325, 0.033, 0.0216),
)
SHAPES = {shape.name: shape for shape in KNOWN}


def shape_named(name: str) -> SynthShape:
    """Return a shape by its name, in upper or lower case."""
    found = {known.lower(): shape for known, shape in SHAPES.items()}.get(name.lower())
    if found is None:
        raise SettingsError(f"There is no shape '{name}'.\n{did_you_mean(name, SHAPES)}")
    return found


@dataclass(frozen=True)
class Drawing:
    """A shape and a seed: everything about the graph follows. It is a stream of edges (`EdgeStream`), too."""

    shape: SynthShape
    seed: int = 0
    weighted: ClassVar[bool] = False

    @property
    def estimate(self) -> int:
        """How many edges there are."""
        return self.shape.edges

    @property
    def key(self) -> str:
        """Say what is drawn."""
        return f"synth {self}"

    def batches(self, skip: int) -> Iterator[Edges]:
        """Draw batch after batch of the edges; whole ones are skipped without being drawn."""
        for batch in range(skip // BATCH, -(-self.shape.edges // BATCH)):
            drop = max(0, skip - batch * BATCH)
            source, target = self.ends(batch)
            yield source[drop:], target[drop:], None

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
        if shape.homophily is not None:
            classes = (self.labels(source) + (kind >= shape.homophily)) % shape.classes
            return source, self._of_class(classes, place)
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


def _coprime(start: int, nodes: int) -> int:
    return next(factor for factor in range(max(1, start), max(1, start) + nodes + 1) if gcd(factor, nodes) == 1)
