"""What a finished fit is worth, as run.json keeps it: reliability before and after, coverage, shift.

Labels of test nodes are read here, as any score reads them, after everything is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.storage.files import Array
from gamlp.trust.reliability import reliability_data

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.splits import Split
    from gamlp.pipeline import Fitted

COVERAGES = (0.8, 0.9, 0.95)


def trust_data(fitted: Fitted, graph: Graph, split: Split) -> dict[str, Any]:
    """Return the temperature, how reliable probabilities are before and after, coverage on test nodes, and shift."""
    said, before = fitted.prediction, fitted.uncalibrated
    assert said is not None and before is not None
    if graph.labels.ndim > 1:  # several labels a node are neither calibrated nor put into sets
        return {}
    found: dict[str, Any] = {"temperature": 1.0}
    for name, ids in {"valid": split.valid, "test": split.test}.items():
        ids = ids[graph.labels[ids] >= 0]  # noqa: PLW2901
        if len(ids):
            at = np.searchsorted(said.rows, ids)
            values = {"before": before[at], "after": said.probabilities[at]}
            found[name] = {when: reliability_data(some, graph.labels[ids]) for when, some in values.items()}
    if fitted.trust is None:
        return found
    found |= fitted.trust.data() | {"calibration_nodes": len(fitted.trust.conformal.scores)}
    return found | {"coverage": coverage_data(fitted, graph, split)}


def coverage_data(fitted: Fitted, graph: Graph, split: Split) -> list[dict[str, Any]]:
    """Return coverage and size of the sets of test nodes for each level that there are calibration nodes for."""
    said, trust = fitted.prediction, fitted.trust
    assert said is not None and trust is not None
    ids = split.test[graph.labels[split.test] >= 0]
    at, labels = np.searchsorted(said.rows, ids), graph.labels[ids]
    if not len(ids):
        return []
    levels = [level for level in COVERAGES if trust.conformal.promises(level)]
    like = trust.own_likeness
    return [set_data(fitted.sets(said, graph, level, like=like)[at], labels) | {"asked": level} for level in levels]


def set_data(sets: Array, labels: Array) -> dict[str, Any]:
    """Return coverage, size and the coverage of each class of n ≥ 1 nodes, (n, C) bool, (n,); None = no such node."""
    covered, sizes, classes = sets[np.arange(len(labels)), labels], sets.sum(axis=1), sets.shape[1]
    nodes, hits = np.bincount(labels, minlength=classes), np.bincount(labels[covered], minlength=classes)
    shares = [int(hit) / int(count) if count else None for hit, count in zip(hits, nodes, strict=True)]
    return {
        "coverage": float(covered.mean()),
        "mean_size": float(sizes.mean()),
        "empty": float((sizes == 0).mean()),
        "one_class": float((sizes == 1).mean()),
        "class_coverage": shares,
        "class_nodes": nodes.tolist(),
    }
