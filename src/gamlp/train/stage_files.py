"""What a finished stage leaves beside a run until its seed is finished: weights, logits, attention, and how it went."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gamlp.storage.checksums import another_run, check_files, checksums_of
from gamlp.storage.files import Array, forget, read_array, read_json, write_array, write_json
from gamlp.storage.validated import validated
from gamlp.train.checkpoint import StageFacts, load_tensors, save_tensors
from gamlp.train.stage import StageState

if TYPE_CHECKING:
    from torch import Tensor

    from gamlp.model import Network

FILES = ("safetensors", "logits.npy", "weights.npy")


@dataclass(frozen=True, eq=False)
class FinishedStage:
    """A stage that was finished before a kill."""

    state: StageState
    tensors: dict[str, Tensor]
    logits: Array  # (R, C)
    weights: Array  # (R, K+1)


def read_stage(store: Path | None, key: str) -> FinishedStage | None:
    """Return what the stage of that key left, or None where it is not finished."""
    if store is None or not store.with_suffix(".json").exists():
        return None
    facts = validated(read_json(store.with_suffix(".json")), StageFacts, store.with_suffix(".json"))
    if facts.get("of", key) != key:
        raise another_run(store.with_suffix(".json"))
    check_files(store.parent, facts.get("files", {}))
    tensors, _ = load_tensors(store.with_suffix(".safetensors"))
    state = StageState(facts["epoch"], facts["best_epoch"], tuple(facts["best_score"]), {}, facts["history"])
    logits, weights = (read_array(store.with_suffix(f".{name}.npy")) for name in ("logits", "weights"))
    return FinishedStage(state, tensors, logits, weights)


def write_stage(
    store: Path | None, key: str, network: Network, state: StageState, logits: Array, weights: Array
) -> None:
    """Keep a finished stage; the .json, written last, says that it is whole."""
    if store is None:
        return
    save_tensors(store.with_suffix(".safetensors"), network.state_dict(), {})
    write_array(store.with_suffix(".logits.npy"), logits)
    write_array(store.with_suffix(".weights.npy"), weights)
    facts = {
        "of": key,
        "files": checksums_of(store.with_suffix(f".{name}") for name in FILES),
        "epoch": state.epoch,
        "best_epoch": state.best_epoch,
        "best_score": list(state.best_score),
        "history": state.history,
    }
    write_json(store.with_suffix(".json"), facts)


def remove_stages(folder: Path) -> None:
    """Remove what a finished seed no longer needs; also where a kill came before this was done."""
    for file in folder.glob("stage-*"):
        forget(file)
