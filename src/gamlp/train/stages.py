"""The stages: reliable label utilization, SLE, or a single stage (paper, section 3.3).

    Ŷ⁰ᵢ = Yᵢ for training nodes,  Pᵢ of the stage before for reliable nodes,  0 elsewhere
    Pᵐ  = softmax(H/T),           reliable: valid and test nodes with max P > ε

Feature hops are computed once and given in; label hops run once a stage. Every stage has a network of its own and hands
its logits on. What a stage learns from and reads is the same in training and prediction, `stage_data` and
`stage_inputs`: the training graph, given again, comes out the same to the bit. A finished stage is kept on disk before
the next begins, so a killed run goes on from there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.graph.graph import Adjacency, Graph
from gamlp.graph.splits import Split
from gamlp.labels import enlarged_training_set, initial_labels, label_hops, reliable_set, soften
from gamlp.labels.hops import hop_weights
from gamlp.model import Network, build_network
from gamlp.progress import log
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.hops import Hops
from gamlp.propagate.sources import OneHotRows
from gamlp.settings import Settings
from gamlp.storage.files import Array, digest
from gamlp.train.batches import seed_of
from gamlp.train.checkpoint import Checkpoint, StageFacts, read_stage, write_stage
from gamlp.train.distributed import ranks
from gamlp.train.hop_source import label_propagation_of, reliable_candidates
from gamlp.train.inputs import Inputs, predict
from gamlp.train.stage import HOPELESS, StageData, train_stage
from gamlp.train.subset_rotation import inputs_for


@dataclass(frozen=True, eq=False)
class StageTask:
    """What all stages share."""

    adjacency: Adjacency
    hops: Hops
    classes: int
    settings: Settings
    engine: Engine
    seed: int
    device: str = "cpu"
    fingerprint: str = ""  # of the graph, where stages are kept on disk
    start: tuple[Network, ...] = ()  # whose weights the stages begin with; those beyond the last begin with the last's

    @property
    def rows(self) -> Array:
        """The nodes of the rows of the hops."""
        return np.arange(self.adjacency.nodes) if self.hops.rows is None else self.hops.rows


@dataclass(frozen=True)
class Stages:
    """What the stages give: their networks up to the one that is kept, and what that one says of every row."""

    networks: list[Network]
    probabilities: Array  # (R, C)
    logits: Array  # (R, C)
    weights: Array  # (R, K+1) attention
    history: list[dict[str, float]] = field(default_factory=list)  # one entry per evaluation, with its stage
    stages: list[dict[str, float]] = field(default_factory=list)  # one entry per stage


def fit_stages(task: StageTask, known: StageData, *, folder: Path | None = None) -> Stages:
    """Train a network for every stage of `settings.epochs`; with a folder, finished and half-finished ones are kept."""
    kept: tuple[float, int, Array, Array] | None = None
    networks, history, summaries, logits = [], [], [], None
    if task.settings.consistency and not len(known.candidates):
        log.warning("The consistency loss has no effect: every node trains.")
    for stage in range(len(task.settings.epochs)):
        data = stage_data(task, known, logits)
        network, logits, weights, facts = fit_stage(task, data, stage, folder and folder / f"stage-{stage + 1}")
        networks.append(network)
        score, reliable = facts.best_score[0], len(data.reliable) + len(data.train) - len(known.train)
        cut = score < known.rival - HOPELESS or time.monotonic() >= known.ends  # short, perhaps: worth what it scores
        last = task.settings.keep_stage == "last"
        if kept is None or score > kept[0] or (not cut and (last or score == kept[0])):
            kept = (score, stage, logits, weights)
        history += [{"stage": stage + 1.0, **entry} for entry in facts.history]
        summary = {"epochs": facts.epoch, "best_epoch": facts.best_epoch, "reliable": reliable}
        summaries.append(summary | (known.objective.facts(score) if len(data.valid) else {}))
        log.info("stage %d: valid %.4f, %d reliable nodes", stage + 1, score, reliable)
        if stage and not reliable:
            log.warning(
                "Stage %d learned nothing from the one before: no prediction exceeded the threshold of %g "
                "(%d nodes do not train).",
                *(stage + 1, task.settings.threshold, len(known.candidates)),
            )
        if cut or score < kept[0]:
            break  # what learns from a worse stage is seldom better
    assert kept is not None
    _, chosen, logits, weights = kept
    said = known.objective.kind.probabilities(logits)
    return Stages(networks[: chosen + 1], said, logits, weights, history, summaries)


def predict_stages(task: StageTask, known: StageData, networks: list[Network]) -> Stages:
    """Run networks that were trained before, the last of which is the result."""
    data = data_of_last(task, known, networks)
    logits, weights = predict(networks[-1], stage_inputs(task, data, len(networks) - 1), task.rows)
    return Stages(networks, known.objective.kind.probabilities(logits), logits, weights)


def data_of_last(task: StageTask, known: StageData, networks: list[Network]) -> StageData:
    """Run all networks but the last, and return what the last one is given."""
    logits = None
    for stage, network in enumerate(networks[:-1]):
        data = stage_data(task, known, logits)
        logits, _ = predict(network, stage_inputs(task, data, stage), task.rows)
    return stage_data(task, known, logits)


def fit_stage(
    task: StageTask, data: StageData, stage: int, store: Path | None
) -> tuple[Network, Array, Array, StageFacts]:
    """Return a stage's network, its logits (R, C) and attention (R, K+1), and how it went; as kept, if it is done."""
    settings, width, seed = task.settings, task.hops.values.shape[-1], seed_of(task.seed, stage)
    network = build_network(settings, features=width, classes=task.classes, subsets=task.hops.subsets, seed=seed)
    if task.start:
        network.load_state_dict(task.start[min(stage, len(task.start) - 1)].state_dict())
    network.to(task.device)
    key = stage_key(task, data, stage)
    found = ranks().from_first(read_stage(store, key))
    if found is not None:
        network.load_state_dict(found[0])
        return network, *found[1:]
    inputs = stage_inputs(task, data, stage)
    checkpoint = Checkpoint(store and store.with_suffix(".checkpoint"), of=key)
    facts = train_stage(network, inputs, data, settings, task.seed, stage, checkpoint)
    logits, weights = map(ranks().gather, predict(network, inputs, ranks().share(task.rows)))
    write_stage(store, key, network, facts, logits, weights)
    checkpoint.remove()
    return network, logits, weights, facts


