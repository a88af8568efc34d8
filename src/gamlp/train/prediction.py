"""What a fitted method says of the nodes it was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.targets.registry import SINGLE


@dataclass(frozen=True, eq=False)
class Prediction:
    """Probabilities of R nodes, and how their hops were weighed."""

    rows: Array  # (R,) node ids, ascending
    probabilities: Array  # (R, C) float32
    weights: Array | None = None  # (R, K+1) attention over the hops; None where the method has none
    logits: Array | None = None  # (R, C) whose softmax the probabilities are; None where they come otherwise, or of fit
    embeddings: Array | None = None  # (R, width), where they were asked for

    @classmethod
    def of(cls, rows: Array, logits: Array, weights: Array, kind: TargetKind = SINGLE) -> Prediction:
        """Return what logits say of targets of that kind."""
        return cls(rows, kind.probabilities(logits), weights, logits)
