"""Which of several predictions to mix, and how much of each: greedy selection with replacement (Caruana et al. 2004).

From an empty mixture, the candidate that makes it best on validation is added, again and again; what was added twice
weighs twice. With few labels the best of many is often the luckiest, so the selection is repeated on random halves of
the validation nodes and the weights are averaged: what is good on one half only weighs little.

    score of a mixture  =  metric − log loss

The metric alone has many ties, and rewards luck; the log loss tells a good second from a bad one. Candidates below
LEAST of the weight are left out: they would cost time in every prediction and change nothing.

Candidates that are known to be good on such graphs, `usual`, need no proof: each mixture begins with HEAD_START of
them, unless the best candidate is ahead of one on every half. On seven graphs with 20 labels a class this is 0.2 points
above an empty beginning; 150 validation nodes say little.

Cost: BAGS·STEPS·(candidates) scores of at most MOST/2 validation nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gamlp.storage.files import Array
from gamlp.targets.objective import Objective

BAGS, STEPS = 16, 10
HEAD_START = 5  # steps that the usual candidates are ahead
LEAST = 0.05
MOST = 20_000  # validation nodes that are looked at


def mixture_weights(
    objective: Objective, said: Sequence[Array], labels: Array, seed: int, usual: Sequence[int] = ()
) -> Array:
    """Return what each candidate weighs, (M,), sum 1: `said` are its probabilities of the validation nodes, (n, C)."""
    if len(said) == 1 or not len(labels):
        return np.asarray(np.eye(len(said))[0])
    random = np.random.default_rng([seed, 0x5E1E])
    size = max(1, min(len(labels), MOST) // 2)
    halves = [random.permutation(len(labels))[:size] for _ in range(BAGS)]
    start, standing = np.zeros(len(said)), unrefuted(objective, said, labels, halves, usual)
    start[standing] = HEAD_START / max(1, len(standing))
    counts = np.sum(
        [greedy_counts(objective, [part[half] for part in said], labels[half], start) for half in halves], axis=0
    )
    weights = np.where(counts < LEAST * counts.sum(), 0.0, counts)
    return np.asarray(weights / weights.sum())


def unrefuted(
    objective: Objective, said: Sequence[Array], labels: Array, halves: Sequence[Array], usual: Sequence[int]
) -> list[int]:
    """Return which of the usual candidates are, on one half at least, no worse than the one that is best on all."""
    if not usual:
        return []
    best = max(range(len(said)), key=lambda at: sum(objective.score(said[at], labels)))

    def behind(at: int, half: Array) -> bool:
        return objective.score(said[at][half], labels[half])[0] < objective.score(said[best][half], labels[half])[0]

    return [at for at in usual if not all(behind(at, half) for half in halves)]


def greedy_counts(objective: Objective, said: Sequence[Array], labels: Array, start: Array) -> Array:
    """Return how often each candidate is in the mixture, (M,), which begins with `start` of each."""
    counts = start.copy()
    total = sum((count * part for count, part in zip(counts, said, strict=True) if count), np.zeros_like(said[0]))
    for step in range(1, STEPS + 1):
        whole = start.sum() + step
        best = max(range(len(said)), key=lambda at: sum(objective.score((total + said[at]) / whole, labels)))
        total = total + said[best]
        counts[best] += 1
    return counts
