"""Features for every node: those that came, and others for a graph, or for types of nodes, that came without any.

A graph without any features has those of `propagate.structure`.

Embeddings are trained once for a graph and its settings, with a fixed seed, and kept in the cache: all seeds of a run
share their hops. They are as wide as the features unless told otherwise; where they are wider, the features are
projected to their width at random. Embeddings made elsewhere can be given instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.embed.settings import EmbeddingSettings, embedding_settings_from
from gamlp.errors import ShapeError
from gamlp.graph.build.hetero_assemble import projected
from gamlp.graph.graph import Graph, check_features
from gamlp.graph.hetero import HeteroGraph, from_neighbours
from gamlp.progress import log
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.structure import structure_features, width_of_structure
from gamlp.storage.files import Array, digest, read_array


def filled_features(graph: Graph, settings: Any, engine: Engine, *, cache: Path | None = None) -> Array:
    """Return the features of all nodes, (N, F')."""
    if not graph.features.shape[1] and (settings.featureless != "embeddings" or not graph.types):
        apart = getattr(settings, "structure", "sum") == "apart"
        return structure_features(engine, graph.adjacency, graph.names, apart=apart)
    return check_filling(graph, settings, cache=cache)()


def filled_width(graph: Graph, settings: Any) -> int:
    """Return how many features there will be, F', without making any."""
    width = int(graph.features.shape[1])
    if not width and (settings.featureless != "embeddings" or not graph.types):
        return width_of_structure(apart=getattr(settings, "structure", "sum") == "apart")
    if settings.featureless != "embeddings" or all(kind.described for kind in graph.types):
        return width
    typed = graph.need_relations()
    if settings.embedding_file:
        return max(width, int(embedding_rows(Path(settings.embedding_file)).shape[-1]))
    return max(width, embedding_settings(typed, settings).dimension)


def check_filling(graph: Graph, settings: Any, *, cache: Path | None = None) -> Callable[[], Array]:
    """Refuse what could not be filled, before anything is trained; return the function that fills."""
    if all(kind.described for kind in graph.types):  # plain graphs have no types
        return lambda: graph.features
    typed = graph.need_relations()
    if settings.featureless != "embeddings":
        return partial(from_neighbours, typed) if settings.featureless == "neighbours" else lambda: typed.features
    if settings.embedding_file:
        return partial(with_rows, typed, given_embeddings(typed, Path(settings.embedding_file)))
    how = embedding_settings(typed, settings)
    return lambda: with_rows(typed, trained_embeddings(typed, how, cache=cache))


def embedding_settings(graph: HeteroGraph, settings: Any) -> EmbeddingSettings:
    """Return how embeddings are trained: as wide as the features, unless the settings say otherwise."""
    width = graph.features.shape[1]
    usual = {"dimension": width + width % 2} if width else {}
    return embedding_settings_from({**usual, **settings.embedding})


def given_embeddings(graph: HeteroGraph, path: Path) -> Array:
    """Read embeddings made elsewhere, (N, d): a .npy, or the folder that gamlp embed made."""
    rows = embedding_rows(path)
    if rows.ndim != 2 or len(rows) != graph.nodes:
        order = ", ".join(f"{kind.nodes:,} of {kind.name}" for kind in graph.types)
        raise ShapeError(
            f"{path} holds an array {rows.shape}, the graph has {graph.nodes:,} nodes.\n"
            f"Expected one row per node, in this order: {order}."
        )
    check_features(rows, graph.nodes)
    return rows


def embedding_rows(path: Path) -> Array:
    """Map what is in the file, or in the folder that gamlp embed made."""
    return read_array(path / "entities.npy" if path.is_dir() else path, memory_map=True)


def trained_embeddings(graph: HeteroGraph, settings: EmbeddingSettings, *, cache: Path | None) -> Array:
    """Train an embedding for every node on the triples (head, relation, tail), or find it in the cache; (N, d)."""
    from gamlp.embed import train_embeddings, triples_from

    triples = triples_from(graph)
    place = None if cache is None else cache / f"embeddings-{digest(triples.fingerprint(), settings.model_dump_json())}"
    found = train_embeddings(triples, settings, seed=0, folder=place)
    if found.scores is not None:
        log.info("embeddings: %s", found.scores)
    return found.entities


def with_rows(graph: HeteroGraph, rows: Array) -> Array:
    """Return the features, and `rows` for every node of a type without any; (N, the larger width)."""
    width = max(graph.features.shape[1], rows.shape[1])
    features = np.empty((graph.nodes, width), np.float32)
    for kind in graph.types:
        place = slice(kind.start, kind.stop)
        values = graph.features[place] if kind.described else rows[place]
        features[place] = values if values.shape[1] == width else projected(values, width, key=kind.name)
    return features
