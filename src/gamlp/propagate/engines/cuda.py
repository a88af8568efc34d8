"""On a graphics card, or any device of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gamlp.propagate.engines.local import LocalEngine

if TYPE_CHECKING:
    from gamlp.propagate.engines.registry import EngineChoice


class CudaEngine(LocalEngine):
    """torch's sparse product."""

    name: ClassVar[str] = "cuda"

    @classmethod
    def from_choice(cls, choice: EngineChoice, device: str) -> CudaEngine:
        """Run where training runs."""
        return cls(cache=choice.cache, device=device if device != "cpu" else "cuda")
