"""The combiners by name, one line each. Their modules are imported when one is built; settings know the names.

Those of other packages come by entry points (`gamlp.plugins`), or by a decorator:

    @register_combiner("last-two")
    class LastTwo(FixedCombiner): …
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gamlp.plugins import imported, installed, place_of

if TYPE_CHECKING:
    from gamlp.model.combiners import Combiner

Kind = TypeVar("Kind", bound="Combiner")
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
COMBINERS |= {name: place for name, (place, _) in installed("combiners", but=COMBINERS).items()}


def register_combiner(name: str) -> Callable[[type[Kind]], type[Kind]]:
    """Return a decorator that registers a combiner of one's own; it then is a value of the setting `combiner`."""

    def register(kind: type[Kind]) -> type[Kind]:
        COMBINERS[name] = place_of(kind, name, COMBINERS)
        return kind

    return register


def combiner_named(name: str) -> type[Combiner]:
    """Return the class of a combiner."""
    found: type[Combiner] = imported(COMBINERS[name], name)
    return found
