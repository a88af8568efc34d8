"""Choose the settings of Correct and Smooth by the metric on validation, never on test labels, which are no argument.

In two rounds, not over the full product: the best correction alone; then the best smoothing, after that correction and
after none. "Nothing" is in both rounds and wins ties, so the score on validation cannot fall, and fewer trials on the
same validation nodes fit them less by chance. Tuning the alphas on test accuracy is a known fault of public scripts.

Cost: 12 + 1 corrections and 2 × 6 smoothings of 20 steps with the default grid, each step O(E·C). A trial is made for
the validation nodes alone; the best correction and, at the end, what won are computed for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from operator import itemgetter

from gamlp.graph.graph import Adjacency
from gamlp.graph.splits import Split
from gamlp.labels.correction import CorrectAndSmooth, Correction, Smoothing, correct, correct_and_smooth, known_rows
from gamlp.labels.hops import check_rows
from gamlp.progress import log, progress
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.normalize import Normalization
from gamlp.storage.files import Array
from gamlp.targets.objective import Objective

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
    objective: Objective | None = None,
) -> tuple[CorrectAndSmooth, Array]:
    """Return the settings with the best score on validation and what they make of `probabilities` (N, C).

    train_labels and valid_labels have one entry per id of split.train and split.valid.
    """
    check_rows(split.valid, valid_labels, "validation")
    if not len(split.valid):
        log.warning("Correct and smooth has no effect: there are no validation nodes to choose its settings on.")
        return CorrectAndSmooth(None, None), probabilities
    attempt = partial(correct_and_smooth, engine, probabilities, adjacency, split.train, train_labels)
    objective = objective or Objective()
    best = (objective.score(probabilities[split.valid], valid_labels)[0], CorrectAndSmooth(None, None))
    with progress("correct and smooth", total=len(corrections) + 2 * len(smoothings)) as advance:

        def try_out(settings: CorrectAndSmooth, corrected: Array | None = None) -> None:
            nonlocal best
            found = attempt(settings=settings, rows=split.valid, corrected=corrected)
            score = objective.score(found, valid_labels)[0]
            best = max(best, (score, settings), key=itemgetter(0))  # the first of equals
            advance(note=objective.note(best[0]))

        for correction in corrections:
            try_out(CorrectAndSmooth(correction, None))
        chosen, corrected = best[1].correction, None
        if chosen is not None:
            known = known_rows(probabilities, split.train, train_labels)
            corrected = correct(engine, probabilities, adjacency, known, chosen)
        for start, smoothing in product(dict.fromkeys([None, chosen]), smoothings):
            try_out(CorrectAndSmooth(start, smoothing), corrected)
    return best[1], attempt(settings=best[1], corrected=corrected)
