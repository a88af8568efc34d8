"""Propagate features over the graph: X, ÂX, …, ÂᴷX, once per graph, for all that follows.

    hops = propagate(adjacency, features, Propagation(hops=5))      # (N, K+1, F)

`Propagation` says what, an `Engine` where. The names below are imported when they are first used, so that nothing is
compiled before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gamlp.lazy import lazy_imports

if TYPE_CHECKING:
    from gamlp.graph.graph import Adjacency
    from gamlp.propagate.engines.base import Engine
    from gamlp.propagate.engines.local import LocalEngine
    from gamlp.propagate.engines.registry import EngineChoice
    from gamlp.propagate.hops import Hops
    from gamlp.propagate.normalize import Normalization
    from gamlp.propagate.spec import Propagation, Restart

__all__ = ["Engine", "EngineChoice", "Hops", "LocalEngine", "Normalization", "Propagation", "Restart", "propagate"]

__getattr__ = lazy_imports(__name__)


def propagate(adjacency: Adjacency, features: Any, spec: Propagation, engine: Engine | None = None) -> Hops:
    """Return X, ÂX, …, ÂᴷX: adjacency (N, N), features (N, F) → values (R, K+1, F); by default on this machine.

    >>> import numpy as np
    >>> from gamlp.graph.graph import Adjacency
    >>> from gamlp.propagate import Normalization, Propagation, propagate
    >>> path = Adjacency(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32))
    >>> spec = Propagation(hops=1, normalization=Normalization(r=0.0))
    >>> propagate(path, np.array([[1.0], [0.0], [0.0]]), spec).values[:, 1, 0].round(2).tolist()
    [0.5, 0.33, 0.0]
    """
    from gamlp.propagate.engines.local import LocalEngine

    return (engine or LocalEngine()).propagate(adjacency, features, spec)
