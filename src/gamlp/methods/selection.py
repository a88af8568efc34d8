"""Which of several predictions to mix, and how much of each: greedy selection with replacement (Caruana et al. 2004).

From an empty mixture, the candidate that makes it best on validation is added, again and again; what was added twice
weighs twice. With few labels the best of many is often the luckiest, so the selection is repeated on random halves of
the validation nodes and the weights are averaged: what is good on one half only weighs little.

    score of a mixture  =  metric − log loss

The metric alone has many ties, and rewards luck; the log loss tells a good second from a bad one. Candidates below
LEAST of the weight are left out: they would cost time in every prediction and change nothing.

Cost: BAGS·STEPS·(candidates) scores of at most MOST/2 validation nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gamlp.storage.files import Array
from gamlp.targets.objective import Objective

BAGS, STEPS = 16, 10
LEAST = 0.05
MOST = 20_000  # validation nodes that are looked at


def mixture_weights(objective: Objective, said: Sequence[Array], labels: Array, seed: int) -> Array:
    """Return what each candidate weighs, (M,), sum 1: `said` are its probabilities of the validation nodes, (n, C)."""
    if len(said) == 1 or not len(labels):
        return np.asarray(np.eye(len(said))[0])
    random = np.random.default_rng([seed, 0x5E1E])
    counts = np.zeros(len(said))
    for _ in range(BAGS):
        half = random.permutation(len(labels))[: max(1, min(len(labels), MOST) // 2)]
        counts += greedy_counts(objective, [part[half] for part in said], labels[half])
    weights = np.where(counts < LEAST * counts.sum(), 0.0, counts)
    return np.asarray(weights / weights.sum())


def greedy_counts(objective: Objective, said: Sequence[Array], labels: Array) -> Array:
    """Return how often each candidate was added to the mixture, (M,)."""
    total, counts = np.zeros_like(said[0]), np.zeros(len(said))
    for step in range(1, STEPS + 1):
        best = max(range(len(said)), key=lambda at: sum(objective.score((total + said[at]) / step, labels)))
        total = total + said[best]
        counts[best] += 1
    return counts
