"""What training keeps on disk: the stage under way, so that it goes on after a kill, and the stages that are finished.

A checkpoint is a safetensors file that is replaced whole: the tensors of network, optimizer, best weights and teacher,
and everything else as JSON in its header. Batches and dropout are functions of (seed, stage, epoch, step), so no random
state needs keeping. A finished stage leaves weights, logits, attention and how it went, until its seed is finished.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator
from torch import Tensor, nn, uint8

from gamlp.errors import FormatError
from gamlp.storage.checksums import another_run, changed, check_files, checksums_of
from gamlp.storage.files import Array, digest, forget, read_array, read_json, replacing, write_array, write_json
from gamlp.storage.validated import Validated, validated

FILES = ("safetensors", "logits.npy", "weights.npy")


class StageFacts(Validated):
    """How far a stage has come: what is kept of it beside its tensors."""

    epoch: int  # the next one
    best_epoch: int
    best_score: Annotated[list[float], Field(min_length=2, max_length=2)]  # metric on validation, then −log loss
    history: list[dict[str, float]]
    files: dict[str, str] = Field(default_factory=dict, exclude=True)  # the checksums of a finished stage's files

    @field_validator("history")
    @classmethod
    def epochs_are_named(cls, history: list[dict[str, float]]) -> list[dict[str, float]]:
        """Every evaluation says when it was."""
        if not all("epoch" in entry for entry in history):
            raise ValueError("an entry has no epoch")
        return history


class Checkpoint:
    """The file of one stage under way, the stage `of`; without a path nothing is kept."""

    def __init__(self, path: Path | None, *, of: str = "", every_seconds: float = 20.0) -> None:
        self.path, self.of, self.every_seconds = path, of, every_seconds
        self._last = time.monotonic()

    def due(self) -> bool:
        """Tell whether the last save is long enough ago."""
        return self.path is not None and time.monotonic() - self._last >= self.every_seconds

    def save(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Replace the file."""
        if self.path is not None:
            save_tensors(self.path, tensors, {**facts, "of": self.of})
            self._last = time.monotonic()

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return what was saved, or None where nothing was."""
        if self.path is None or not self.path.exists():
            return None
        tensors, facts = load_tensors(self.path)
        return tensors, checked_facts(facts, self.of, self.path)

    def remove(self) -> None:
        """Forget the stage: it is finished."""
        if self.path is not None:
            forget(self.path)


def read_stage(store: Path | None, key: str) -> tuple[dict[str, Tensor], Array, Array, StageFacts] | None:
    """Return tensors, logits (R, C), weights (R, K+1) and facts of the stage of that key; None if it is unfinished."""
    if store is None or not (path := store.with_suffix(".json")).exists():
        return None
    facts = StageFacts(**checked_facts(read_json(path), key, path))
    check_files(store.parent, facts.files)
    tensors, _ = load_tensors(store.with_suffix(".safetensors"))
    logits, weights = (read_array(store.with_suffix(f".{name}.npy")) for name in ("logits", "weights"))
    return tensors, logits, weights, facts


def write_stage(
    store: Path | None, key: str, network: nn.Module, facts: StageFacts, logits: Array, weights: Array
) -> None:
    """Keep a finished stage; the .json, written last, says that it is whole."""
    if store is None:
        return
    save_tensors(store.with_suffix(".safetensors"), network.state_dict(), {})
    write_array(store.with_suffix(".logits.npy"), logits)
    write_array(store.with_suffix(".weights.npy"), weights)
    checksums = checksums_of(store.with_suffix(f".{name}") for name in FILES)
    write_json(store.with_suffix(".json"), {"of": key, "files": checksums, **facts.model_dump()})


def remove_stages(folder: Path) -> None:
    """Remove what a finished seed no longer needs; also where a kill came before this was done."""
    for candidate in folder.glob("candidate-*"):
        shutil.rmtree(candidate, ignore_errors=True)
    for file in folder.glob("stage-*"):
        forget(file)


def checked_facts(content: Any, key: str, path: Path) -> dict[str, Any]:
    """Return the facts of a stage if they are such, and of the stage of that key."""
    facts = validated(content, StageFacts, path)
    if facts.get("of", key) != key:
        raise another_run(path)
    return facts


def save_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and JSON facts as one safetensors file, whole or not at all."""
    from safetensors.torch import save

    # clones: safetensors refuses tensors that share memory
    plain = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    whole = {**facts, "checksum": tensors_digest(plain, json.dumps(facts))}
    content = save(plain, {"facts": json.dumps(whole)})  # one key: safetensors writes several in any order
    with replacing(path) as file:
        file.write(content)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what save_tensors wrote; anything else, or a file that has changed since, is refused with its name."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            facts = dict(json.loads((file.metadata() or {})["facts"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise FormatError(
            f"{path} is not a complete checkpoint or model ({error}).\nRestore it, or train again."
        ) from error
    checksum = facts.pop("checksum", None)
    if checksum is not None and tensors_digest(tensors, json.dumps(facts)) != checksum:
        raise changed(path)
    return tensors, facts


def tensors_digest(tensors: dict[str, Tensor], words: str) -> str:
    """Return a hash of names, types, shapes and values, and of the facts."""
    parts: list[Array | str] = [words]
    for name, tensor in sorted(tensors.items()):
        parts += [f"{name} {tensor.dtype} {tuple(tensor.shape)}", tensor.contiguous().reshape(-1).view(uint8).numpy()]
    return digest(*parts)


def prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Put several sets of tensors into one file: name → prefix.name."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Take one set out again."""
    return {name.removeprefix(f"{prefix}."): value for name, value in tensors.items() if name.startswith(f"{prefix}.")}
