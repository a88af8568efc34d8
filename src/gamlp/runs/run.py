"""A run: one method on one graph over several seeds, in a directory that holds all that is needed afterwards.

    run.json              the specification (runs/spec.py), and the result once there is one
    seed-0/               model.safetensors + model.json, probabilities, attention, history.json, result.json
    predictions.parquet   the best seed on validation, with the ids that came in

A run that was killed is taken up again from its directory: finished seeds and stages are read, not trained again. Of
several processes, the first keeps the run directory, the others train beside it and write nothing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

from gamlp.errors import InputError, SettingsError
from gamlp.graph.graph import Graph
from gamlp.machine.facts import peak_bytes
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.progress import progress
from gamlp.runs.predictions import write_predictions
from gamlp.runs.record import SCORES, Record, as_data, check_goes_on, check_version, new_record, read_run
from gamlp.runs.seed import train_seed
from gamlp.runs.spec import RunSpec, Spec
from gamlp.runs.start import START, start_of
from gamlp.storage.files import write_json
from gamlp.storage.locks import is_bare, locked
from gamlp.targets.metrics import METRICS, Metric, mean_and_std
from gamlp.targets.registry import kind_of
from gamlp.train.distributed import Ranks, ranks
from gamlp.train.hop_source import HopSource


def train_run(graph: Graph, spec: RunSpec, *, folder: Path | None, source: HopSource | None = None) -> dict[str, Any]:
    """Train all seeds and return the result; with a folder everything is kept there, and taken up again from there.

    `source` may be that of other runs: those that propagate alike share their hops.
    """
    pipeline = pipeline_of(spec, source or hop_source_of(spec, folder))
    finished = folder is not None and (folder / "run.json").is_file() and read_run(folder).result is not None
    with nullcontext() if folder is None or finished or ranks().rank else locked(folder):
        return train_seeds(graph, spec, pipeline, folder)


def train_together(graph: Graph, spec: RunSpec, *, folder: Path, together: Ranks) -> dict[str, Any] | None:
    """Train all seeds with all ranks; the first rank returns the result, the others None; one rank is `train_run`.

    Where there is a cache that all ranks see, the first rank propagates and the others read; otherwise each propagates
    for itself.
    """
    if together.count == 1:
        return train_run(graph, spec, folder=folder)
    pipeline = pipeline_of(spec, hop_source_of(spec, folder))
    if not pipeline.method.on_hops:
        raise SettingsError(
            f"{spec.method} trains in one process.\nOnly methods on hops (gamlp-…, sgc, …) share out their batches."
        )
    missing: list[int] = []
    if together.rank == 0 and open_run(graph, spec, folder).result is None:
        missing = unfinished(spec.seeds, folder)
    missing = together.from_first(missing)
    if together.rank == 0:
        return train_run(graph, spec, folder=folder)
    for seed in missing:
        pipeline.fit(graph, graph.split_for(seed), seed)
    return None


def unfinished(seeds: Sequence[int], folder: Path) -> list[int]:
    """Return the seeds of a run that have no result yet."""
    return [seed for seed in seeds if not (folder / f"seed-{seed}" / "result.json").exists()]


def pipeline_of(spec: RunSpec, source: HopSource) -> Pipeline:
    """Return the pipeline that a specification describes."""
    method = method_named(spec.method)
    start = None if spec.start is None else cache(partial(start_of, spec.start, device=spec.device, source=source))
    return Pipeline(method, method.settings_from(spec.settings), device=spec.device, hop_source=source, start=start)


def hop_source_of(spec: Spec, folder: Path | None) -> HopSource:
    """Open the engine; within a memory limit, and without a cache, hops lie in the run's own folder."""
    engine = spec.engine
    if folder is not None and engine.cache is None and engine.memory is not None:
        engine = engine.model_copy(update={"cache": folder / "hops"})
    return HopSource(engine.open(device=spec.device), work=folder)


def train_seeds(graph: Graph, spec: RunSpec, pipeline: Pipeline, folder: Path | None) -> dict[str, Any]:
    """Train the seeds that are not finished, and return the result of all."""
    record = open_run(graph, spec, folder)
    if record.result is not None:
        return dict(record.result)
    started = time.perf_counter()
    results = []
    with progress("seeds", total=len(spec.seeds)) as advance, pipeline.hop_source.engine.session():
        for seed in spec.seeds:
            results.append(train_seed(pipeline, graph, seed=seed, folder=folder and folder / f"seed-{seed}"))
            advance(1)
    metric = kind_of(graph.labels).metric(pipeline.settings)
    result = summary(graph, spec, results, metric, seconds=time.perf_counter() - started)
    result["run"] = folder and str(folder)
    if folder is not None:
        write_predictions(graph, folder, result["best_seed"])
        write_json(folder / "run.json", as_data(record) | {"result": result})
    return result


def open_run(graph: Graph, spec: RunSpec, folder: Path | None) -> Record:
    """Begin run.json, or check that the one that is there is of this graph and specification."""
    if folder is not None and (folder / "run.json").exists():
        there = begun(folder)
        check_goes_on(there, spec, graph, folder, what="run", keys=("method", "settings", "seeds"))
        return there
    record = new_record(graph, spec)
    if folder is not None:
        if folder.exists() and not is_bare(folder):
            raise InputError(f"{folder} is there, and neither empty nor a run.\nChoose a new folder with --out.")
        write_json(folder / "run.json", as_data(record))
    return record


def remove_run(folder: Path) -> None:
    """Remove the run that is in a folder, to make place for another; a folder that is none is left alone."""
    if folder.exists() and not is_bare(folder):
        read_run(folder)  # refuses what is no run
        with locked(folder):
            shutil.rmtree(folder)


def begun(folder: Path) -> Record:
    """Return the record of a run that is to go on."""
    record = read_run(folder)
    if record.result is None:
        check_version(record, folder)
    return record


def summary(
    graph: Graph, spec: RunSpec, results: list[dict[str, Any]], metric: Metric, *, seconds: float
) -> dict[str, Any]:
    """Return mean ± std over the seeds of everything that was scored; without validation nodes the first is best."""
    total: dict[str, Any] = {"dataset": graph.name, "method": spec.method, "recipe": spec.recipe, "metric": metric.name}
    for name in (name for name in SCORES if name in results[0]):
        values = [result[name] for result in results]
        mean, std = (None, None) if None in values else mean_and_std(values)
        total |= {name: mean, f"{name}_std": std}
    if spec.start is not None:
        key = START.format(metric.name)
        before = [result[key] for result in results]
        total |= {key: None if None in before else mean_and_std(before)[0], "from": str(spec.start)}
    each = sum(result["seconds"] for result in results) / len(results)
    best = max(results, key=lambda result: chosen_by(result, metric))
    return total | {
        "parameters": results[0]["parameters"], "seeds": list(spec.seeds), "seconds": seconds,
        "seconds_per_seed": each, "peak_memory_bytes": peak_bytes(), "best_seed": best["seed"], "runs": results,
    }  # fmt: skip


def chosen_by(result: Mapping[str, Any], metric: Metric) -> float:
    """Return what the best seed has most of: the metric on validation, or where it is not defined −log loss."""
    for one in (metric, METRICS["log_loss"]):
        if (value := result[f"valid_{one.name}"]) is not None:
            return one.better(value)
    return 0.0
