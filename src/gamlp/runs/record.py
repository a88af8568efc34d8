"""run.json and what a stage keeps, checked where they are read: whoever reads on can trust every type.

Only what gamlp itself reads is described; other keys are left alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from gamlp.errors import FormatError
from gamlp.storage.files import read_json

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Number = float | None


class _Described(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class Source(_Described):
    """How the graph was read."""

    what: list[str] = []  # nothing where it came from Python
    root: str = ""
    options: dict[str, Any] = {}


class SeedResult(_Described):
    """What one seed gave."""

    seed: Seed
    valid_accuracy: Number
    valid_macro_f1: Number
    valid_log_loss: Number
    test_accuracy: Number
    test_macro_f1: Number
    test_log_loss: Number
    parameters: Annotated[int, Field(ge=0)] = 0
    stages: list[dict[str, float]]
    seconds: float


class Result(_Described):
    """What all seeds gave together."""

    best_seed: Seed
    runs: list[SeedResult]
    seeds: list[Seed]
    valid_accuracy: Number
    valid_accuracy_std: Number
    test_accuracy: Number
    test_accuracy_std: Number
    valid_macro_f1: Number
    valid_macro_f1_std: Number
    test_macro_f1: Number
    test_macro_f1_std: Number
    valid_log_loss: Number
    valid_log_loss_std: Number
    test_log_loss: Number
    test_log_loss_std: Number
    seconds: float
    seconds_per_seed: float
    parameters: Annotated[int, Field(ge=0)] = 0
    peak_memory_bytes: Number


class Record(_Described):
    """run.json."""

    dataset: str
    graph: Source
    fingerprint: str
    method: str
    recipe: str
    overrides: dict[str, Any]
    seeds: Annotated[list[Seed], Field(min_length=1)]
    device: str
    settings: dict[str, Any]
    versions: dict[str, str]
    machine: str
    result: Result = Field(default=None)  # type: ignore[assignment]  # not there until the run is finished


class StageFacts(_Described):
    """What is kept of a stage beside its tensors."""

    epoch: int
    best_epoch: int
    best_score: Annotated[list[float], Field(min_length=2, max_length=2)]
    history: list[dict[str, float]]

    @field_validator("history")
    @classmethod
    def epochs_are_named(cls, history: list[dict[str, float]]) -> list[dict[str, float]]:
        """Every evaluation says when it was."""
        if not all("epoch" in entry for entry in history):
            raise ValueError("an entry has no epoch")
        return history


def read_record(folder: Path) -> dict[str, Any]:
    """Read run.json of a run directory."""
    path = folder / "run.json"
    return described(read_json(path), Record, path)


def described(content: Any, kind: type[_Described], path: Path) -> dict[str, Any]:
    """Return `content` as it is, if it is of that kind."""
    try:
        TypeAdapter(kind).validate_python(content)
    except (ValidationError, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        place = ".".join(map(str, first["loc"])) or "it"
        raise FormatError(
            f"{path} is not what gamlp wrote: {place}: {first['msg']}.\nRestore it, or train again."
        ) from error
    return dict(content)
