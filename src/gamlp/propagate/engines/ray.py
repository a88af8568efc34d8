"""On a Ray cluster: a task takes a block of columns through all hops."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from gamlp.propagate.disk import MEMORY
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.ray_engine import propagate_on_cluster

if TYPE_CHECKING:
    from gamlp.propagate.engines.registry import EngineChoice


class RayEngine(LocalEngine):
    """One task a block of columns."""

    name: ClassVar[str] = "ray"

    @classmethod
    def from_choice(cls, choice: EngineChoice, device: str) -> RayEngine:
        """Refuse what it cannot do."""
        memory = MEMORY if choice.memory is None else choice.memory
        return cls(memory=memory, cache=choice.cache, write=partial(propagate_on_cluster, address=choice.address))
