"""One stage of training: a fresh network, Adam, early stopping on validation, the best weights kept.

    L = L_CE + γ·L_KD                                                     (paper, section 3.3)

over the training nodes V_l (L_CE is the loss of the `Objective`, with class weights where they are asked for) and, from
the second stage on, the reliable nodes V_r. The paper sums over nodes; here a
batch with n training and m reliable rows has the weighted mean

    L = (n·mean CE + γ·m·mean KD) / (n + γ·m)

The two keep the paper's proportion, and as Adam does not feel the scale of a loss, the steps are the same; but weight
decay, which does feel it, then weighs the same in every stage.

With `unlabelled_rows` an epoch draws so many of the reliable nodes, and of the nodes that should be consistent, instead
of visiting all; those drawn stand for the others, so the two losses keep their proportion.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gamlp.errors import DivergedError
from gamlp.labels import AveragedTeacher, consistency_loss, distillation_loss, ramp_up
from gamlp.model import Network
from gamlp.model.cpu.buffer_pool import reuse_buffers
from gamlp.progress import progress
from gamlp.settings import Settings
from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.targets.objective import Objective
from gamlp.targets.registry import SINGLE
from gamlp.train.adam import Adam
from gamlp.train.batches import batches, seed_of, steps_per_epoch
from gamlp.train.checkpoint import Checkpoint, StageFacts, prefixed, without_prefix
from gamlp.train.distributed import ranks
from gamlp.train.inputs import Batch, Inputs, predict

HOPELESS = 0.15  # of the metric: what is so far below another method after a quarter of its epochs is given up
NO_IDS = np.zeros(0, dtype=np.int64)
NO_ROWS = np.zeros((0, 0), dtype=np.float32)


class StageData(NamedTuple):
    """What one stage learns from. Ids are sorted; labels of other nodes are not in here, so they cannot leak."""

    train: Array
    train_labels: Array
    valid: Array = NO_IDS
    valid_labels: Array = NO_IDS
    reliable: Array = NO_IDS
    teacher: Array = NO_ROWS  # (len(reliable), C) probabilities
    candidates: Array = NO_IDS  # nodes that may become reliable, and where predictions should be consistent (SCR)
    objective: Objective = Objective()
    ends: float = math.inf  # of time.monotonic(): a stage that has been scored stops then
    rival: float = -math.inf  # what another method scored on validation: what is HOPELESS below it is given up


def train_stage(
    network: Network, inputs: Inputs, data: StageData, settings: Settings, seed: int, stage: int, checkpoint: Checkpoint
) -> StageFacts:
    """Train `network` in place and leave it with the weights of its best validation score."""
    state = StageState(network, settings)
    state.restore(ranks().from_first(checkpoint.load()))
    facts, epochs = state.facts, settings.epochs[stage]
    with reuse_buffers(), progress(f"stage {stage + 1}", total=epochs) as advance:
        advance(facts.epoch)
        while facts.epoch < epochs and (facts.best_epoch < 0 or goes_on(facts, data, settings, epochs)):
            loss = run_epoch(state, inputs, data, settings, key=[seed, stage, facts.epoch])
            facts.epoch += 1
            if not math.isfinite(loss):
                raise DivergedError(
                    f"The loss is {loss} in epoch {facts.epoch} of stage {stage + 1}.\n"
                    "Lower learning_rate, set batch_norm=true, or scale the features: feature_scaling=standard."
                )
            if facts.epoch % settings.evaluate_every == 0 or facts.epoch == epochs:
                evaluate(state, inputs, data, loss)
            if checkpoint.due():
                checkpoint.save(*state.saved())
            scored = len(data.valid) and facts.best_epoch > 0
            advance(1, note=data.objective.note(facts.best_score[0]) if scored else "")
    network.load_state_dict(state.best)
    return facts


def goes_on(facts: StageFacts, data: StageData, settings: Settings, epochs: int) -> bool:
    """Say whether a stage that has been scored may become better, and good enough, and has the time to."""
    if 4 * facts.epoch >= epochs and facts.best_score[0] < data.rival - HOPELESS:
        return False
    return facts.epoch - facts.best_epoch < settings.patience and time.monotonic() < data.ends


def run_epoch(state: StageState, inputs: Inputs, data: StageData, settings: Settings, *, key: list[int]) -> float:
    """Take every training node once, and every reliable node or those drawn; return the mean loss."""
    network, averaged, together = state.network, state.averaged, ranks()
    unlabelled = [data.reliable, data.candidates if averaged else NO_IDS]
    sets = [data.train, *(drawn(ids, settings.unlabelled_rows, key) for ids in unlabelled)]
    share_drawn = len(sets[1]) / max(len(data.reliable), 1)
    steps = steps_per_epoch([len(ids) for ids in sets], settings.batch_size)
    together.check(sum(len(ids) // steps for ids in sets))
    inputs.begin_epoch(network, np.concatenate(sets), key)
    network.train()
    total = 0.0
    for step, whole in enumerate(batches(sets, settings.batch_size, key=key, run=settings.shuffle_runs)):
        parts = [together.share(ids) for ids in whole]
        network.set_step(seed_of(*key[:2], *([together.rank] if together.rank else [])), key[2] * steps + step)
        state.adam.zero_grad()
        batch = inputs.gather(np.concatenate(parts), keep=steps == 1 and not settings.unlabelled_rows)
        logits = network(*batch).logits
        loss = stage_loss(logits, parts, data, settings, whole=whole, share_drawn=share_drawn)
        if averaged is not None and len(parts[2]):
            share, start = len(parts[2]) / len(whole[2]), len(parts[0]) + len(parts[1])
            loss = loss + share * agreement(averaged, batch, logits, start, settings, key, data.objective.kind)
        loss.backward()  # type: ignore[no-untyped-call]
        together.add_gradients(network)
        state.adam.step()
        if averaged is not None:
            averaged.update()
        total += float(loss.detach())
    together.average_buffers(network)
    return together.total(total) / steps


def stage_loss(
    logits: Tensor,
    parts: list[Array],
    data: StageData,
    settings: Settings,
    *,
    whole: list[Array] | None = None,
    share_drawn: float = 1.0,
) -> Tensor:
    """Return L_CE + γ·L_KD of one batch, whose rows are the training part, then the reliable part.

    Where `parts` are a rank's share of a `whole` batch, the losses of all ranks add up to that of the whole. A reliable
    row stands for 1 / share_drawn of them.
    """
    train, reliable = parts[0], parts[1]
    all_ = parts if whole is None else whole
    labels = data.train_labels[np.searchsorted(data.train, train)]
    loss = data.objective.loss(logits[: len(train)], labels).sum()
    gamma = settings.gamma / (share_drawn or 1.0)
    weight = len(all_[0]) + gamma * len(all_[1])
    if len(reliable) and gamma:
        teacher = torch.from_numpy(data.teacher[np.searchsorted(data.reliable, reliable)]).to(logits.device)
        rows = slice(len(train), len(train) + len(reliable))
        loss = loss + gamma * len(reliable) * distillation_loss(logits[rows], teacher, kind=data.objective.kind)
    return loss / max(weight, 1e-12)


def drawn(ids: Array, count: int, key: list[int]) -> Array:
    """Return `count` of the sorted ids, others in every epoch; all of them where there are no more, or count is 0."""
    if not 0 < count < len(ids):
        return ids
    return np.sort(np.random.default_rng([*key, len(ids)]).choice(ids, count, replace=False, shuffle=False))


def agreement(
    averaged: AveragedTeacher,
    batch: Batch,
    logits: Tensor,
    start: int,
    settings: Settings,
    key: list[int],
    kind: TargetKind = SINGLE,
) -> Tensor:
    """Return the weighted consistency loss of the rows from `start` on; it grows over the first quarter of a stage."""
    target = averaged(*(None if part is None else part[start:] for part in batch)).logits
    weight = settings.consistency * ramp_up(key[2], settings.epochs[key[1]] // 4)
    more: Any = {"threshold": settings.consistency_threshold, "temperature": settings.temperature, "kind": kind}
    return weight * consistency_loss(logits[start:], kind.link(target), **more)


def evaluate(state: StageState, inputs: Inputs, data: StageData, loss: float) -> None:
    """Score the validation nodes and keep the weights if they are the best so far; without any, keep the last."""
    facts, network = state.facts, state.network
    entry, score = {"epoch": float(facts.epoch), "loss": loss}, [-1.0, float(-facts.epoch)]
    if len(data.valid):
        logits = ranks().gather(predict(network, inputs, ranks().share(data.valid), keep=True)[0])
        probabilities = data.objective.kind.probabilities(logits)
        score = list(data.objective.score(probabilities, data.valid_labels))
        entry |= data.objective.facts(score[0]) | {"valid_log_loss": -score[1]}
    facts.history.append(entry)
    if score > facts.best_score or not len(data.valid):
        facts.best_score, facts.best_epoch = score, facts.epoch
        state.best = {name: tensor.clone() for name, tensor in network.state_dict().items()}


class StageState:
    """A network in training and how far it has come: everything that a checkpoint holds."""

    def __init__(self, network: Network, settings: Settings) -> None:
        rate, decay = settings.learning_rate, settings.weight_decay
        self.network = network
        self.adam = Adam(network.parameters(), learning_rate=rate, weight_decay=decay)
        self.averaged = AveragedTeacher(network, settings.consistency_decay) if settings.consistency else None
        self.best: dict[str, Tensor] = {}
        self.facts = StageFacts(epoch=0, best_epoch=-1, best_score=[-math.inf, -math.inf], history=[])

    def saved(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors and facts of a checkpoint."""
        tensors = prefixed("network", self.network.state_dict()) | prefixed("adam", self.adam.state_dict())
        tensors |= prefixed("best", self.best)
        if self.averaged is not None:
            tensors |= prefixed("teacher", self.averaged.state_dict())
        return tensors, self.facts.model_dump()

    def restore(self, kept: tuple[dict[str, Tensor], dict[str, Any]] | None) -> None:
        """Go back to where a checkpoint was made, if there is one."""
        if kept is None:
            return
        tensors, facts = kept
        self.network.load_state_dict(without_prefix("network", tensors))
        self.adam.load_state_dict(without_prefix("adam", tensors))
        if self.averaged is not None:
            self.averaged.load_state_dict(without_prefix("teacher", tensors))
        self.best, self.facts = without_prefix("best", tensors), StageFacts(**facts)
