"""Features for node types that came without any.

    neighbours   the mean of the neighbours' features, type by type outwards from those that have some
    embeddings   embeddings trained on the relations as triples (head, relation, tail), see `gamlp.embed`
    zeros        nothing: a node passes on what reaches it, and has nothing to say of its own

Neighbours cost one pass over the edges of each such type: O(E·F).
"""

from __future__ import annotations

import numpy as np

from gamlp.errors import ShapeError
from gamlp.graph.graph import Adjacency
from gamlp.graph.hetero import HeteroGraph, NodeType
from gamlp.storage.files import Array


def from_neighbours(graph: HeteroGraph) -> Array:
    """Return features (N, F) in which every node of a type without features has its neighbours' mean.

    Each round fills the types that have known neighbours; a node without any keeps zeros.
    """
    features = np.array(check_some(graph).features, dtype=np.float32)
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


def check_some(graph: HeteroGraph) -> HeteroGraph:
    """Refuse a graph in which no type has features; return it."""
    if not graph.features.shape[1]:
        raise ShapeError("No type of nodes has features.\nUse featureless=embeddings, or give some type features.")
    return graph


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
