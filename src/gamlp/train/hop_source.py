"""From a graph to the hops that a network reads: fill featureless types, scale, propagate.

    features  →  filled (types that came without any)  →  scaled  →  X, ÂX, …, ÂᴷX    of the rows that are wanted

Computed once: hops of the last graph are kept, and the next seed or method often needs the same, or fewer of them. They
may take an eighth of the memory before others are made, and within a memory limit nothing. The graph of training
measures the scaling and draws the relation subsets; other graphs are treated with what was measured there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.machine.facts import memory_bytes
from gamlp.model.registry import combiner_named
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.hops import Hops
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.spec import Propagation
from gamlp.propagate.subsets import Subset, first_hops, subset_hops, subsets_of
from gamlp.settings import Settings
from gamlp.storage.files import Array, digest
from gamlp.train.distributed import ranks
from gamlp.train.featureless import filled_features, filled_width

Anything = TypeVar("Anything")
Subsets = tuple[Subset, ...]
KEPT = 8  # part of the memory that hops may take which are not in use


@dataclass(frozen=True, eq=False)
class Made:
    """Something that was made, of the very objects `same` and by settings that are `equal`."""

    what: str
    same: tuple[object, ...]
    equal: tuple[object, ...]
    found: Any

    @property
    def bytes(self) -> int:
        """What it takes, where it is hops."""
        return int(self.found.values.nbytes) if isinstance(self.found, Hops) else 0


class HopSource:
    """Makes features, scalings and hops on an engine, and keeps them for the next that wants the same.

    `work` is a folder for what is worth keeping without a cache, such as trained embeddings.
    """

    def __init__(self, engine: Engine, *, work: Path | None = None, single_pass: bool = False) -> None:
        self.engine, self.work, self.single_pass = engine, work, single_pass
        self._kept: list[Made] = []

    def transient(self) -> HopSource:
        """Return the same, with the features it has, for hops that are read once, in order, and then gone."""
        other = HopSource(self.engine.transient(), work=self.work, single_pass=True)
        other._kept = [made for made in self._kept if made.what == "features"]
        return other

    def features(self, graph: Graph, settings: Any) -> Array:
        """Return the features of all nodes (N, F); where there are none they are made."""
        same, place = (graph.features, graph.adjacency), self.engine.cache or self.work
        make = partial(filled_features, graph, settings, self.engine, cache=place)
        return self._keep("features", same, (featureless_key(settings),), make)

    def scaling(self, graph: Graph, settings: Settings) -> Scaling:
        """Measure what is done to the features first."""
        features, kind, components = self.features(graph, settings), settings.feature_scaling, settings.components
        make = partial(Scaling.fit, kind, features, components=components)
        return self._keep("scaling", (features,), (kind, components), make)

    def hops(
        self, graph: Graph, settings: Settings, rows: Array | None, *, scaling: Scaling, subsets: Subsets = ()
    ) -> Hops:
        """Return the hops of `rows`, of `subsets` where there are any."""
        spec, same = propagation_of(settings, rows), (graph.adjacency, scaling)
        equal = (
            *(settings.normalization, settings.self_loops, settings.storage, None if rows is None else digest(rows)),
            *(featureless_key(settings), subsets, settings.subset_memory),
        )
        kept = self._find("hops", same, equal)
        if kept is None or kept.count < spec.hops or (spec.stationary and kept.stationary is None):
            kept = None
            make = partial(self._compute, graph, settings, spec, scaling, subsets)
            kept = self._make("hops", same, equal, partial(ranks().in_turn, make))
        limit = kept.stationary if spec.stationary else None
        return Hops(first_hops(kept, spec.hops + 1), kept.rows, limit, kept.key)

    def _compute(self, graph: Graph, settings: Settings, spec: Propagation, scaling: Scaling, subsets: Subsets) -> Hops:
        features = self.features(graph, settings)
        if not subsets:
            propagate = self.engine.propagate_once if self.single_pass else self.engine.propagate
            return propagate(graph.adjacency, scaling.seen(features), spec)
        typed, budget, room = graph.need_relations(), int(settings.subset_memory * 2**30), self.engine.room
        if self.single_pass and room is not None:  # in training it would decide which subsets are open at a time
            budget = min(budget, room // 4)
        return subset_hops(self.engine, typed, scaling(features), subsets, spec, budget=budget)

    def _keep(
        self, what: str, same: tuple[object, ...], equal: tuple[object, ...], make: Callable[[], Anything]
    ) -> Anything:
        found: Anything | None = self._find(what, same, equal)
        return self._make(what, same, equal, make) if found is None else found

    def _make(
        self, what: str, same: tuple[object, ...], equal: tuple[object, ...], make: Callable[[], Anything]
    ) -> Anything:
        """Let go what is of another graph, what this replaces, and the largest hops while they take too much; make."""
        replaced = self._find(what, same, equal)
        self._kept = [
            made for made in self._kept if made.what != what or (made.same[0] is same[0] and made.found is not replaced)
        ]
        room = (memory_bytes() or 0) // KEPT if self.engine.memory is None else 0
        while sum(made.bytes for made in self._kept) > room:
            self._kept.remove(max(self._kept, key=lambda made: made.bytes))
        replaced = None
        found = make()
        self._kept.append(Made(what, same, equal, found))
        return found

    def _find(self, what: str, same: tuple[object, ...], equal: tuple[object, ...]) -> Any:
        """Return what was made, of the very objects `same` and by settings that are `equal`; else None."""
        for made in self._kept:
            if (made.what, made.equal) == (what, equal) and all(map(operator.is_, made.same, same)):
                return made.found
        return None


def propagation_of(settings: Settings, rows: Array | None) -> Propagation:
    """Return how the features are propagated; the combiner says whether it needs X^(∞)."""
    normalization = Normalization(settings.normalization, settings.self_loops)
    stationary = combiner_named(settings.combiner).needs_stationary
    return Propagation(settings.hops, normalization, rows, stationary=stationary, storage=settings.storage)


def label_propagation_of(settings: Settings, rows: Array | None) -> Propagation:
    """Return how the labels are propagated: the last hop is kept."""
    normalization = Normalization(settings.label_normalization, settings.label_self_loops)
    return Propagation(settings.label_hops, normalization, rows, keep="last", storage=settings.storage)


def width_read(graph: Graph, settings: Settings) -> int:
    """Return how many features a network reads of a graph, F, before anything is made or measured."""
    return settings.components or filled_width(graph, settings)


def featureless_key(settings: Any) -> str:
    """Name the way in which types without features get some."""
    if settings.featureless != "embeddings":
        return f"{settings.featureless} {getattr(settings, 'structure', '')}"
    return f"embeddings {settings.embedding_file or settings.embedding}"


def relation_subsets(graph: Graph, settings: Settings) -> Subsets:
    """Return the relation subsets of a method that has any."""
    return () if settings.relations == "merged" else subsets_of(graph.need_relations(), settings.subsets)


def wanted_rows(graph: Graph, split: Split, settings: Settings) -> Array | None:
    """Return the nodes whose hops are kept, None = all: those of the split, or all that can have a label."""
    if settings.rows == "labelled":
        return np.sort(np.concatenate([split.train, split.valid, split.test]))
    return graph.targets


def reliable_candidates(split: Split, rows: Array, settings: Settings) -> Array:
    """Return the nodes that may become reliable, sorted: valid and test, or all rows that do not train."""
    if settings.reliable_from == "split":
        return np.sort(np.concatenate([split.valid, split.test]))
    return np.setdiff1d(rows, split.train)


def check_device(name: str) -> None:
    """Refuse a device that cannot train, or is not there."""
    if name == "cpu":
        return
    from gamlp.propagate.engines.cuda import torch_device

    if not isinstance(name, str) or not name.startswith(("cpu", "cuda", "mps", "xpu")):
        raise SettingsError(f"There is no device {name!r}.\nUse 'cpu', or 'cuda' where there is one.")
    torch_device(name)
