"""How the adjacency is normalised: Â = D^(r−1) A D^(−r), with or without self-loops.

r = 0 is the mean over the neighbours, r = 1/2 the symmetric form, r = 1 the transition matrix (paper, section 2).
D holds the row sums of A; with self-loops, of A + I. Â is never stored: two vectors of N scales say it all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

ROWS_A_STEP = 2**16


@dataclass(frozen=True)
class Normalization:
    """The exponent r in [0, 1] and whether each node is its own neighbour."""

    r: float = 0.5
    self_loops: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.r <= 1:
            raise SettingsError(f"The normalisation exponent r is {self.r}.\nExpected a number between 0 and 1.")


def degrees(adjacency: Adjacency, *, self_loops: bool) -> Array:
    """Return the diagonal of D (N,) float64: row sums, plus 1 with self-loops."""
    sums = np.diff(adjacency.indptr).astype(np.float64) if adjacency.weights is None else row_sums(adjacency)
    return sums + 1.0 if self_loops else sums


def row_sums(adjacency: Adjacency) -> Array:
    """Return the sums of the weights of each row (N,) float64, reading some rows at a time."""
    assert adjacency.weights is not None
    sums = np.zeros(adjacency.nodes)
    for first, last in ranges(adjacency.nodes, ROWS_A_STEP):
        offsets = np.asarray(adjacency.indptr[first : last + 1])
        filled = np.flatnonzero(np.diff(offsets))  # reduceat cannot see an empty row
        if len(filled):
            part = np.asarray(adjacency.weights[offsets[0] : offsets[-1]])
            sums[first + filled] = np.add.reduceat(part, offsets[filled] - offsets[0], dtype=np.float64)
    return sums


def power(degree: Array, exponent: float) -> Array:
    """Return dᵖ as float64, and 0 where d = 0 and p < 0: an isolated node passes nothing on."""
    if exponent >= 0:
        return np.asarray(degree**exponent)
    return np.where(degree > 0, np.where(degree > 0, degree, 1.0) ** exponent, 0.0)
