"""Combine the hops of each node and classify it: Hops → attention over the hops → head → logits and weights.

    network = build_network(settings, features=100, classes=47)
    logits, weights = network(hops, labels)            # (B, K+1, F), (B, C) → (B, C), (B, K+1)

The names below are imported when they are first used, so that torch is loaded only where it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamlp.lazy import lazy_imports

if TYPE_CHECKING:
    from gamlp.model.network import Network, Output, build_network, count_parameters

__all__ = ["Network", "Output", "build_network", "count_parameters"]

__getattr__ = lazy_imports(__name__)
