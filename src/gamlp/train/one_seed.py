"""One seed of one method on one graph: from hops to probabilities, scores and files.

Labels of test nodes are read in `judge` and nowhere else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph, check_trainable
from gamlp.graph.splits import Split
from gamlp.methods import Method
from gamlp.model import count_parameters
from gamlp.propagate.engines.local import LocalEngine
from gamlp.runs.seed_files import keep_result, kept_result
from gamlp.settings import Settings
from gamlp.storage.files import Array, forget, write_array, write_json
from gamlp.train.checkpoint import save_tensors
from gamlp.train.metrics import scores
from gamlp.train.model_file import Model, save_model
from gamlp.train.prepare import Workshop, target_rows
from gamlp.train.stages import train_stages
from gamlp.train.subset_shares import subset_shares


@dataclass(frozen=True)
class Task:
    """What is to be trained: a method with its settings (message-passing methods have options of their own)."""

    method: Method
    settings: Settings | None
    options: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"


@dataclass(frozen=True)
class Learned:
    """What a method gives for the rows it was asked for."""

    rows: Array  # (R,) node ids
    probabilities: Array  # (R, C)
    weights: Array | None  # (R, K+1) attention over the hops
    parameters: int
    history: list[dict[str, float]]
    stages: list[dict[str, float]]
    relations: dict[str, Any] = field(default_factory=dict)  # shares of relation subsets and relations


def train_seed(workshop: Workshop, task: Task, *, seed: int, folder: Path | None) -> dict[str, Any]:
    """Train one seed, or read what a finished one left; return its result."""
    if folder is not None and (finished := kept_result(folder)) is not None:
        remove_stages(folder)
        return finished
    started = time.perf_counter()
    graph = workshop.graph
    split = graph.split_for(seed)
    check_trainable(graph, split)
    kind = {"network": learn_network, "label-propagation": learn_by_spreading, "message-passing": learn_by_messages}
    learned = kind[task.method.kind](workshop, task, hide(graph, split), split, seed=seed, folder=folder)
    learned = corrected(learned, graph, split, task)
    result = {
        "seed": seed,
        **judge(learned, graph, split),
        "parameters": learned.parameters,
        "stages": learned.stages,
        "seconds": time.perf_counter() - started,
    }
    if folder is not None:
        keep(learned, result, folder)
    return result


def hide(graph: Graph, split: Split) -> Graph:
    """Return the graph with the labels of train and valid only: no other label reaches training."""
    labels = np.full_like(graph.labels, -1)
    for ids in (split.train, split.valid):
        labels[ids] = graph.labels[ids]
    return graph.with_labels(labels)


def learn_network(
    workshop: Workshop, task: Task, graph: Graph, split: Split, *, seed: int, folder: Path | None
) -> Learned:
    """Train a network on hops, stage by stage."""
    assert task.settings is not None
    hops = workshop.hops(task.settings, split)
    trained = train_stages(graph, split, hops, task.settings, seed=seed, folder=folder, device=task.device)
    subsets = workshop.subsets(task.settings)
    if folder is not None:
        scaling = workshop.scaling(task.settings)
        width = graph.features.shape[1]
        model = Model(trained.network, task.settings, scaling, width, graph.classes, task.method.name, subsets)
        save_model(model, folder)
    return Learned(
        rows=np.arange(graph.nodes) if hops.rows is None else hops.rows,
        probabilities=trained.probabilities,
        weights=trained.weights,
        parameters=count_parameters(trained.network),
        history=trained.history,
        stages=trained.stages,
        relations=subset_shares(trained.network, hops, split.train, subsets),
    )


def learn_by_spreading(
    workshop: Workshop, task: Task, graph: Graph, split: Split, *, seed: int, folder: Path | None
) -> Learned:
    """Spread the training labels; α is chosen on validation."""
    from gamlp.labels import label_propagation
    from gamlp.train.metrics import accuracy

    tried = [
        label_propagation(
            LocalEngine(device=task.device),
            graph.adjacency,
            split.train,
            graph.labels[split.train],
            classes=len(graph.classes),
            alpha=alpha,
        )
        for alpha in (0.5, 0.8, 0.9, 0.99)
    ]
    best = max(tried, key=lambda y: accuracy(y[split.valid], graph.labels[split.valid]) if len(split.valid) else 0)
    rows = target_rows(graph)
    return Learned(rows, best[rows], None, 0, [], [])


def learn_by_messages(
    workshop: Workshop, task: Task, graph: Graph, split: Split, *, seed: int, folder: Path | None
) -> Learned:
    """Train a message-passing network through PyG."""
    from gamlp.message_passing.fit import fit

    graph = workshop.with_features(graph)
    fitted = fit(task.method.base, graph, split, options=task.options, seed=seed, device=task.device)
    rows = target_rows(graph)
    if folder is not None:
        save_tensors(folder / "model.safetensors", fitted.state, {})
    return Learned(rows, fitted.probabilities[rows], None, fitted.parameters, fitted.history, [])


def corrected(learned: Learned, graph: Graph, split: Split, task: Task) -> Learned:
    """Correct and smooth the probabilities where the method says so."""
    wanted = task.method.fixed.get("correct_and_smooth") or (task.settings and task.settings.correct_and_smooth)
    if not wanted:
        return learned
    if len(learned.rows) != graph.nodes:
        raise SettingsError(
            "Correct and smooth needs predictions for all nodes.\nUse --set rows=all, or leave out +cs."
        )
    from dataclasses import replace

    from gamlp.labels import choose_correct_and_smooth

    _, better = choose_correct_and_smooth(
        LocalEngine(device=task.device),
        learned.probabilities,
        graph.adjacency,
        split,
        graph.labels[split.train],
        graph.labels[split.valid],
    )
    return replace(learned, probabilities=better)


def judge(learned: Learned, graph: Graph, split: Split) -> dict[str, Any]:
    """Score the validation and test nodes that have labels; the only place where test labels are read."""
    result: dict[str, Any] = {}
    for name, ids in {"valid": split.valid, "test": split.test}.items():
        ids = ids[graph.labels[ids] >= 0]  # noqa: PLW2901
        found = scores(learned.probabilities[np.searchsorted(learned.rows, ids)], graph.labels[ids])
        result |= {f"{name}_{metric}": value if len(ids) else None for metric, value in found.items()}
    return result


def keep(learned: Learned, result: dict[str, Any], folder: Path) -> None:
    """Write what a finished seed gives; result.json, written last, says that it is whole. Stage files then go."""
    write_array(folder / "rows.npy", learned.rows)
    write_array(folder / "probabilities.npy", learned.probabilities.astype(np.float32))
    if learned.weights is not None:
        write_array(folder / "attention.npy", learned.weights)
    if learned.relations:
        write_json(folder / "relations.json", learned.relations)
    write_json(folder / "history.json", learned.history)
    keep_result(folder, result)
    remove_stages(folder)


def remove_stages(folder: Path) -> None:
    """Remove what a finished seed no longer needs; also where a kill came before this was done."""
    for file in folder.glob("stage-*"):
        forget(file)
