"""How the adjacency is normalised: Â = D^(r−1) A D^(−r), with or without self-loops.

r = 0 is the mean over the neighbours, r = 1/2 the symmetric form, r = 1 the transition matrix (paper, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Normalization:
    """The exponent r in [0, 1] and whether each node is its own neighbour."""

    r: float = 0.5
    self_loops: bool = True
