"""Labels spread over the graph without any features (Zhu & Ghahramani 2002; the form of Zhou et al. 2004).

    Y^(t+1) = clip( α Â Y^(t) + (1 − α) Y^(0), 0, 1 )

Y^(0) is one-hot for training nodes and 0 elsewhere. Each step is one propagation of C columns: O(E·C). Rows are then
divided by their sums; a node that no label reaches takes the class shares of the training set.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.labels.initial import initial_labels
from gamlp.propagate import Normalization, Propagator
from gamlp.storage.files import Array

Step = Callable[[Array], Array]


def label_propagation(
    adjacency: Adjacency,
    train_ids: Array,
    train_labels: Array,
    *,
    classes: int,
    alpha: float = 0.9,
    steps: int = 50,
    normalization: Normalization | None = None,
    device: str = "cpu",
) -> Array:
    """Return probabilities (N, C) float32; without a normalisation the symmetric one without self-loops."""
    start = initial_labels(adjacency.nodes, classes, train_ids, train_labels)
    hop = Propagator(adjacency, normalization or Normalization(r=0.5, self_loops=False), device=device)
    scores = spread(start, hop, alpha=alpha, steps=steps, after=lambda y: y.clip(0, 1))
    return to_probabilities(scores, otherwise=start.sum(axis=0) / len(train_ids))


def spread(start: Array, hop: Step, *, alpha: float, steps: int, after: Step) -> Array:
    """Repeat y ← after(α·hop(y) + (1−α)·start) from y = start, (N, C) → (N, C)."""
    kept = np.float32(1 - alpha) * start
    y = start
    for _ in range(steps):
        y = after(np.float32(alpha) * hop(y) + kept)
    return y


def to_probabilities(scores: Array, otherwise: Array) -> Array:
    """Divide the rows of `scores` (N, C), negative ones as 0, by their sums; `otherwise` fills rows without a score."""
    positive = scores.clip(0, None)
    sums = positive.sum(axis=1, keepdims=True)
    known = sums > 0
    return np.where(known, positive / np.where(known, sums, 1), otherwise).astype(np.float32, copy=False)
