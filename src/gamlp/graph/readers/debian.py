"""The built-in data set `debian`: the packages of Debian 12, by what they need.

A node is a binary package, an edge joins two packages of which one depends on, recommends or suggests the other, the
features are the words of the one-line description, the label is the archive section. The split goes by popularity: the
packages that most others ask for train, so the test packages are unlike them (docs/debian.md).

Two files, made by scripts/make_debian.py, hold unsigned integers only. Names are joined by line ends; a list of rising
ids per package is its lengths, and each id's step from the one before. Features are made at load: with n packages, d of
them having word w, c times in this one,

    tf-idf = c · (ln((1 + n) / (1 + d)) + 1),   rows to length 1,   then the first F = 128 singular directions.

Cost: a few seconds, most of it the singular vectors; no network, no cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from gamlp.graph.build.assemble import assemble
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.splits import Split
from gamlp.storage.files import Array

DIMENSIONS = 128
TRAIN_SHARE = 0.10
VALID_SHARE = 0.03
TARGET = "package"
KINDS = ("depends", "recommends", "suggests")


def load_debian() -> Graph:
    """Return the graph of packages: features (N, 128), undirected edges of all three kinds, sections as classes."""
    stored = read_stored("debian.npz")
    names = unpack_names(stored["names"])
    edges = [unpack_rows(stored, kind) for kind in KINDS]
    labels, classes = stored["labels"].astype(np.int64), tuple(unpack_names(stored["classes"]).tolist())
    split = split_by_popularity(popularity(edges, len(names)))
    known: dict[str, Any] = {"labels": labels, "classes": classes, "split": split, "names": names}
    return assemble(*np.concatenate(edges, axis=1), features=describe(stored), **known, name="debian")


@dataclass(frozen=True, eq=False)
class DebianParts:
    """What the heterogeneous twin is built from; `package` is the type of the labelled nodes.

    `names` has the names of each type of node, in the order of its ids. A relation is named by what it says of a
    package: source ids are packages, target ids are nodes of the type that `ends` gives.
    """

    names: dict[str, Array]
    ends: dict[str, str]
    relations: dict[str, tuple[Array, Array]]


def read_parts() -> DebianParts:
    """Return packages, maintainers, source packages and tags, and the six relations between them."""
    stored, twin = read_stored("debian.npz"), read_stored("debian-hetero.npz")
    types = {"package": "names", "maintainer": "maintainers", "source": "sources", "tag": "tags"}
    ends = {"maintained_by": "maintainer", "built_from": "source", "has_tag": "tag"}
    packages = np.arange(len(stored["labels"]), dtype=np.int64)
    relations = {kind: unpack_rows(stored, kind) for kind in KINDS}
    relations |= {name: (packages, twin[name].astype(np.int64)) for name in ("maintained_by", "built_from")}
    relations["has_tag"] = unpack_rows(twin, "has_tag")
    names = {kind: unpack_names((stored | twin)[key]) for kind, key in types.items()}
    return DebianParts(names, dict.fromkeys(KINDS, TARGET) | ends, relations)


def load_debian_hetero() -> HeteroGraph:
    """Return `debian-hetero`: the packages with maintainers, sources and tags, which have no features."""
    packages, parts = load_debian(), read_parts()
    types = {kind: TypeParts(len(names), names=names) for kind, names in parts.names.items()}
    known = packages.features, packages.labels, packages.classes, packages.split, packages.names
    types[TARGET] = TypeParts(packages.nodes, *known)
    relations = {name: RelationParts(TARGET, parts.ends[name], *ends) for name, ends in parts.relations.items()}
    return assemble_hetero(types, relations, target=TARGET, name="debian-hetero")


def popularity(edges: Sequence[tuple[Array, Array]], nodes: int) -> Array:
    """Return how many packages ask for each, (N,): whoever depends on, recommends or suggests it counts once."""
    pairs = np.unique(np.concatenate([source * nodes + target for source, target in edges]))
    return np.bincount(pairs % nodes, minlength=nodes)


def split_by_popularity(count: Array) -> Split:
    """Most asked for first, equals by number: 10 % train, the next 3 % validate, the rest test."""
    order = np.argsort(-count, kind="stable")
    train, valid = round(TRAIN_SHARE * len(order)), round(VALID_SHARE * len(order))
    return Split(*(np.sort(ids).astype(np.int64) for ids in np.split(order, [train, train + valid])))


def describe(stored: Mapping[str, Array]) -> Array:
    """Return the features (N, 128) float32: tf-idf of the description's words, along its main directions."""
    from scipy.sparse import csr_array
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    package, word = unpack_rows(stored, "word")
    size = (len(stored["labels"]), len(unpack_names(stored["words"])))
    counts = csr_array((stored["word_counts"].astype(np.float32), (package, word)), shape=size)
    weighted = TfidfTransformer().fit_transform(counts)
    directions = TruncatedSVD(DIMENSIONS, n_iter=4, random_state=0)
    with threadpool_limits(1):  # the same bits on any number of cores; more threads gain nothing on these thin matrices
        return np.ascontiguousarray(directions.fit_transform(weighted), dtype=np.float32)


def read_stored(name: str) -> dict[str, Array]:
    """Read every array of one of the files that come with the package."""
    path = resources.files("gamlp.graph").joinpath("data", name)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def unpack_names(joined: Array) -> Array:
    """Split names at the line ends."""
    return np.array(joined.tobytes().decode().split("\n"))


def unpack_rows(stored: Mapping[str, Array], name: str) -> tuple[Array, Array]:
    """Return the row and the id of each entry, from the rows' lengths and the steps between their ids."""
    lengths = stored[f"{name}_lengths"].astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(stored[f"{name}_steps"], dtype=np.int64)])
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows, sums[1:] - sums[starts][rows]
