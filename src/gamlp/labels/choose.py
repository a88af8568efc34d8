"""Choose the settings of Correct and Smooth on validation accuracy, never on test labels, which are no argument.

In two rounds, not over the full product: the best correction alone; then the best smoothing, after that correction and
after none. "Nothing" is in both rounds and wins ties, so validation accuracy cannot fall, and fewer trials on the same
validation nodes fit them less by chance. Tuning the alphas on test accuracy is a known fault of public scripts.

Cost: 18 corrections and 2 × 6 smoothings of 20 steps with the default grid, each step O(E·C). A trial is made for the
validation nodes alone; what won is then computed for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np

from gamlp.graph.graph import Adjacency
from gamlp.graph.splits import Split
from gamlp.labels.correction import CorrectAndSmooth, Correction, Smoothing, correct_and_smooth
from gamlp.labels.initial import check_rows
from gamlp.progress import progress
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.normalize import Normalization
from gamlp.storage.files import Array

NORMALIZATIONS = tuple(Normalization(r=r, self_loops=False) for r in (0.5, 0.0, 1.0))
ALPHAS = (0.6, 0.9)
STEPS = 20  # 50 chose the same settings on Cora and debian, with the same accuracy, at 2.5 times the cost
CORRECTIONS = tuple(Correction(a, s, n, STEPS) for a, s, n in product(ALPHAS, (None, 1.0), NORMALIZATIONS))
SMOOTHINGS = tuple(Smoothing(a, n, STEPS) for a, n in product(ALPHAS, NORMALIZATIONS))


def choose_correct_and_smooth(
    engine: Engine,
    probabilities: Array,
    adjacency: Adjacency,
    split: Split,
    train_labels: Array,
    valid_labels: Array,
    *,
    corrections: Sequence[Correction] = CORRECTIONS,
    smoothings: Sequence[Smoothing] = SMOOTHINGS,
) -> tuple[CorrectAndSmooth, Array]:
    """Return the settings with the best validation accuracy and what they make of `probabilities` (N, C).

    train_labels and valid_labels have one entry per id of split.train and split.valid.
    """
    check_rows(split.valid, valid_labels, "validation")
    best = Best(probabilities[split.valid], valid_labels)
    attempt = partial(correct_and_smooth, engine, probabilities, adjacency, split.train, train_labels)
    with progress("correct and smooth", total=len(corrections) + 2 * len(smoothings)) as advance:

        def try_out(settings: CorrectAndSmooth) -> None:
            best.offer(settings, attempt(settings=settings, rows=split.valid))
            advance(note=f"valid {best.accuracy:.4f}")

        for correction in corrections:
            try_out(CorrectAndSmooth(correction, None))
        starts = dict.fromkeys([None, best.settings.correction])
        for start, smoothing in product(starts, smoothings):
            try_out(CorrectAndSmooth(start, smoothing))
    return best.settings, attempt(settings=best.settings)


class Best:
    """The best settings so far on the validation nodes; the first of equals stays."""

    def __init__(self, probabilities: Array, valid_labels: Array) -> None:
        self.valid_labels, self.settings = valid_labels, CorrectAndSmooth(None, None)
        self.accuracy = self.accuracy_of(probabilities)

    def accuracy_of(self, probabilities: Array) -> float:
        """Return the share of validation nodes that are right; 0 without any, so that nothing is changed."""
        right = probabilities.argmax(axis=1) == self.valid_labels
        return float(np.mean(right)) if len(right) else 0.0

    def offer(self, settings: CorrectAndSmooth, probabilities: Array) -> None:
        """Keep what is better than all before; probabilities (valid, C)."""
        accuracy = self.accuracy_of(probabilities)
        if accuracy > self.accuracy:
            self.settings, self.accuracy = settings, accuracy
