"""What the nodes are scaled by: dᵖ for the degrees d and some powers p.

With y = D^(−r) x, the hop x' = D^(r−1) A D^(−r) x becomes y' = D^(−1) A y: one division per row, and no weight in the
inner loop of an unweighted graph, whatever r is. x = D^r y at the end. So p is one of −1, −r and r.

Without a memory limit the three vectors are held, 12 bytes a node. Within one they are made of the row offsets where
they are needed; only the row sums of a weighted graph, which cost a pass over the weights, are held, 8 bytes a node.
"""

from __future__ import annotations

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import Normalization, power, row_sums
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges


class NodeScales:
    """dᵖ of any nodes, float32."""

    def __init__(self, adjacency: Adjacency, normalization: Normalization, *, hold: bool, step: int = 2**20) -> None:
        """`step` is how many rows are looked at together where the vectors are not held."""
        self.nodes, self.r, self._own = adjacency.nodes, normalization.r, float(normalization.self_loops)
        self._offsets, self._step = ArrayReader(adjacency.indptr), step
        self._row_sums = None if adjacency.weights is None else row_sums(adjacency)
        self._held: dict[float, Array] = {}
        if hold:
            degree = self._degrees(0, self.nodes, np.asarray(adjacency.indptr))
            self._held = {p: power(degree, p).astype(np.float32) for p in (-1, -self.r, self.r)}

    def power(self, first: int, last: int, exponent: float, offsets: Array | None = None) -> Array:
        """Return dᵖ of the nodes first … last−1; offsets (n+1,) may be theirs."""
        if self._held:
            return self._held[exponent][first:last]
        if offsets is None:
            offsets = self._offsets.rows(first, last + 1, np.empty(last + 1 - first, self._offsets.array.dtype))
        return power(self._degrees(first, last, offsets), exponent).astype(np.float32)

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

    def check_unchanged(self) -> None:
        """Refuse to go on with offsets that someone wrote to in the meantime."""
        self._offsets.check_unchanged()

    def close(self) -> None:
        """Let the file go."""
        self._offsets.close()

    def _degrees(self, first: int, last: int, offsets: Array) -> Array:
        sums = np.diff(offsets).astype(np.float64) if self._row_sums is None else self._row_sums[first:last]
        return sums + 1.0 if self._own else sums
