"""One stage of training: a fresh network, Adam, early stopping on validation, the best weights kept.

    L = L_CE + γ·L_KD                                                     (paper, section 3.3)

over the training nodes V_l and, from the second stage on, the reliable nodes V_r. The paper sums over nodes; here a
batch with n training and m reliable rows has the weighted mean

    L = (n·mean CE + γ·m·mean KD) / (n + γ·m)

The two keep the paper's proportion, and as Adam does not feel the scale of a loss, the steps are the same; but weight
decay, which does feel it, then weighs the same in every stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gamlp.errors import SettingsError
from gamlp.labels import AveragedTeacher, consistency_loss, distillation_loss, ramp_up, soften
from gamlp.model import Network
from gamlp.model.cpu.buffer_pool import reuse_buffers
from gamlp.progress import progress
from gamlp.settings import Settings
from gamlp.storage.files import Array
from gamlp.train.batches import batches, seed_of, steps_per_epoch
from gamlp.train.checkpoint import Checkpoint, prefixed, without_prefix
from gamlp.train.distributed import ranks
from gamlp.train.inputs import Inputs, predict
from gamlp.train.metrics import accuracy, log_loss

NO_IDS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class StageData:
    """What one stage learns from. Ids are sorted; labels of other nodes are not in here, so they cannot leak."""

    train: Array
    train_labels: Array
    valid: Array
    valid_labels: Array
    reliable: Array = field(default_factory=lambda: NO_IDS)
    teacher: Array = field(default_factory=lambda: np.zeros((0, 0), np.float32))  # (len(reliable), C) probabilities
    unlabelled: Array = field(default_factory=lambda: NO_IDS)  # where predictions should be consistent (SCR)


@dataclass
class StageState:
    """How far a stage has come: everything that a checkpoint must hold beside the optimizer."""

    epoch: int = 0  # the next one
    best_epoch: int = -1
    best_score: tuple[float, float] = (-1.0, float("-inf"))  # validation accuracy, then −log loss
    best: dict[str, Tensor] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)


def train_stage(
    network: Network,
    inputs: Inputs,
    data: StageData,
    settings: Settings,
    *,
    seed: int,
    stage: int,
    checkpoint: Checkpoint,
) -> StageState:
    """Train `network` in place and leave it with the weights of its best validation score."""
    adam = torch.optim.Adam(
        network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    averaged = AveragedTeacher(network, settings.consistency_decay) if settings.consistency else None
    state = restored(ranks().from_first(checkpoint.load()), network, adam, averaged)
    epochs = settings.epochs[stage]
    with reuse_buffers(), progress(f"stage {stage + 1}", total=epochs) as advance:
        advance(state.epoch)
        while state.epoch < epochs and (state.best_epoch < 0 or state.epoch - state.best_epoch < settings.patience):
            loss = run_epoch(network, adam, averaged, inputs, data, settings, key=[seed, stage, state.epoch])
            state.epoch += 1
            if not math.isfinite(loss):
                raise SettingsError(
                    f"The loss is {loss} in epoch {state.epoch} of stage {stage + 1}.\n"
                    "Lower learning_rate, set batch_norm=true, or scale the features: feature_scaling=standard."
                )
            if state.epoch % settings.evaluate_every == 0 or state.epoch == epochs:
                evaluate(network, inputs, data, state, loss)
            if checkpoint.due():
                checkpoint.save(*saved(state, network, adam, averaged))
            advance(1, note=f"valid {100 * state.best_score[0]:.2f} %" if state.best_score[0] >= 0 else "")
    network.load_state_dict(state.best)
    return state


def run_epoch(
    network: Network,
    adam: torch.optim.Adam,
    averaged: AveragedTeacher | None,
    inputs: Inputs,
    data: StageData,
    settings: Settings,
    *,
    key: list[int],
) -> float:
    """Take every training and reliable node once; return the mean loss."""
    sets = [data.train, data.reliable, data.unlabelled if averaged else NO_IDS]
    steps = steps_per_epoch([len(ids) for ids in sets], settings.batch_size)
    together = ranks()
    together.check(sum(len(ids) // steps for ids in sets))
    inputs.begin_epoch(network, np.concatenate(sets), key)
    network.train()
    total = 0.0
    for step, whole in enumerate(batches(sets, settings.batch_size, key=key, run=settings.shuffle_runs)):
        parts = [together.share(ids) for ids in whole]
        network.set_step(seed_of(*key[:2], *([together.rank] if together.rank else [])), key[2] * steps + step)
        adam.zero_grad()
        batch = inputs.gather(np.concatenate(parts), keep=steps == 1)
        logits = network(*batch).logits
        loss = stage_loss(logits, parts, data, settings, whole=whole)
        if averaged is not None and len(parts[2]):
            share = len(parts[2]) / len(whole[2])
            loss = loss + share * agreement(averaged, batch, logits, len(parts[0]) + len(parts[1]), settings, key=key)
        loss.backward()  # type: ignore[no-untyped-call]
        together.add_gradients(network)
        adam.step()
        if averaged is not None:
            averaged.update()
        total += float(loss.detach())
    together.average_buffers(network)
    return together.total(total) / steps


def stage_loss(
    logits: Tensor, parts: list[Array], data: StageData, settings: Settings, *, whole: list[Array] | None = None
) -> Tensor:
    """Return L_CE + γ·L_KD of one batch, whose rows are the training part, then the reliable part.

    Where `parts` are a rank's share of a `whole` batch, the losses of all ranks add up to that of the whole.
    """
    train, reliable = parts[0], parts[1]
    all_ = parts if whole is None else whole
    labels = torch.from_numpy(data.train_labels[np.searchsorted(data.train, train)]).to(logits.device)
    loss = functional.cross_entropy(logits[: len(train)], labels, reduction="sum")
    weight = len(all_[0]) + settings.gamma * len(all_[1])
    if len(reliable) and settings.gamma:
        teacher = torch.from_numpy(data.teacher[np.searchsorted(data.reliable, reliable)]).to(logits.device)
        rows = slice(len(train), len(train) + len(reliable))
        loss = loss + settings.gamma * len(reliable) * distillation_loss(logits[rows], teacher)
    return loss / max(weight, 1e-12)


def agreement(
    averaged: AveragedTeacher,
    batch: tuple[Tensor, Tensor | None, Tensor | None],
    logits: Tensor,
    start: int,
    settings: Settings,
    *,
    key: list[int],
) -> Tensor:
    """Return the weighted consistency loss of the rows from `start` on; it grows over the first quarter of a stage."""
    target = averaged(*(None if part is None else part[start:] for part in batch)).logits.softmax(dim=1)
    weight = settings.consistency * ramp_up(key[2], settings.epochs[key[1]] // 4)
    return weight * consistency_loss(
        logits[start:], target, threshold=settings.consistency_threshold, temperature=settings.temperature
    )


def evaluate(network: Network, inputs: Inputs, data: StageData, state: StageState, loss: float) -> None:
    """Score the validation nodes and keep the weights if they are the best so far; without any, keep the last."""
    entry = {"epoch": float(state.epoch), "loss": loss}
    if len(data.valid):
        logits = ranks().gather(predict(network, inputs, ranks().share(data.valid), keep=True)[0])
        probabilities = soften(logits, 1.0)
        entry["valid_accuracy"] = accuracy(probabilities, data.valid_labels)
        entry["valid_log_loss"] = log_loss(probabilities, data.valid_labels)
        score = (entry["valid_accuracy"], -entry["valid_log_loss"])
    else:
        score = (-1.0, float(-state.epoch))
    state.history.append(entry)
    if score > state.best_score or not len(data.valid):
        state.best_score, state.best_epoch = score, state.epoch
        state.best = {name: tensor.clone() for name, tensor in network.state_dict().items()}


def saved(
    state: StageState, network: Network, adam: torch.optim.Adam, averaged: AveragedTeacher | None
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and facts of a checkpoint."""
    slots = {
        f"{index}.{name}": value for index, slot in adam.state_dict()["state"].items() for name, value in slot.items()
    }
    tensors = prefixed("network", network.state_dict()) | prefixed("adam", slots) | prefixed("best", state.best)
    if averaged is not None:
        tensors |= prefixed("teacher", averaged.state_dict())
    facts = {
        "epoch": state.epoch,
        "best_epoch": state.best_epoch,
        "best_score": state.best_score,
        "history": state.history,
    }
    return tensors, facts


def restored(
    kept: tuple[dict[str, Tensor], dict[str, Any]] | None,
    network: Network,
    adam: torch.optim.Adam,
    averaged: AveragedTeacher | None,
) -> StageState:
    """Bring network and optimizer to where a checkpoint left them, or start anew."""
    if kept is None:
        return StageState()
    tensors, facts = kept
    network.load_state_dict(without_prefix("network", tensors))
    slots: dict[int, dict[str, Tensor]] = {}
    for name, value in without_prefix("adam", tensors).items():
        index, slot = name.split(".", 1)
        slots.setdefault(int(index), {})[slot] = value
    adam.load_state_dict({"state": slots, "param_groups": adam.state_dict()["param_groups"]})
    if averaged is not None:
        averaged.load_state_dict(without_prefix("teacher", tensors))
    return StageState(
        epoch=facts["epoch"],
        best_epoch=facts["best_epoch"],
        best_score=(facts["best_score"][0], facts["best_score"][1]),
        best=without_prefix("best", tensors),
        history=facts["history"],
    )
