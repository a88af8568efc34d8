"""The labels of a run's graph that are probably wrong, by training its method again on folds (`trust.mislabelled`)."""

from __future__ import annotations

from typing import Any

from gamlp.explain.finished_run import FinishedRun
from gamlp.runs.predictions import SETS, membership
from gamlp.runs.run import hop_source_of, pipeline_of
from gamlp.runs.spec import RunSpec
from gamlp.trust.mislabelled import find_mislabelled

HEADER = ("id", "set", "label", "suggested", "margin", "agreement")


def doubted_labels(run: FinishedRun) -> list[dict[str, Any]]:
    """Return the suspected labels, the most doubtful first, by the names of `HEADER`."""
    spec = RunSpec.model_validate(run.record)
    pipeline = pipeline_of(spec, hop_source_of(spec, run.folder))
    found = find_mislabelled(pipeline, run.graph, run.split, run.seed)
    member = membership(run.graph, run.seed)
    columns = (found.nodes, found.labels, found.suggested, found.margin, found.agreement, found.suspected)
    return [
        {
            "id": run.name_of(int(node)),
            "set": SETS[member[node]],
            "label": run.classes[label],
            "suggested": run.classes[suggested],
            "margin": float(margin),
            "agreement": float(agreement),
        }
        for node, label, suggested, margin, agreement, suspected in zip(*columns, strict=True)
        if suspected
    ]
