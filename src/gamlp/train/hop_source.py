"""From a graph to the hops that a network reads: fill featureless types, scale, propagate.

    features  →  filled (types that came without any)  →  scaled  →  X, ÂX, …, ÂᴷX    of the rows that are wanted

Computed once: the last hops are kept, and the next seed or method often needs the same, or fewer of them. The graph of
training measures the scaling and draws the relation subsets; other graphs are treated with what was measured there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.model.registry import combiner_named
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.hops import Hops
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.spec import Propagation
from gamlp.propagate.subsets import Subset, first_hops, subset_hops, subsets_of
from gamlp.settings import Settings
from gamlp.storage.files import Array
from gamlp.train.distributed import ranks
from gamlp.train.featureless import filled_features


class HopSource:
    """Makes features, scalings and hops on an engine, and keeps the last of each.

    `work` is a folder for what is worth keeping without a cache, such as trained embeddings.
    """

    def __init__(self, engine: Engine, *, work: Path | None = None) -> None:
        self.engine, self.work = engine, work
        self._kept: dict[str, tuple[tuple[object, ...], Any]] = {}

    def features(self, graph: Graph, settings: Any) -> Array:
        """Return the features of all nodes (N, F); types that came without any are filled."""
        key = (Same(graph.features), Same(graph.adjacency), featureless_key(settings))
        place = self.engine.cache or self.work
        return self._keep("features", key, lambda: filled_features(graph, settings, cache=place))  # type: ignore[no-any-return]

    def scaling(self, graph: Graph, settings: Settings) -> Scaling:
        """Measure what is done to the features first."""
        features = self.features(graph, settings)
        key = (Same(features), settings.feature_scaling, settings.components)
        return self._keep(  # type: ignore[no-any-return]
            "scaling",
            key,
            lambda: Scaling.fit(settings.feature_scaling, features, components=settings.components),
        )

    def hops(
        self,
        graph: Graph,
        settings: Settings,
        rows: Array | None,
        *,
        scaling: Scaling,
        subsets: tuple[Subset, ...] = (),
    ) -> Hops:
        """Return the hops of `rows`, of `subsets` where there are any."""
        spec = propagation_of(settings, rows)
        key = (
            *(Same(graph.adjacency), Same(scaling), settings.normalization, settings.self_loops, settings.storage),
            *(None if rows is None else rows.tobytes(), featureless_key(settings), subsets, settings.subset_memory),
        )
        known, kept = self._kept.get("hops", ((), None))
        usable = known == key and kept.count >= spec.hops and not (spec.stationary and kept.stationary is None)
        if not usable:
            self._kept.pop("hops", None)  # let the old ones go before the new ones are made
            kept = ranks().in_turn(lambda: self._compute(graph, settings, spec, scaling, subsets))
            self._kept["hops"] = (key, kept)
        limit = kept.stationary if spec.stationary else None
        return Hops(first_hops(kept, spec.hops + 1), kept.rows, limit, kept.key)

    def _compute(
        self, graph: Graph, settings: Settings, spec: Propagation, scaling: Scaling, subsets: tuple[Subset, ...]
    ) -> Hops:
        features = self.features(graph, settings)
        if not subsets:
            return self.engine.propagate(graph.adjacency, scaling.seen(features), spec)
        typed = graph.need_relations()
        return subset_hops(self.engine, typed, scaling(features), subsets, spec, budget=settings.subset_memory)

    def _keep(self, what: str, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        known, value = self._kept.get(what, ((), None))
        if known != key:
            value = make()
            self._kept[what] = (key, value)
        return value


class Same:
    """An object as part of a key: equal to itself alone, and kept alive so that its identity stays its own."""

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)


def propagation_of(settings: Settings, rows: Array | None) -> Propagation:
    """Return how the features are propagated; the combiner says whether it needs X^(∞)."""
    return Propagation(
        settings.hops,
        Normalization(settings.normalization, settings.self_loops),
        rows,
        stationary=combiner_named(settings.combiner).needs_stationary,
        storage=settings.storage,
    )


def label_propagation_of(settings: Settings, rows: Array | None) -> Propagation:
    """Return how the labels are propagated: the last hop is kept."""
    normalization = Normalization(settings.label_normalization, settings.label_self_loops)
    return Propagation(settings.label_hops, normalization, rows, keep="last")


def featureless_key(settings: Any) -> str:
    """Name the way in which types without features get some."""
    if settings.featureless != "embeddings":
        return str(settings.featureless)
    return f"embeddings {settings.embedding_file or settings.embedding}"


def relation_subsets(graph: Graph, settings: Settings) -> tuple[Subset, ...]:
    """Return the relation subsets of a method that has any."""
    return () if settings.relations == "merged" else subsets_of(graph.need_relations(), settings.subsets)


def wanted_rows(graph: Graph, split: Split, settings: Settings) -> Array | None:
    """Return the nodes whose hops are kept, None = all: those of the split, or all that can have a label."""
    return labelled_rows(split) if settings.rows == "labelled" else graph.targets


def reliable_candidates(split: Split, rows: Array, settings: Settings) -> Array:
    """Return the nodes that may become reliable, sorted: valid and test, or all rows that do not train."""
    if settings.reliable_from == "split":
        return np.sort(np.concatenate([split.valid, split.test]))
    return np.setdiff1d(rows, split.train)


def labelled_rows(split: Split) -> Array:
    """Return the nodes of the split, sorted: all that training and evaluation read."""
    return np.sort(np.concatenate([split.train, split.valid, split.test]))


def check_device(name: str) -> None:
    """Refuse a device that cannot train, or is not there."""
    if name == "cpu":
        return
    from gamlp.propagate.engines.cuda import torch_device

    if not isinstance(name, str) or not name.startswith(("cpu", "cuda", "mps", "xpu")):
        raise SettingsError(f"There is no device {name!r}.\nUse 'cpu', or 'cuda' where there is one.")
    torch_device(name)
