"""One seed of one method on one graph: through the pipeline, then scores and files.

Labels of test nodes are read in `evaluate` and nowhere else.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.pipeline import Fitted, Pipeline
from gamlp.runs.seed_files import keep_result, kept_result
from gamlp.storage.files import write_array, write_json
from gamlp.train.metrics import scores
from gamlp.train.prediction import Prediction
from gamlp.train.stage_files import remove_stages


def train_seed(pipeline: Pipeline, graph: Graph, *, seed: int, folder: Path | None) -> dict[str, Any]:
    """Train one seed, or read what a finished one left; return its result."""
    if folder is not None and (finished := kept_result(folder)) is not None:
        remove_stages(folder)
        return finished
    started = time.perf_counter()
    split = graph.split_for(seed)
    fitted = pipeline.fit(graph, split, seed, folder=folder)
    assert fitted.prediction is not None
    result = {
        "seed": seed,
        **evaluate(fitted.prediction, graph, split),
        "parameters": fitted.facts["parameters"],
        "stages": fitted.facts["stages"],
        "seconds": time.perf_counter() - started,
    }
    if folder is not None:
        keep(fitted, result, folder)
    return result


def evaluate(prediction: Prediction, graph: Graph, split: Split) -> dict[str, Any]:
    """Score the validation and test nodes that have labels; the only place where test labels are read."""
    result: dict[str, Any] = {}
    for name, ids in {"valid": split.valid, "test": split.test}.items():
        ids = ids[graph.labels[ids] >= 0]  # noqa: PLW2901
        found = scores(prediction.probabilities[np.searchsorted(prediction.rows, ids)], graph.labels[ids])
        result |= {f"{name}_{metric}": value if len(ids) else None for metric, value in found.items()}
    return result


def keep(fitted: Fitted, result: dict[str, Any], folder: Path) -> None:
    """Write what a finished seed gives; result.json, written last, says that it is whole. Stage files then go."""
    assert fitted.prediction is not None
    fitted.save(folder)
    write_array(folder / "rows.npy", fitted.prediction.rows)
    write_array(folder / "probabilities.npy", fitted.prediction.probabilities.astype(np.float32))
    if fitted.prediction.weights is not None:
        write_array(folder / "attention.npy", fitted.prediction.weights)
    if fitted.facts["relations"]:
        write_json(folder / "relations.json", fitted.facts["relations"])
    write_json(folder / "history.json", fitted.facts["history"])
    keep_result(folder, result)
    remove_stages(folder)
