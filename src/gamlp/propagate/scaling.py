"""What is done to the features before they are propagated, the same way for graphs met later.

    row       each row divided by the sum of its absolute values
    unit      each row divided by its length
    standard  each column to mean 0 and variance 1, as measured on the graph of training

then, where asked for, a rotation onto the k leading right singular vectors of X: wide bags of words keep almost all
of their inner products in a few hundred columns, and every later step is as much shorter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.propagate.sources import MappedSource, by_name, opened_again
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

ROTATED = 2**28  # values of X from which the directions are found; of more, rows at equal distances are taken
ROUNDS, BESIDE = 5, 10  # of the search for them, and columns beside those that are wanted


@dataclass(frozen=True, eq=False)
class Scaling:
    """A kind of scaling and, where it has any, what it measured."""

    kind: str = "none"
    mean: Array | None = None  # (F,)
    scale: Array | None = None  # (F,)
    directions: Array | None = None  # (F, k)

    @classmethod
    def fit(cls, kind: str, features: Array, *, components: int = 0) -> Scaling:
        """Measure what the scaling needs; a constant column keeps scale 1, components 0 keeps all columns."""
        mean, scale = column_scale(features) if kind == "standard" else (None, None)
        scaled = cls(kind, mean, scale)
        if not 0 < components < min(features.shape):
            return scaled
        step = -(-features.shape[0] * features.shape[1] // ROTATED)
        some = features[::step] if features.shape[0] // step > components else features
        return cls(kind, mean, scale, leading_directions(scaled(some), components))

    def __call__(self, features: Array) -> Array:
        """Scale (N, F) features; a row of zeros stays as it is."""
        seen = self.seen(features)
        return seen[:] if isinstance(seen, ScaledFeatures) else seen

    def seen(self, features: Array) -> Array | ScaledFeatures:
        """Return the features as they are scaled where they are read, which never holds all of them."""
        return features if self.kind == "none" and self.directions is None else ScaledFeatures(features, self)

    def arrays(self) -> dict[str, Array]:
        """Return what was measured, by name, for storing."""
        return {name: value for name, value in vars(self).items() if name != "kind" and value is not None}


class ScaledFeatures(MappedSource):
    """Features (N, F) as a `Scaling` makes them, (N, k): seen[first:last, columns]."""

    def __init__(self, features: Array, scaling: Scaling, sizes: Array | None = None) -> None:
        super().__init__(features)
        self.scaling, self._turned = scaling, scaling.directions is not None
        self.shape = (len(features), features.shape[1] if scaling.directions is None else scaling.directions.shape[1])
        self.sizes = row_sizes(features, scaling.kind) if sizes is None else sizes
        self.content = [features, scaling.kind, *scaling.arrays().values()]

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        scaling, read = self.scaling, slice(None) if self._turned else columns
        values = np.ascontiguousarray(self._read(rows, read))
        if scaling.mean is not None and scaling.scale is not None:
            values = (values - scaling.mean[read]) * scaling.scale[read]
        if len(self.sizes):
            values = values / self.sizes[rows, None]
        return values if scaling.directions is None else np.asarray(values @ scaling.directions[:, columns])

    def __reduce__(self) -> Any:
        return opened_again, (ScaledFeatures, by_name(self.base), self.scaling, self.sizes)

    def bytes_a_row(self, width: int) -> int:
        """Return what reading one row of so many columns costs: it is read, and scaled beside."""
        return 4 * width + self._source.bytes_a_row(self.base.shape[1] if self._turned else width)


def column_scale(features: Array) -> tuple[Array, Array]:
    """Return each column's mean and 1 / standard deviation, (F,), (F,)."""
    sums = np.zeros((2, features.shape[1]))
    for _, values in _chunks(features):
        sums += values.sum(axis=0, dtype=np.float64), np.square(values, dtype=np.float64).sum(axis=0)
    mean, square = sums / max(1, len(features))
    deviation = np.sqrt(np.maximum(square - mean**2, 0))
    deviation[deviation <= 1e-6 * np.abs(mean)] = 1  # 0 too
    return mean.astype(np.float32), (1 / deviation).astype(np.float32)


def row_sizes(features: Array, kind: str) -> Array:
    """Return what the rows are divided by, (N,), 1 for rows of zeros; nothing where they are not."""
    if kind not in {"row", "unit"}:
        return np.zeros(0, np.float32)
    sizes = np.empty(len(features), np.float32)
    for first, values in _chunks(features):
        found = np.abs(values).sum(axis=1) if kind == "row" else np.sqrt(np.square(values).sum(axis=1))
        sizes[first : first + len(values)] = np.where(found > 0, found, 1)
    return sizes


def _chunks(features: Array) -> Iterator[tuple[int, Array]]:
    """Yield the first row of some, and these, one after the other, float32 by rows."""
    source, width = ArrayReader(features), features.shape[1]
    for first, last in ranges(len(features), max(1, 2**24 // max(1, width))):
        yield first, np.ascontiguousarray(source.block(first, last, slice(0, width)))
    source.close()


def leading_directions(features: Array, count: int) -> Array:
    """Return the leading right singular vectors (F, count), by subspace iteration with a fixed seed (Halko 2011).

    V ← orthonormal(Xᵀ(X V)) turns random columns, a few more than wanted, into the leading directions; those of X V,
    which is narrow, put them in order. Cost: O(ROUNDS·nnz(X)·count).
    """
    from scipy import linalg, sparse

    matrix = sparse.csr_array(features) if (features[:1000] == 0).mean() > 0.9 else features
    width = min(count + BESIDE, *features.shape)
    basis = np.random.default_rng(0).standard_normal((features.shape[1], width), np.float32)
    for _ in range(ROUNDS):
        basis = linalg.qr(matrix.T @ (matrix @ basis), mode="economic", check_finite=False)[0]
    seen = matrix @ basis
    _, order = linalg.eigh((seen.T @ seen).astype(np.float64))  # the largest last
    return np.ascontiguousarray(basis @ order[:, : -count - 1 : -1], dtype=np.float32)
