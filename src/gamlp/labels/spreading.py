"""Labels spread over the graph without any features (Zhu & Ghahramani 2002; the form of Zhou et al. 2004).

    Y^(t+1) = clip( α Â Y^(t) + (1 − α) Y^(0), 0, 1 )

Y^(0) is one-hot for training nodes and 0 elsewhere. Each step is one propagation of C columns: O(E·C), by whatever
engine. Rows are then divided by their sums; a node that no label reaches takes the class shares of the training set.
"""

from __future__ import annotations

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.labels.initial import initial_labels
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.spec import Propagation, Restart
from gamlp.storage.files import Array


def label_propagation(
    engine: Engine,
    adjacency: Adjacency,
    train_ids: Array,
    train_labels: Array,
    *,
    classes: int,
    alpha: float = 0.9,
    steps: int = 50,
    normalization: Normalization | None = None,
    rows: Array | None = None,
) -> Array:
    """Return probabilities of `rows`, None = all, (R, C) float32; by default Â is symmetric, without self-loops."""
    start = initial_labels(adjacency.nodes, classes, train_ids, train_labels)
    normalization = normalization or Normalization(r=0.5, self_loops=False)
    spec = Propagation(steps, normalization, rows=rows, keep="last", restart=Restart(alpha))
    scores = engine.transient().propagate(adjacency, start, spec).values[:, -1]
    shares = start.rows.sum(axis=0) / len(train_ids) if len(train_ids) else np.full(classes, 1 / classes)
    return to_probabilities(scores, otherwise=shares)


def to_probabilities(scores: Array, otherwise: Array) -> Array:
    """Divide the rows of `scores` (R, C), negative ones as 0, by their sums; `otherwise` fills rows without a score."""
    positive = scores.clip(0, None)
    sums = positive.sum(axis=1, keepdims=True)
    known = sums > 0
    return np.where(known, positive / np.where(known, sums, 1), otherwise).astype(np.float32, copy=False)
