"""Feature hops for a run, computed once and shared by its seeds and by every method of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.pipeline import Pipeline
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.propagate.hops import Hops
from gamlp.settings import Settings
from gamlp.storage.files import Array
from gamlp.train.hop_source import HopSource, check_device, labelled_rows, propagation_of, wanted_rows

__all__ = ["Workshop", "check_device", "labelled_rows", "needed_relations", "target_rows", "wanted_rows"]


class Workshop:
    """A graph and its hop source."""

    def __init__(
        self,
        graph: Graph,
        *,
        cache: Path | None = None,
        device: str = "cpu",
        memory: int | None = None,
        write: Any = None,
    ) -> None:
        self.graph, self.device = graph, device
        if memory is None:
            name = "local" if device == "cpu" else "cuda"
            self.engine = EngineChoice(name=name, cache=cache).open(device=device)
        else:
            self.engine = (write or LocalEngine)(memory=memory, cache=cache)
        self.source = HopSource(self.engine)

    @property
    def keep(self) -> Path | None:
        """Where embeddings are kept without a cache."""
        return self.source.work

    @keep.setter
    def keep(self, place: Path | None) -> None:
        self.source.work = place

    def hops(self, settings: Settings, split: Split) -> Hops:
        """Return the hops that these settings ask for."""
        from gamlp.methods import method_named

        return Pipeline(method_named("gamlp-jk"), settings, hop_source=self.source).hops(self.graph, split)  # type: ignore[no-any-return]

    def hops_at(
        self, settings: Settings, split: Split, *, rows: Array | None, out: Path | None, overwrite: bool = False
    ) -> Hops:
        """Return the hops of these rows, or of those the settings ask for, in the folder `out` or in the cache."""
        from gamlp.errors import SettingsError

        if settings.relations == "subsets":
            raise SettingsError("Hops of relation subsets are kept in a cache alone.\nUse --cache, and no --rows FILE.")
        spec = propagation_of(settings, wanted_rows(self.graph, split, settings) if rows is None else rows)
        scaled = self.source.scaling(self.graph, settings).seen(self.source.features(self.graph, settings))
        if out is None:
            return self.engine.propagate(self.graph.adjacency, scaled, spec)
        return self.engine.propagate_to(out, self.graph.adjacency, scaled, spec, overwrite=overwrite)


def needed_relations(graph: Graph) -> Any:
    """Return the graph as one with relations, or say that it has none."""
    return graph.need_relations()


def target_rows(graph: Graph) -> Array:
    """Return the nodes that can have a label."""
    import numpy as np

    return np.arange(graph.nodes) if graph.targets is None else graph.targets
