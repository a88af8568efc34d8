"""One seed of one method on one graph: through the pipeline, then scores and files.

    checksums.json  the hash of rows, probabilities, attention, history and model.json, and of what result.json says
    model.json      the hash of the weights in model.safetensors
    run.json        the results of all seeds

The files are bound together: those swapped between runs, or changed since, are refused. Labels of test nodes are read
in `evaluate` and in `trust.measure`, which score, and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.pipeline import Fitted, Pipeline
from gamlp.runs.start import START
from gamlp.storage.checksums import another_run, check_files, checksums_of, json_digest
from gamlp.storage.files import read_json, write_array, write_json
from gamlp.targets.registry import kind_of
from gamlp.train.checkpoint import remove_stages
from gamlp.train.prediction import Prediction
from gamlp.trust.measure import trust_data

CHECKSUMS = "checksums.json"
CHECKSUMS_OF_0_1 = "seals.json"
FILES = ("rows.npy", "probabilities.npy", "attention.npy", "relations.json", "history.json", "model.json")


def train_seed(pipeline: Pipeline, graph: Graph, *, seed: int, folder: Path | None) -> dict[str, Any]:
    """Train one seed, or read what a finished one left; return its result."""
    if folder is not None and (finished := kept_result(folder)) is not None:
        remove_stages(folder)
        return finished
    started = time.perf_counter()
    split = graph.split_for(seed)
    fitted = pipeline.fit(graph, split, seed, folder=folder)
    assert fitted.prediction is not None
    metric = kind_of(graph.labels).metric(pipeline.settings)
    start = None if pipeline.start is None else evaluate(pipeline.start(seed).predict(graph, split=split), graph, split)
    before = {} if start is None else {START.format(metric.name): start[f"valid_{metric.name}"]}
    result = {
        "seed": seed,
        **before,
        **evaluate(fitted.prediction, graph, split),
        "trust": trust_data(fitted, graph, split),
        **{name: fitted.facts[name] for name in ("parameters", "stages")},
        **({"tried": fitted.facts["tried"]} if fitted.facts["tried"] else {}),
        "seconds": time.perf_counter() - started,
    }
    if folder is not None:
        keep(fitted, result, folder)
    return result


def evaluate(prediction: Prediction, graph: Graph, split: Split) -> dict[str, Any]:
    """Score the validation and test nodes that have labels."""
    result: dict[str, Any] = {}
    kind = kind_of(graph.labels)
    for name, ids in {"valid": split.valid, "test": split.test}.items():
        ids = ids[kind.known(graph.labels[ids])]  # noqa: PLW2901
        found = kind.scores(prediction.probabilities[np.searchsorted(prediction.rows, ids)], graph.labels[ids])
        result |= {f"{name}_{metric}": None if isnan(value) else value for metric, value in found.items()}
    return result


def keep(fitted: Fitted, result: dict[str, Any], folder: Path) -> None:
    """Write what a finished seed gives, and the checksums; result.json, written last, says that it is whole."""
    assert fitted.prediction is not None
    fitted.save(folder)
    write_array(folder / "rows.npy", fitted.prediction.rows)
    write_array(folder / "probabilities.npy", fitted.prediction.probabilities.astype(np.float32, copy=False))
    if fitted.prediction.weights is not None:
        write_array(folder / "attention.npy", fitted.prediction.weights)
    if fitted.facts["relations"]:
        write_json(folder / "relations.json", fitted.facts["relations"])
    write_json(folder / "history.json", fitted.facts["history"])
    files = checksums_of(folder / name for name in FILES)
    write_json(folder / CHECKSUMS, {"files": files, "result": json_digest(result)})
    write_json(folder / "result.json", result)
    remove_stages(folder)


def kept_result(folder: Path) -> dict[str, Any] | None:
    """Return the result of a finished seed, or None where it is not finished."""
    path = folder / "result.json"
    if not path.exists():
        return None
    result = read_json(path)
    if not isinstance(result, dict):
        raise FormatError(f"{path} does not hold the result of a seed.\nRestore it, or train again.")
    found = recorded_checksums(folder)
    if "result" in found and json_digest(result) != found["result"]:
        raise another_run(path)
    return result


def check_kept(folder: Path, *, record: Mapping[str, Any] | None = None, names: Iterable[str] | None = None) -> None:
    """Refuse a seed's folder whose files are not those that it was finished with, or are of another run than `record`.

    With `names` only these files are looked at; runs of versions without checksums are taken as they are.
    """
    result = kept_result(folder)
    mine = [json_digest(one) for one in record["result"]["runs"]] if record is not None else []
    if record is not None and result is not None and json_digest(result) not in mine:
        raise another_run(folder / "result.json")
    check_files(folder, recorded_checksums(folder).get("files", {}), names)


def recorded_checksums(folder: Path) -> dict[str, Any]:
    """Return what the files of a seed must be; nothing, where it has none."""
    path = folder / CHECKSUMS
    path = path if path.exists() else folder / CHECKSUMS_OF_0_1
    found = read_json(path) if path.exists() else {}
    if not isinstance(found, dict) or not isinstance(found.get("files", {}), dict):
        raise FormatError(f"{path} does not describe the files of a seed.\nRestore it, or train again.")
    return found
