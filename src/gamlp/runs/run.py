"""A run: one method on one graph over several seeds, in a directory that holds all that is needed afterwards.

    run.json              what was asked, and the result once there is one
    seed-0/               model.safetensors + model.json, probabilities, attention, history.json, result.json
    predictions.parquet   the best seed on validation, with the ids that came in

A run that was killed is taken up again from its directory: finished seeds and stages are read, not trained again.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError, InputError, StorageError
from gamlp.graph.graph import Graph, check_trainable
from gamlp.machine.peak_memory import peak_bytes
from gamlp.methods import Method, method_named
from gamlp.progress import progress
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import Recipe, load_recipe
from gamlp.runs.record import read_record
from gamlp.storage.files import write_json
from gamlp.storage.locks import is_bare, locked
from gamlp.train.distributed import ranks
from gamlp.train.metrics import mean_and_std
from gamlp.train.one_seed import Task, train_seed
from gamlp.train.prepare import Workshop, check_device


@dataclass(frozen=True)
class Order:
    """What is asked for; run.json keeps it, so that a run can be resumed and repeated."""

    method: str
    recipe: str
    overrides: Mapping[str, Any]
    seeds: Sequence[int]
    device: str = "cpu"
    source: Mapping[str, Any] | None = None  # how the graph was read, for reading it again

    def task(self, graph: Graph) -> Task:
        """Settle every setting for this graph."""
        return task_of(method_named(self.method), load_recipe(self.recipe), self.overrides, graph, self)

    def with_usual_method(self, graph: Graph) -> Order:
        """Return the order with the method that its recipe has for such a graph."""
        outline = Outline.of(graph, graph.split_for(self.seeds[0]))
        method = load_recipe(self.recipe).method_for(outline)
        if self.overrides.get("rows", "all") != "all":
            method = method.removesuffix("+cs")  # it needs all nodes
        return replace(self, method=method)


def task_of(method: Method, recipe: Recipe, overrides: Mapping[str, Any], graph: Graph, order: Order) -> Task:
    """Return the method with the settings that recipe, graph and user give it; refuse what could not be trained."""
    check_device(order.device)
    split = graph.split_for(order.seeds[0])
    check_trainable(graph, split)
    if method.kind == "message-passing":
        from gamlp.message_passing.settings import options_for

        options = {**recipe.own(method), **overrides}
        options_for(method.base, options)
        task = Task(method, None, options, order.device)
    else:
        task = Task(method, recipe.resolve(method, overrides, Outline.of(graph, split)), {}, order.device)
    check_task(task, graph)
    return task


def check_task(task: Task, graph: Graph) -> None:
    """Refuse a method that such a graph does not suit, and settings that do not fit it."""
    task.method.check(graph, task.method.settings_from(task.options) if task.settings is None else task.settings)


def train_run(
    graph: Graph, order: Order, *, folder: Path | None, cache: Path | None = None, workshop: Workshop | None = None
) -> dict[str, Any]:
    """Train all seeds and return the result; with a folder everything is kept there, and taken up again from there."""
    task = order.task(graph)
    workshop = workshop or Workshop(graph, cache=cache, device=order.device)
    workshop.keep = workshop.keep or folder
    with nullcontext() if folder is None or is_finished(folder) or ranks().rank else locked(folder):
        return train_seeds(graph, order, task, workshop, folder)


def is_finished(folder: Path) -> bool:
    """Say whether a folder holds a run with a result, so that nothing will be written there."""
    return (folder / "run.json").is_file() and "result" in read_record(folder)


def train_seeds(graph: Graph, order: Order, task: Task, workshop: Workshop, folder: Path | None) -> dict[str, Any]:
    """Train the seeds that are not finished, and return the result of all."""
    record = open_record(graph, order, task, folder)
    if "result" in record:
        return dict(record["result"])
    started = time.perf_counter()
    results = []
    with progress("seeds", total=len(order.seeds)) as advance:
        for seed in order.seeds:
            results.append(train_seed(workshop, task, seed=seed, folder=folder and folder / f"seed-{seed}"))
            advance(1)
    result = summary(graph, order, results, seconds=time.perf_counter() - started) | {"run": folder and str(folder)}
    if folder is not None:
        from gamlp.runs.predictions import write_predictions

        write_predictions(graph, folder, best_seed(results))
        write_json(folder / "run.json", {**record, "result": result})
    return result


def open_record(graph: Graph, order: Order, task: Task, folder: Path | None) -> dict[str, Any]:
    """Begin run.json, or check that the one that is there belongs to this graph and order."""
    import numpy
    import torch

    import gamlp

    record: dict[str, Any] = {
        "format": 1,
        "dataset": graph.name,
        "graph": dict(order.source or {}),
        "fingerprint": graph.fingerprint,
        **({"notes": list(graph.notes)} if graph.notes else {}),
        "method": order.method,
        "recipe": order.recipe,
        "overrides": dict(order.overrides),
        "seeds": list(order.seeds),
        "device": order.device,
        "settings": task.settings.model_dump(mode="json") if task.settings else task.options,
        "versions": {"gamlp": gamlp.__version__, "torch": torch.__version__, "numpy": numpy.__version__},
        "machine": f"{platform.machine()}, {platform.system()}, {torch.get_num_threads()} threads",
    }
    if folder is None:
        return record
    if (folder / "run.json").exists():
        there = read_record(folder)
        for key in ("fingerprint", "method", "settings", "seeds"):
            if there.get(key) != record[key]:
                raise StorageError(
                    f"{folder} holds another run: its {key} differs.\nResume it as it was, or choose another --out."
                )
        return there
    if folder.exists() and not is_bare(folder):
        raise InputError(f"{folder} is there, and neither empty nor a run.\nChoose a new folder with --out.")
    write_json(folder / "run.json", record)
    return record


def order_of(record: Mapping[str, Any]) -> Order:
    """Return what a run.json asked for."""
    try:
        asked = [record[key] for key in ("method", "recipe", "overrides", "seeds", "device", "graph")]
    except KeyError as error:
        raise FormatError(f"run.json does not say {error}.\nRestore it, or train again.") from error
    return Order(*asked)


def summary(graph: Graph, order: Order, results: list[dict[str, Any]], *, seconds: float) -> dict[str, Any]:
    """Return mean ± std over the seeds of everything that was scored."""
    total: dict[str, Any] = {"dataset": graph.name, "method": order.method, "recipe": order.recipe}
    for name in ("accuracy", "macro_f1", "log_loss"):
        for part in ("valid", "test"):
            values = [result[f"{part}_{name}"] for result in results]
            mean, std = (None, None) if None in values else mean_and_std(values)
            total |= {f"{part}_{name}": mean, f"{part}_{name}_std": std}
    return total | {
        "parameters": results[0]["parameters"],
        "seeds": list(order.seeds),
        "seconds": seconds,
        "seconds_per_seed": sum(result["seconds"] for result in results) / len(results),
        "peak_memory_bytes": peak_bytes(),
        "best_seed": best_seed(results),
        "runs": results,
    }


def best_seed(results: list[dict[str, Any]]) -> int:
    """Return the seed with the best validation accuracy; without validation nodes the first."""
    return int(max(results, key=lambda result: result["valid_accuracy"] or 0)["seed"])
