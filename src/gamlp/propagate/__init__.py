"""Propagate features over the graph: X, ÂX, …, ÂᴷX, once per graph, for all that follows.

    hops = propagate(adjacency, features, hops=5, normalization=Normalization(r=0.5))      # (N, K+1, F)

The names below are imported when they are first used, so that nothing is compiled before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamlp.lazy import lazy_imports

if TYPE_CHECKING:
    from gamlp.propagate.engine import Propagator, propagate
    from gamlp.propagate.hops import Hops
    from gamlp.propagate.normalize import Normalization

__all__ = ["Hops", "Normalization", "Propagator", "propagate"]

__getattr__ = lazy_imports(__name__)
