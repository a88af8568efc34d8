"""The combiners by name, one line each. Their modules are imported when one is built; settings know the names."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

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
    found: type[Combiner] = resolve_name(COMBINERS[name])
    return found
