"""The stages of one run: reliable label utilization, SLE, or a single stage (paper, section 3.3).

    Ŷ⁰ᵢ = Yᵢ for training nodes,  Pᵢ of the stage before for reliable nodes,  0 elsewhere
    Pᵐ  = softmax(H/T),           reliable: valid and test nodes with max P > ε

Feature hops are computed once and given in; label hops run once a stage. Every stage trains a fresh network and hands
its probabilities on. What a finished stage gave is on disk before the next begins, so a killed run goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from gamlp.errors import LabelError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.labels import enlarged_training_set, initial_labels, label_hops, reliable_set, soften
from gamlp.model import Network, build_network
from gamlp.progress import log
from gamlp.propagate import Normalization
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.hops import Hops
from gamlp.propagate.sources import SparseRows
from gamlp.propagate.spec import Propagation
from gamlp.runs.record import StageFacts, described
from gamlp.settings import Settings
from gamlp.storage.checksums import another_run, check_files, checksums_of
from gamlp.storage.files import Array, digest, read_array, read_json, write_array, write_json
from gamlp.train.batches import seed_of
from gamlp.train.checkpoint import Checkpoint, load_tensors, save_tensors
from gamlp.train.distributed import ranks
from gamlp.train.inputs import predict
from gamlp.train.stage import NO_IDS, StageData, StageState, train_stage
from gamlp.train.subset_rotation import inputs_for


@dataclass(frozen=True)
class Trained:
    """What the stages give: the network that is kept, and what it says of every row of the hops."""

    network: Network
    logits: Array  # (R, C)
    weights: Array  # (R, K+1) attention
    history: list[dict[str, float]]  # one entry per evaluation, with its stage
    stages: list[dict[str, float]]  # one entry per stage

    @property
    def probabilities(self) -> Array:
        """softmax(logits), (R, C)."""
        return soften(self.logits, 1.0)


@dataclass(frozen=True)
class Known:
    """All that training may know of the labels: those of train and valid. Test labels do not come this far."""

    train: Array
    train_labels: Array
    valid: Array
    valid_labels: Array
    candidates: Array  # nodes that may become reliable

    @classmethod
    def of(cls, graph: Graph, split: Split, hops: Hops, settings: Settings) -> Known:
        """Take what may be known from a graph; refuse labels that cannot be learned from."""
        if len(np.unique(graph.labels[split.train])) < 2:
            raise LabelError("All training nodes have the same class.\nAt least two classes are needed to learn from.")
        if settings.reliable_from == "split":
            others = np.sort(np.concatenate([split.valid, split.test]))
        else:
            others = np.setdiff1d(np.arange(graph.nodes) if hops.rows is None else hops.rows, split.train)
        return cls(split.train, graph.labels[split.train], split.valid, graph.labels[split.valid], others)


def train_stages(
    graph: Graph,
    split: Split,
    hops: Hops,
    settings: Settings,
    *,
    seed: int,
    folder: Path | None = None,
    device: str = "cpu",
) -> Trained:
    """Run every stage of `settings.epochs`; with a folder, finished and half-finished stages are kept there."""
    known = Known.of(graph, split, hops, settings)
    classes = len(graph.classes)
    everyone = np.arange(graph.nodes) if hops.rows is None else hops.rows
    history: list[dict[str, float]] = []
    summaries: list[dict[str, float]] = []
    logits: Array | None = None
    best: tuple[float, Network, Array, Array] | None = None
    for stage in range(len(settings.epochs)):
        data, initial = lesson_of(known, everyone, logits, settings, nodes=graph.nodes, classes=classes)
        labels = labels_for(graph, data, initial, hops, settings, seed=seed_of(seed, stage), device=device)
        inputs = inputs_for(hops, labels, graph.nodes, device, settings)
        network = build_network(
            settings,
            features=hops.values.shape[-1],
            classes=classes,
            subsets=hops.subsets,
            seed=seed_of(seed, stage),
        ).to(device)
        store = None if folder is None else folder / f"stage-{stage + 1}"
        of = stage_key(graph, data, settings, seed=seed, stage=stage)
        kept = ranks().from_first(finished(store, of))
        if kept is None:
            checkpoint = Checkpoint(store and store.with_suffix(".checkpoint"), of=of)
            state = train_stage(network, inputs, data, settings, seed=seed, stage=stage, checkpoint=checkpoint)
            logits, weights = map(ranks().gather, predict(network, inputs, ranks().share(everyone)))
            finish(store, network, state, logits, weights, of)
            checkpoint.remove()
        else:
            state, tensors, logits, weights = kept
            network.load_state_dict(tensors)
        if best is None or settings.keep_stage == "last" or state.best_score[0] >= best[0]:
            best = (state.best_score[0], network, logits, weights)
        history += [{"stage": stage + 1.0, **entry} for entry in state.history]
        summaries.append(
            {"epochs": state.epoch, "best_epoch": state.best_epoch, "reliable": len(data.reliable)}
            | ({"valid_accuracy": state.best_score[0]} if len(data.valid) else {})
        )
        log.info("stage %d: valid %.4f, %d reliable nodes", stage + 1, state.best_score[0], len(data.reliable))
    assert best is not None
    return Trained(*best[1:], history, summaries)


def lesson_of(
    known: Known, everyone: Array, logits: Array | None, settings: Settings, *, nodes: int, classes: int
) -> tuple[StageData, SparseRows]:
    """Return what the next stage learns from, and its label matrix Ŷ⁰ (N, C)."""
    train, labels = known.train, known.train_labels
    reliable, teacher = NO_IDS, np.zeros((0, classes), np.float32)
    if logits is not None:
        probabilities = soften(logits[np.searchsorted(everyone, known.candidates)], settings.temperature)
        if settings.pseudo_labels == "train":
            train, labels = enlarged_training_set(
                probabilities, known.candidates, settings.threshold, known.train, known.train_labels
            )
            order = np.argsort(train)
            train, labels = train[order], labels[order]
        else:
            reliable = reliable_set(probabilities, known.candidates, settings.threshold)
            teacher = probabilities[np.searchsorted(known.candidates, reliable)]
    initial = initial_labels(nodes, classes, train, labels, reliable_ids=reliable, reliable_probabilities=teacher)
    data = StageData(train, labels, known.valid, known.valid_labels, reliable, teacher, known.candidates)
    return data, initial


def labels_for(
    graph: Graph, data: StageData, initial: SparseRows, hops: Hops, settings: Settings, *, seed: int, device: str
) -> Array | None:
    """Propagate Ŷ⁰ and return the last label hop of every row, or None where the network reads no labels."""
    if not settings.labels:
        return None
    normalization = Normalization(settings.label_normalization, settings.label_self_loops)
    spec = Propagation(settings.label_hops, normalization, rows=hops.rows, keep="last")
    return label_hops(
        LocalEngine(device=device),
        graph.adjacency,
        initial,
        spec,
        folds=settings.label_folds,
        train_ids=data.train,
        seed=seed,
    )


def stage_key(graph: Graph, data: StageData, settings: Settings, *, seed: int, stage: int) -> str:
    """Return what tells a stage from all others, so that files of another are not taken for its own."""
    some = np.ascontiguousarray(graph.features[:1024])
    words = f"{settings.model_dump_json()} {seed} {stage} {graph.nodes} {graph.adjacency.entries}"
    return digest(words, some, data.train, data.train_labels, data.reliable, data.teacher)


def finished(store: Path | None, of: str) -> tuple[StageState, dict[str, Tensor], Array, Array] | None:
    """Return what a stage that was finished before a kill left: its state, weights, logits and attention."""
    if store is None or not store.with_suffix(".json").exists():
        return None
    facts = described(read_json(store.with_suffix(".json")), StageFacts, store.with_suffix(".json"))
    if facts.get("of", of) != of:
        raise another_run(store.with_suffix(".json"))
    check_files(store.parent, facts.get("files", {}))
    tensors, _ = load_tensors(store.with_suffix(".safetensors"))
    state = StageState(facts["epoch"], facts["best_epoch"], tuple(facts["best_score"]), {}, facts["history"])
    logits, weights = (read_array(store.with_suffix(f".{name}.npy")) for name in ("logits", "weights"))
    return state, tensors, logits, weights


def finish(store: Path | None, network: Network, state: StageState, logits: Array, weights: Array, of: str) -> None:
    """Keep a finished stage; the .json, written last, says that it is whole."""
    if store is None:
        return
    save_tensors(store.with_suffix(".safetensors"), network.state_dict(), {})
    write_array(store.with_suffix(".logits.npy"), logits)
    write_array(store.with_suffix(".weights.npy"), weights)
    write_json(
        store.with_suffix(".json"),
        {
            "of": of,
            "files": checksums_of(
                store.with_suffix(f".{name}") for name in ("safetensors", "logits.npy", "weights.npy")
            ),
            "epoch": state.epoch,
            "best_epoch": state.best_epoch,
            "best_score": list(state.best_score),
            "history": state.history,
        },
    )
