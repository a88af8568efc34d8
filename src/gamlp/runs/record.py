"""run.json: a specification, and the result once there is one; checked where it is read, so that all else can trust it.

Format 2 is a RunSpec with more keys beside. Format 1, of gamlp 0.1.0, is read as if it were format 2 that says less:
no engine, and one fingerprint. A run of format 1 that was not finished cannot go on, and says how to begin anew.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from gamlp.errors import FormatError, MissingFileError, StorageError
from gamlp.runs.command import command_of
from gamlp.runs.spec import WHOLE_GRAPH, RunSpec, Seed
from gamlp.storage.files import read_json

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph

FORMAT = 2
Number = float | None
Model = TypeVar("Model", bound=BaseModel)


class Described(BaseModel):
    """Of what gamlp itself reads, every type is checked; other keys are left alone."""

    model_config = ConfigDict(strict=True, extra="allow")


class SeedResult(Described):
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


class Result(Described):
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


def _as_written(result: dict[str, Any]) -> dict[str, Any]:
    """Check a result and return it as it was written: its checksum is of that."""
    Result.model_validate(result)
    return result


class Record(RunSpec):
    """run.json."""

    format: int
    dataset: str
    notes: list[str] = Field(default=[])
    versions: dict[str, str]
    machine: str
    result: Annotated[dict[str, Any], AfterValidator(_as_written)] | None = None  # None until the run is finished


def new_record(graph: Graph, spec: RunSpec) -> Record:
    """Return the record that a run begins with."""
    import numpy
    import torch

    import gamlp

    return Record(
        **{name: getattr(spec, name) for name in RunSpec.model_fields},
        format=FORMAT,
        dataset=graph.name,
        notes=list(getattr(graph, "notes", ())),
        versions={"gamlp": gamlp.__version__, "torch": torch.__version__, "numpy": numpy.__version__},
        machine=f"{platform.machine()}, {platform.system()}, {torch.get_num_threads()} threads",
    )


def read_run(folder: Path) -> Record:
    """Read run.json of a run directory."""
    path = folder / "run.json"
    if not path.is_file():
        raise MissingFileError(
            f"{folder} is not a run directory: it has no run.json.\nName a folder that gamlp train made."
        )
    return parsed(in_this_format(read_json(path), path), Record, path)


def read_record(folder: Path) -> dict[str, Any]:
    """Return run.json as data."""
    return as_data(read_run(folder))


def as_data(record: Record) -> dict[str, Any]:
    """Return a record as run.json holds it."""
    return {key: value for key, value in record.model_dump(mode="json").items() if key != "result" or value is not None}


def in_this_format(content: Any, path: Path) -> Any:
    """Return run.json or comparison.json of gamlp 0.1.0 in today's words; other formats are refused."""
    version = content.get("format") if isinstance(content, dict) else None
    if version == FORMAT:
        return content
    if version != 1:
        raise FormatError(
            f"{path} has the format {version!r}; this gamlp reads 1 and {FORMAT}.\n"
            "Use the gamlp that wrote it, or train again."
        )
    graph = content.get("graph", content.get("source"))
    source = None
    if isinstance(graph, dict) and graph.get("what"):
        options = dict(graph["options"]) if isinstance(graph.get("options"), dict) else {}
        apart = {"features": options.pop("features", None), "directed": options.pop("directed", False)}
        is_path = Path(str(graph["what"][0])).is_absolute()  # which is not looked for below a root
        root = None if is_path else graph.get("root") or None
        source = {"what": graph["what"], "root": root, "columns": options, **apart}
    fingerprints = {WHOLE_GRAPH: content["fingerprint"]} if "fingerprint" in content else {}
    return {"settings": {}, "fingerprints": fingerprints, **content, "source": source}


def check_can_go_on(record: Any, folder: Path) -> None:
    """Refuse to go on with the work of an older version."""
    if record.format != FORMAT:
        raise StorageError(
            f"{folder} was begun by gamlp 0.1.0, and this version cannot go on with it.\n"
            f"Begin anew in another folder: {command_of(record) or 'train again'}"
        )


def parsed(content: Any, kind: type[Model], path: Path) -> Model:
    """Return `content` as a model of that kind; the first thing that is wrong is named."""
    try:
        return kind.model_validate(content)
    except (ValidationError, RecursionError) as error:
        raise _wrong(error, path) from error


def _wrong(error: ValidationError | RecursionError, path: Path) -> FormatError:
    first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
    place = ".".join(map(str, first["loc"])) or "it"
    return FormatError(f"{path} is not what gamlp wrote: {place}: {first['msg']}.\nRestore it, or train again.")
