"""The stages: reliable label utilization, SLE, or a single stage (paper, section 3.3).

    Ŷ⁰ᵢ = Yᵢ for training nodes,  Pᵢ of the stage before for reliable nodes,  0 elsewhere
    Pᵐ  = softmax(H/T),           reliable: valid and test nodes with max P > ε

Feature hops are computed once and given in; label hops run once a stage. Every stage has a network of its own and hands
its logits on. Training and prediction are the same loop: `fit_stages` trains the network of a stage (and keeps it on
disk before the next begins, so a killed run goes on from there), `predict_stages` uses those that were trained. So the
training graph, given again, comes out the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gamlp.graph.graph import Adjacency, Graph
from gamlp.graph.splits import Split
from gamlp.labels import enlarged_training_set, initial_labels, label_hops, reliable_set, soften
from gamlp.model import Network, build_network
from gamlp.progress import log
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.hops import Hops
from gamlp.settings import Settings
from gamlp.storage.files import Array, digest
from gamlp.train.batches import seed_of
from gamlp.train.checkpoint import Checkpoint
from gamlp.train.distributed import ranks
from gamlp.train.hop_source import label_propagation_of, reliable_candidates
from gamlp.train.inputs import Inputs, predict
from gamlp.train.stage import NO_IDS, StageData, StageState, train_stage
from gamlp.train.stage_files import read_stage, write_stage
from gamlp.train.subset_rotation import inputs_for

if TYPE_CHECKING:
    Learned = tuple[Network, Array, Array, StageState]  # network, logits (R, C), weights (R, K+1), how it went


@dataclass(frozen=True)
class KnownLabels:
    """All that may be known of the labels. Test labels do not come this far."""

    train: Array
    train_labels: Array
    candidates: Array  # nodes that may become reliable
    valid: Array = field(default_factory=lambda: NO_IDS)
    valid_labels: Array = field(default_factory=lambda: NO_IDS)

    @classmethod
    def of(cls, graph: Graph, split: Split, rows: Array, settings: Settings) -> KnownLabels:
        """Take what may be known from a graph for training."""
        candidates = reliable_candidates(split, rows, settings)
        return cls(split.train, graph.labels[split.train], candidates, split.valid, graph.labels[split.valid])


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

    @property
    def rows(self) -> Array:
        """The nodes of the rows of the hops."""
        return np.arange(self.adjacency.nodes) if self.hops.rows is None else self.hops.rows


@dataclass(frozen=True)
class Stages:
    """What the stages give: their networks up to the one that is kept, and what that one says of every row."""

    networks: list[Network]
    logits: Array  # (R, C)
    weights: Array  # (R, K+1) attention
    history: list[dict[str, float]] = field(default_factory=list)  # one entry per evaluation, with its stage
    stages: list[dict[str, float]] = field(default_factory=list)  # one entry per stage

    @property
    def probabilities(self) -> Array:
        """softmax(logits), (R, C)."""
        return soften(self.logits, 1.0)


def fit_stages(task: StageTask, known: KnownLabels, *, folder: Path | None = None) -> Stages:
    """Train a network for every stage of `settings.epochs`; with a folder, finished and half-finished ones are kept."""
    settings = task.settings

    def learn(stage: int, data: StageData, inputs: Inputs) -> Learned:
        network = build_network(
            settings,
            features=task.hops.values.shape[-1],
            classes=task.classes,
            subsets=task.hops.subsets,
            seed=seed_of(task.seed, stage),
        ).to(task.device)
        store = None if folder is None else folder / f"stage-{stage + 1}"
        key = stage_key(task, data, stage)
        found = ranks().from_first(read_stage(store, key))
        if found is not None:
            network.load_state_dict(found.tensors)
            return network, found.logits, found.weights, found.state
        checkpoint = Checkpoint(store and store.with_suffix(".checkpoint"), of=key)
        state = train_stage(network, inputs, data, settings, seed=task.seed, stage=stage, checkpoint=checkpoint)
        logits, weights = map(ranks().gather, predict(network, inputs, ranks().share(task.rows)))
        write_stage(store, key, network, state, logits, weights)
        checkpoint.remove()
        return network, logits, weights, state

    networks: list[Network] = []
    history: list[dict[str, float]] = []
    summaries: list[dict[str, float]] = []
    best: tuple[float, int, Array, Array] | None = None
    for stage, (data, (network, logits, weights, state)) in enumerate(run_stages(task, known, learn)):
        networks.append(network)
        if best is None or settings.keep_stage == "last" or state.best_score[0] >= best[0]:
            best = (state.best_score[0], stage, logits, weights)
        history += [{"stage": stage + 1.0, **entry} for entry in state.history]
        summaries.append(
            {"epochs": state.epoch, "best_epoch": state.best_epoch, "reliable": len(data.reliable)}
            | ({"valid_accuracy": state.best_score[0]} if len(data.valid) else {})
        )
        log.info("stage %d: valid %.4f, %d reliable nodes", stage + 1, state.best_score[0], len(data.reliable))
    assert best is not None
    _, chosen, logits, weights = best
    return Stages(networks[: chosen + 1], logits, weights, history, summaries)


def predict_stages(task: StageTask, known: KnownLabels, networks: Sequence[Network]) -> Stages:
    """Run networks that were trained before, the last of which is the result."""

    def learn(stage: int, data: StageData, inputs: Inputs) -> Learned:
        logits, weights = predict(networks[stage], inputs, task.rows)
        return networks[stage], logits, weights, StageState()

    *_, (_, (_, logits, weights, _)) = run_stages(task, known, learn, count=len(networks))
    return Stages(list(networks), logits, weights)


def run_stages(
    task: StageTask,
    known: KnownLabels,
    learn: Callable[[int, StageData, Inputs], Learned],
    *,
    count: int | None = None,
) -> Iterator[tuple[StageData, Learned]]:
    """The loop over the stages: what a stage learns from, its inputs, its network, and its logits for the next."""
    logits: Array | None = None
    for stage in range(len(task.settings.epochs) if count is None else count):
        data = stage_data(known, task, logits)
        inputs = inputs_for(task.hops, label_input(task, data, stage), task.adjacency.nodes, task.device, task.settings)
        learned = learn(stage, data, inputs)
        logits = learned[1]
        yield data, learned


def stage_data(known: KnownLabels, task: StageTask, logits: Array | None) -> StageData:
    """Return what the next stage learns from, given the logits of the stage before."""
    settings = task.settings
    train, labels = known.train, known.train_labels
    reliable, teacher = NO_IDS, np.zeros((0, task.classes), np.float32)
    if logits is not None:
        probabilities = soften(logits[np.searchsorted(task.rows, known.candidates)], settings.temperature)
        if settings.pseudo_labels == "train":
            train, labels = enlarged_training_set(
                probabilities, known.candidates, settings.threshold, known.train, known.train_labels
            )
            order = np.argsort(train)
            train, labels = train[order], labels[order]
        else:
            reliable = reliable_set(probabilities, known.candidates, settings.threshold)
            teacher = probabilities[np.searchsorted(known.candidates, reliable)]
    return StageData(train, labels, known.valid, known.valid_labels, reliable, teacher, known.candidates)


def label_input(task: StageTask, data: StageData, stage: int) -> Array | None:
    """Propagate Ŷ⁰ and return the last label hop of every row, or None where the network reads no labels."""
    if not task.settings.labels:
        return None
    initial = initial_labels(
        task.adjacency.nodes,
        task.classes,
        data.train,
        data.train_labels,
        reliable_ids=data.reliable,
        reliable_probabilities=data.teacher,
    )
    return label_hops(
        task.engine,
        task.adjacency,
        initial,
        label_propagation_of(task.settings, task.hops.rows),
        train_ids=data.train,
        folds=task.settings.label_folds,
        seed=seed_of(task.seed, stage),
    )


def stage_key(task: StageTask, data: StageData, stage: int) -> str:
    """Return what tells a stage from all others, so that files of another are not taken for its own."""
    words = f"{task.settings.model_dump_json()} {task.seed} {stage} {task.fingerprint}"
    return digest(words, data.train, data.train_labels, data.reliable, data.teacher)
