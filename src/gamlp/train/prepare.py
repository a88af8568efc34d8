"""Feature hops for a run, computed once and shared by its seeds and by every method of a comparison."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gamlp.errors import SettingsError
from gamlp.files import Array
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.propagate import Normalization
from gamlp.propagate.cache import cached_propagate
from gamlp.propagate.hops import Hops
from gamlp.propagate.scaling import Scaling
from gamlp.settings import Settings


class Workshop:
    """Makes hops, and keeps the last ones: the next seed or method often needs the same, or fewer hops of them."""

    def __init__(self, graph: Graph, *, cache: Path | None = None, device: str = "cpu") -> None:
        self.graph = graph
        self.cache = cache
        self.device = device
        self._key: tuple[object, ...] | None = None
        self._hops: Hops | None = None
        self._scalings: dict[tuple[str, int], Scaling] = {}

    def scaling(self, settings: Settings) -> Scaling:
        """Return what is done to the features first, measured once for each kind."""
        kind = (settings.feature_scaling, settings.components)
        if kind not in self._scalings:
            self._scalings[kind] = Scaling.fit(kind[0], self.graph.features, components=kind[1])
        return self._scalings[kind]

    def hops(self, settings: Settings, split: Split) -> Hops:
        """Return the hops that these settings ask for."""
        rows = labelled_rows(split) if settings.rows == "labelled" else None
        stationary = settings.combiner == "smoothing"
        key = (
            settings.feature_scaling,
            settings.components,
            settings.normalization,
            settings.self_loops,
            settings.storage,
            None if rows is None else rows.tobytes(),
        )
        kept = self._hops
        if kept is None or key != self._key or kept.count < settings.hops or (stationary and kept.stationary is None):
            self._hops = None  # let the old ones go before the new ones are made
            kept = self._hops = self._compute(settings, rows, stationary=stationary)
            self._key = key
        limit = kept.stationary if stationary else None
        return Hops(kept.values[:, : settings.hops + 1], kept.rows, limit, kept.key)

    def _compute(self, settings: Settings, rows: Array | None, *, stationary: bool) -> Hops:
        return cached_propagate(
            self.cache,
            self.graph.adjacency,
            self.scaling(settings)(self.graph.features),
            hops=settings.hops,
            normalization=Normalization(settings.normalization, settings.self_loops),
            rows=rows,
            stationary=stationary,
            storage=settings.storage,
            device=self.device,
        )


def labelled_rows(split: Split) -> Array:
    """Return the nodes of the split, sorted: all that training and evaluation read."""
    return np.sort(np.concatenate([split.train, split.valid, split.test]))


def check_device(name: str) -> None:
    """Refuse a device that cannot train, or is not there."""
    if name == "cpu":
        return
    from gamlp.propagate.cuda import torch_device

    if not name.startswith(("cpu", "cuda", "mps", "xpu")):
        raise SettingsError(f"There is no device {name!r}.\nUse 'cpu', or 'cuda' where there is one.")
    torch_device(name)
