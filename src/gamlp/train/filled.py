"""Features for every node of a heterogeneous graph: those that came, and others for types that came without any.

Embeddings are trained once for a graph and its settings, with a fixed seed, and kept in the cache: all seeds of a run
share their hops. They are as wide as the features unless told otherwise; where they are wider, the features are
projected to their width at random.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gamlp.embed.settings import EmbeddingSettings, embedding_settings_from
from gamlp.files import Array, digest
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.hetero_assemble import projected
from gamlp.graph.hetero_features import from_neighbours
from gamlp.progress import log
from gamlp.settings import Settings

SEED = 0


def filled_features(graph: Graph, settings: Settings, *, cache: Path | None = None) -> Array:
    """Return the features of all nodes, (N, F')."""
    if not isinstance(graph, HeteroGraph) or all(kind.described for kind in graph.types):
        return graph.features
    if settings.featureless == "neighbours":
        return from_neighbours(graph)
    if settings.featureless == "embeddings":
        return with_embeddings(graph, embedding_settings(graph, settings), cache=cache)
    return graph.features


def embedding_settings(graph: HeteroGraph, settings: Settings) -> EmbeddingSettings:
    """Return how embeddings are trained: as wide as the features, unless the settings say otherwise."""
    width = graph.features.shape[1]
    usual = {"dimension": width + width % 2} if width else {}
    return embedding_settings_from({**usual, **settings.embedding})


def with_embeddings(graph: HeteroGraph, settings: EmbeddingSettings, *, cache: Path | None) -> Array:
    """Return the features with a trained embedding for every node of a type without; (N, max(F, dimension))."""
    from gamlp.embed.train import train_embeddings
    from gamlp.embed.triples import Triples

    used = [one for one in graph.relations if len(one.heads)]
    triples = Triples(
        heads=np.concatenate([one.heads for one in used]),
        relations=np.repeat(np.arange(len(used)), [len(one.heads) for one in used]),
        tails=np.concatenate([one.tails for one in used]),
        entities=graph.nodes,
        relation_names=tuple(one.name for one in used),
    )
    place = None if cache is None else cache / f"embeddings-{digest(triples.fingerprint(), settings.model_dump_json())}"
    found = train_embeddings(triples, settings, seed=SEED, folder=place)
    if found.scores is not None:
        log.info("embeddings: %s", found.scores)
    width = max(graph.features.shape[1], settings.dimension)
    features = np.empty((graph.nodes, width), np.float32)
    for kind in graph.types:
        rows = slice(kind.start, kind.stop)
        values = graph.features[rows] if kind.described else found.entities[rows]
        features[rows] = values if values.shape[1] == width else projected(values, width, key=kind.name)
    return features
