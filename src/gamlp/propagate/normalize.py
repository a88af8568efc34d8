"""How the adjacency is normalised: Â = D^(r−1) A D^(−r), with or without self-loops.

r = 0 is the mean over the neighbours, r = 1/2 the symmetric form, r = 1 the transition matrix (paper, section 2).
D holds the row sums of A; with self-loops, of A + I. Â is never stored: vectors of N scales say it all.

With y = D^(−r) x, the hop x' = D^(r−1) A D^(−r) x becomes y' = D^(−1) A y: one division per row, and no weight in the
inner loop of an unweighted graph, whatever r is. x = D^r y at the end. So nodes are scaled by dᵖ, p = −1, −r or r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency
from gamlp.storage.array_reader import ArrayReader
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


class NodeScales:
    """dᵖ of any nodes, float32.

    Without a memory limit the three vectors are held, 12 bytes a node. Within one they are made of the row offsets
    where they are needed; only the row sums of a weighted graph, which cost a pass over the weights, are held, 8 bytes
    a node.
    """

    def __init__(self, adjacency: Adjacency, normalization: Normalization, *, hold: bool, step: int = 2**20) -> None:
        """`step` is how many rows are looked at together where the vectors are not held."""
        self.nodes, self._own = adjacency.nodes, float(normalization.self_loops)
        self._offsets, self._step = ArrayReader(adjacency.indptr), step
        self._held: dict[float, Array] = {}
        self._row_sums = None if hold or adjacency.weights is None else row_sums(adjacency)
        if hold:
            degree, r = degrees(adjacency, self_loops=normalization.self_loops), normalization.r
            self._held = {p: power(degree, p).astype(np.float32) for p in (-1, -r, r)}

    def power(self, first: int, last: int, exponent: float, offsets: Array | None = None) -> Array:
        """Return dᵖ of the nodes first … last−1; offsets (n+1,) may be theirs."""
        if self._held:
            return self._held[exponent][first:last]
        if offsets is None:
            offsets = self._offsets.rows(first, last + 1, np.empty(last + 1 - first, self._offsets.array.dtype))
        sums = np.diff(offsets) if self._row_sums is None else self._row_sums[first:last]
        return power(sums + self._own, exponent).astype(np.float32)

    def of(self, rows: Array, exponent: float) -> Array:
        """Return dᵖ of some nodes, which must be sorted where the vectors are not held."""
        if self._held:
            return self._held[exponent][rows]
        result = np.empty(len(rows), np.float32)
        for first, last in ranges(self.nodes, self._step):
            begin, end = np.searchsorted(rows, [first, last])
            if begin < end:
                result[begin:end] = self.power(first, last, exponent)[rows[begin:end] - first]
        return result

    def close(self) -> None:
        """Let the file go."""
        self._offsets.close()


def degrees(adjacency: Adjacency, *, self_loops: bool) -> Array:
    """Return the diagonal of D (N,) float64: row sums, plus 1 with self-loops."""
    sums = np.diff(adjacency.indptr) if adjacency.weights is None else row_sums(adjacency)
    return np.asarray(sums + float(self_loops))


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
