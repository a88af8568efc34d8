"""What is done to the features before they are propagated, the same way for graphs met later.

    row       each row divided by the sum of its absolute values
    unit      each row divided by its length
    standard  each column to mean 0 and variance 1, as measured on the graph of training

then, where asked for, a rotation onto the k leading right singular vectors of X: wide bags of words keep almost all
of their inner products in a few hundred columns, and every later step is as much shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.files import Array


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
        return cls(kind, mean, scale, leading_directions(scaled(features), components))

    def __call__(self, features: Array) -> Array:
        """Scale (N, F) features; a row of zeros stays as it is."""
        if self.kind == "standard":
            features = (features - self.mean) * self.scale
        elif self.kind != "none":
            size = np.abs(features).sum(axis=1) if self.kind == "row" else np.sqrt(np.square(features).sum(axis=1))
            features = features / np.where(size > 0, size, 1)[:, None]
        return features if self.directions is None else np.asarray(features @ self.directions)

    def arrays(self) -> dict[str, Array]:
        """Return what was measured, by name, for storing."""
        named = {"mean": self.mean, "scale": self.scale, "directions": self.directions}
        return {name: value for name, value in named.items() if value is not None}


def column_scale(features: Array) -> tuple[Array, Array]:
    """Return each column's mean and 1 / standard deviation, (F,), (F,)."""
    mean = features.mean(axis=0, dtype=np.float64)
    deviation = np.sqrt(np.maximum(np.square(features, dtype=np.float64).mean(axis=0) - mean**2, 0))
    deviation[deviation <= 1e-6 * np.abs(mean)] = 1
    deviation[deviation == 0] = 1
    return mean.astype(np.float32), (1 / deviation).astype(np.float32)


def leading_directions(features: Array, count: int) -> Array:
    """Return the leading right singular vectors (F, count), by a randomised method with a fixed seed."""
    from scipy import sparse
    from sklearn.utils.extmath import randomized_svd

    matrix = sparse.csr_array(features) if (features[:1000] == 0).mean() > 0.9 else features
    _, _, vectors = randomized_svd(matrix, count, n_iter=4, random_state=0)
    return np.ascontiguousarray(vectors.T, dtype=np.float32)
