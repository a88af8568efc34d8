"""Feature hops for a run, computed once and shared by its seeds and by every method of a comparison."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.splits import Split
from gamlp.propagate import Normalization
from gamlp.propagate.cache import Writer, cached_propagate, propagate_into
from gamlp.propagate.hops import Hops
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.subset_hops import first_hops, subset_hops
from gamlp.propagate.subsets import Subset, subsets_of
from gamlp.settings import Settings
from gamlp.storage.files import Array
from gamlp.train.featureless import filled_features


class Workshop:
    """Makes hops, and keeps the last ones: the next seed or method often needs the same, or fewer hops of them."""

    def __init__(
        self,
        graph: Graph,
        *,
        cache: Path | None = None,
        device: str = "cpu",
        memory: int | None = None,
        write: Writer | None = None,
    ) -> None:
        """With `memory`, hops are computed on disk, in the cache, within so many bytes, or by `write`."""
        self.graph, self.memory, self.write = graph, memory, write
        self.cache = cache
        self.keep: Path | None = None  # where embeddings are kept without a cache: beside the run that needs them
        self.device = device
        self._key: tuple[object, ...] | None = None
        self._hops: Hops | None = None
        self._features: dict[str, Array] = {}
        self._scalings: dict[tuple[object, ...], Scaling] = {}

    def features(self, settings: Settings) -> Array:
        """Return the features of all nodes; types that came without any are filled once for each way to do so."""
        if not isinstance(self.graph, HeteroGraph):
            return self.graph.features
        way = filling(settings)
        if way not in self._features:
            self._features[way] = filled_features(self.graph, settings, cache=self.cache or self.keep)
        return self._features[way]

    def with_features(self, graph: Graph) -> Graph:
        """Return a graph of ours with features for all nodes, as methods read it that do not propagate beforehand."""
        if not isinstance(graph, HeteroGraph):
            return graph
        way = Settings(featureless="neighbours" if graph.features.shape[1] else "embeddings")
        return replace(graph, features=self.features(way))

    def scaling(self, settings: Settings) -> Scaling:
        """Return what is done to the features first, measured once for each kind."""
        kind = (settings.feature_scaling, settings.components, filling(settings))
        if kind not in self._scalings:
            features = self.features(settings)
            self._scalings[kind] = Scaling.fit(settings.feature_scaling, features, components=settings.components)
        return self._scalings[kind]

    def scaled(self, settings: Settings) -> Any:
        """Return the features, to be scaled as they are read; those of relation subsets, scaled."""
        scaling, features = self.scaling(settings), self.features(settings)
        return scaling(features) if settings.relations == "subsets" else scaling.seen(features)

    def subsets(self, settings: Settings) -> tuple[Subset, ...]:
        """Return the relation subsets of a method that has any."""
        if settings.relations == "merged":
            return ()
        return subsets_of(needed_relations(self.graph), settings.subsets)

    def hops(self, settings: Settings, split: Split) -> Hops:
        """Return the hops that these settings ask for."""
        rows = wanted_rows(self.graph, split, settings)
        stationary = settings.combiner == "smoothing"
        key = (
            settings.feature_scaling,
            settings.components,
            settings.normalization,
            settings.self_loops,
            settings.storage,
            None if rows is None else rows.tobytes(),
            filling(settings),
            self.subsets(settings),
            settings.subset_memory,
        )
        kept = self._hops
        if kept is None or key != self._key or kept.count < settings.hops or (stationary and kept.stationary is None):
            self._hops = None  # let the old ones go before the new ones are made
            kept = self._hops = self._compute(settings, rows, stationary=stationary)
            self._key = key
        limit = kept.stationary if stationary else None
        return Hops(first_hops(kept, settings.hops + 1), kept.rows, limit, kept.key)

    def hops_at(
        self, settings: Settings, split: Split, *, rows: Array | None, out: Path | None, overwrite: bool = False
    ) -> Hops:
        """Return the hops of these rows, or of those the settings ask for, in the folder `out` or in the cache."""
        options: dict[str, Any] = {
            "hops": settings.hops,
            "normalization": Normalization(settings.normalization, settings.self_loops),
            "rows": wanted_rows(self.graph, split, settings) if rows is None else rows,
            "stationary": settings.combiner == "smoothing",
            "storage": settings.storage,
        }
        if settings.relations == "subsets":
            raise SettingsError("Hops of relation subsets are kept in a cache alone.\nUse --cache, and no --rows FILE.")
        features = self.scaled(settings)
        if out is None:
            return cached_propagate(
                self.cache, self.graph.adjacency, features, memory=self.memory, write=self.write,
                device=self.device, **options
            )  # fmt: skip
        return propagate_into(
            out,
            self.graph.adjacency,
            features,
            memory=self.memory,
            write=self.write,
            device=self.device,
            overwrite=overwrite,
            **options,
        )

    def _compute(self, settings: Settings, rows: Array | None, *, stationary: bool) -> Hops:
        features = self.scaled(settings)
        normalization = Normalization(settings.normalization, settings.self_loops)
        if settings.relations == "subsets":
            assert rows is not None
            return subset_hops(
                needed_relations(self.graph),
                features,
                self.subsets(settings),
                hops=settings.hops,
                rows=rows,
                cache=self.cache,
                budget=settings.subset_memory,
                memory=self.memory,
                write=self.write,
                stationary=stationary,
                storage=settings.storage,
                normalization=normalization,
                device=self.device,
            )
        return cached_propagate(
            self.cache,
            self.graph.adjacency,
            features,
            memory=self.memory,
            write=self.write,
            hops=settings.hops,
            normalization=normalization,
            rows=rows,
            stationary=stationary,
            storage=settings.storage,
            device=self.device,
        )


def filling(settings: Settings) -> str:
    """Name the way in which types without features get some."""
    if settings.featureless != "embeddings":
        return settings.featureless
    return f"embeddings {settings.embedding_file or settings.embedding}"


def needed_relations(graph: Graph) -> HeteroGraph:
    """Return the graph as one with relations, or say that it has none."""
    if not isinstance(graph, HeteroGraph):
        raise SettingsError(
            f"{graph.name} has one kind of nodes and edges, and so no relation subsets.\n"
            "Use a method for plain graphs: gamlp-jk instead of nars-gamlp-jk, sign instead of nars, …"
        )
    return graph


def wanted_rows(graph: Graph, split: Split, settings: Settings) -> Array | None:
    """Return the nodes whose hops are kept, None = all: those of the split, or all that can have a label."""
    if settings.rows == "labelled":
        return labelled_rows(split)
    return target_rows(graph) if isinstance(graph, HeteroGraph) else None


def target_rows(graph: Graph) -> Array:
    """Return the nodes that can have a label: all, or of several types those of the target type."""
    return np.arange(graph.target.stop if isinstance(graph, HeteroGraph) else graph.nodes)


def labelled_rows(split: Split) -> Array:
    """Return the nodes of the split, sorted: all that training and evaluation read."""
    return np.sort(np.concatenate([split.train, split.valid, split.test]))


def check_device(name: str) -> None:
    """Refuse a device that cannot train, or is not there."""
    if name == "cpu":
        return
    from gamlp.propagate.cuda import torch_device

    if not isinstance(name, str) or not name.startswith(("cpu", "cuda", "mps", "xpu")):
        raise SettingsError(f"There is no device {name!r}.\nUse 'cpu', or 'cuda' where there is one.")
    torch_device(name)