def known_labels(graph: Graph, split: Split, rows: Array, settings: Settings) -> StageData:
    """Take what may be known of the labels from a graph for training. Test labels do not come this far."""
    train, valid, candidates = split.train, split.valid, reliable_candidates(split, rows, settings)
    return StageData(train, graph.labels[train], valid, graph.labels[valid], candidates=candidates)


def stage_data(task: StageTask, known: StageData, logits: Array | None) -> StageData:
    """Return what the next stage learns from, given the logits of the stage before."""
    known = known._replace(teacher=np.zeros((0, task.classes), np.float32))
    if logits is None:
        return known
    candidates, threshold, kind = known.candidates, task.settings.threshold, known.objective.kind
    probabilities = soften(logits[np.searchsorted(task.rows, candidates)], task.settings.temperature, kind=kind)
    if task.settings.pseudo_labels == "train":
        train, labels = enlarged_training_set(probabilities, candidates, threshold, known.train, known.train_labels)
        order = np.argsort(train)
        return known._replace(train=train[order], train_labels=labels[order])
    reliable = reliable_set(probabilities, candidates, threshold, kind=kind)
    teacher = kind.trusted(probabilities[np.searchsorted(candidates, reliable)], threshold)
    return known._replace(reliable=reliable, teacher=teacher)


def stage_inputs(task: StageTask, data: StageData, stage: int) -> Inputs:
    """Return the rows that the network reads: the feature hops and, where it reads labels, the last hop of Ŷ⁰."""
    settings, hops, labels = task.settings, task.hops, None
    if settings.labels:
        initial, train = first_labels(task, data), data.train
        spec = label_propagation_of(settings, hops.rows)
        folds, seed = settings.label_folds, seed_of(task.seed, stage)
        weights = hop_weights(settings.label_weights, settings.label_hops)
        labels = label_hops(
            task.engine, task.adjacency, initial, spec, train_ids=train, weights=weights, folds=folds, seed=seed
        )
    return inputs_for(hops, labels, task.device, settings, memory=task.engine.memory)


def first_labels(task: StageTask, data: StageData) -> OneHotRows:
    """Return Ŷ⁰ of a stage (N, C)."""
    reliable = data.reliable if task.settings.reliable_propagation else None
    given: dict[str, Any] = {"reliable_ids": reliable, "reliable_probabilities": data.teacher}
    return initial_labels(task.adjacency.nodes, task.classes, data.train, data.train_labels, **given)


def last_labels(task: StageTask, known: StageData, networks: list[Network]) -> OneHotRows:
    """Return Ŷ⁰ of the last stage (N, C), for which the stages before it predict."""
    logits = predict_stages(task, known, networks[:-1]).logits if networks[1:] else None
    return first_labels(task, stage_data(task, known, logits))


def stage_key(task: StageTask, data: StageData, stage: int) -> str:
    """Return what tells a stage from all others, so that files of another are not taken for its own."""
    words = f"{task.settings.model_dump_json()} {task.seed} {stage} {task.fingerprint}"
    begun = [value.cpu().numpy() for network in task.start for value in network.state_dict().values()]
    return digest(words, data.train, data.train_labels, data.reliable, data.teacher, *begun)
