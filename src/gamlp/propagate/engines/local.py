"""On this machine's processor: in memory, or within a limit of it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.cache import cached_propagate, propagate_into, whole
from gamlp.propagate.engine import Propagator
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.hops import Hops
from gamlp.propagate.spec import Propagation

if TYPE_CHECKING:
    from gamlp.propagate.engines.registry import EngineChoice


@dataclass(frozen=True)
class LocalEngine(Engine):
    """numba kernels on all cores."""

    name: ClassVar[str] = "local"
    memory: int | None = None
    cache: Path | None = None
    device: str = "cpu"
    write: Any = None

    @classmethod
    def from_choice(cls, choice: EngineChoice, device: str) -> LocalEngine:
        """Refuse what it cannot do."""
        if device != "cpu" and choice.memory is not None:
            raise SettingsError(f"The engine 'local' was asked to use '{device}'.\nIt runs on processors: cpu.")
        return cls(memory=choice.memory, cache=choice.cache)

    def propagate(self, adjacency: Adjacency, columns: Any, spec: Propagation) -> Hops:
        """Return the hops."""
        spec = spec.for_nodes(adjacency.nodes)
        if spec.restart is not None:
            return self._restarted(adjacency, columns, spec)
        place = self.cache
        if self.memory is not None and place is None:
            place = Path(tempfile.mkdtemp(prefix="gamlp-hops-"))
        return cached_propagate(place, adjacency, columns, memory=self.memory, write=self.write, **self._options(spec))

    def propagate_to(
        self, folder: Path, adjacency: Adjacency, columns: Any, spec: Propagation, *, overwrite: bool = False
    ) -> Hops:
        """Write the hops into a folder of their own."""
        spec = spec.for_nodes(adjacency.nodes)
        return propagate_into(
            folder, adjacency, columns, memory=self.memory, write=self.write, overwrite=overwrite, **self._options(spec)
        )

    def _options(self, spec: Propagation) -> dict[str, Any]:
        return {
            "hops": spec.hops, "normalization": spec.normalization, "rows": spec.rows, "keep": spec.keep,
            "stationary": spec.stationary, "storage": spec.storage, "device": self.device,
        }  # fmt: skip

    def _restarted(self, adjacency: Adjacency, columns: Any, spec: Propagation) -> Hops:
        assert spec.restart is not None
        hop, start = Propagator(adjacency, spec.normalization, device=self.device), whole(columns).astype(np.float32)
        kept = np.float32(1 - spec.restart.alpha) * start
        y = start
        for _ in range(spec.hops):
            y = (np.float32(spec.restart.alpha) * hop(y) + kept).clip(spec.restart.low, spec.restart.high)
            if spec.restart.fixed is not None:
                y[spec.restart.fixed] = start[spec.restart.fixed]
        rows = slice(None) if spec.rows is None else spec.rows
        return Hops(y[rows][:, None], spec.rows)
