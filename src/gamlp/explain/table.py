"""The predictions that a page can hold: all of a small graph, the most telling ones of a large one.

Of more than 2,000 rows these are shown: every test node that was given another class with great confidence, then the
test nodes about which the run is least sure, then a sample of all rows drawn by a fixed seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gamlp.explain.finished_run import FinishedRun
from gamlp.storage.files import Array

ROWS = 2_000
DOUBTED = 2_000
SURE = 0.9
LONGEST_NAME = 120


def page_table(run: FinishedRun) -> dict[str, Any]:
    """Return the rows as plain lists: id, predicted, confidence, label, set, degree; classes and sets as numbers."""
    chosen = chosen_rows(run)
    member = np.zeros(run.graph.nodes, dtype=np.int8)
    for number, name in enumerate(("train", "valid", "test"), start=1):
        member[getattr(run.split, name)] = number
    columns = (
        [shortened(run.name_of(int(node))) for node in run.rows[chosen]],
        run.predicted[chosen].tolist(),
        [round(float(value), 4) for value in run.confidence[chosen]],
        run.labels[chosen].tolist(),
        member[run.rows[chosen]].tolist(),
        run.degrees[chosen].tolist(),
    )
    return {
        "classes": [shortened(name) for name in run.classes],
        "sets": ["", "train", "valid", "test"],
        "total": len(run.rows),
        "rows": list(zip(*columns, strict=True)),
    }


def doubted(run: FinishedRun, *, least: float = 0.0, most: int = 100) -> Array:
    """Return the rows of test nodes given another class with a confidence of `least`, the surest first.

    Such a node is a mistake of the run, or of whoever labelled it: worth a look by hand.
    """
    wrong = run.test[~run.right]
    wrong = wrong[run.confidence[wrong] >= least]
    return np.asarray(wrong[np.argsort(-run.confidence[wrong], kind="stable")][:most])


def chosen_rows(run: FinishedRun) -> Array:
    """Return which rows are shown, the doubted ones first."""
    if len(run.rows) <= ROWS:
        return np.arange(len(run.rows))
    sure_and_wrong = doubted(run, least=SURE, most=DOUBTED)
    unsure = run.test[np.argsort(run.confidence[run.test], kind="stable")][: ROWS // 2]
    sample = np.random.default_rng(0).permutation(len(run.rows))
    order = np.concatenate([sure_and_wrong, unsure, sample])
    _, first = np.unique(order, return_index=True)
    return np.asarray(order[np.sort(first)][: len(sure_and_wrong) + ROWS])


def shortened(name: str) -> str:
    """Cut a name that would fill the page."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
