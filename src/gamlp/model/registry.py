"""The combiners by name, one line each. Their modules are imported when one is built; settings know the names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gamlp.model.combiners import Combiner

COMBINERS = {
    "last": "gamlp.model.combiners:Last",
    "mean": "gamlp.model.combiners:Mean",
    "decay": "gamlp.model.combiners:Decay",
    "concat": "gamlp.model.combiners:Concat",
    "gate": "gamlp.model.attention:Gate",
    "smoothing": "gamlp.model.attention:Smoothing",
    "recursive": "gamlp.model.attention:Recursive",
    "jk": "gamlp.model.attention:JumpingKnowledge",
}


def combiner_named(name: str) -> type[Combiner]:
    """Return the class of a combiner."""
    module, kind = COMBINERS[name].split(":")
    found: Any = getattr(import_module(module), kind)
    return found  # type: ignore[no-any-return]
