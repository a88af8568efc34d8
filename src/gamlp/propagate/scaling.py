"""What is done to the features before they are propagated, the same way for graphs met later.

row       each row divided by the sum of its absolute values
unit      each row divided by its length
standard  each column to mean 0 and variance 1, as measured on the graph of training
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

    @classmethod
    def fit(cls, kind: str, features: Array) -> Scaling:
        """Measure what the scaling needs; a constant column keeps scale 1."""
        if kind != "standard":
            return cls(kind)
        mean = features.mean(axis=0, dtype=np.float64)
        deviation = np.sqrt(np.square(features, dtype=np.float64).mean(axis=0) - mean**2)
        deviation[~(deviation > 1e-6 * np.abs(mean).clip(min=1e-12))] = 1
        return cls(kind, mean.astype(np.float32), (1 / deviation).astype(np.float32))

    def __call__(self, features: Array) -> Array:
        """Scale (N, F) features; a row of zeros stays as it is."""
        if self.kind == "none":
            return features
        if self.kind == "standard":
            return (features - self.mean) * self.scale
        size = np.abs(features).sum(axis=1) if self.kind == "row" else np.sqrt(np.square(features).sum(axis=1))
        return features / np.where(size > 0, size, 1)[:, None]
