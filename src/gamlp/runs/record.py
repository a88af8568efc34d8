"""run.json: a specification, and the result once there is one; checked where it is read, so that all else can trust it.

Format 2 is a RunSpec with more keys beside. Format 1, of gamlp 0.1.0, is read as if it were format 2 that says less:
no engine, and one fingerprint. A run of format 1 that was not finished cannot go on, and says how to begin anew.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy
import torch
from pydantic import AfterValidator, Field, create_model

import gamlp
from gamlp.errors import FormatError, MissingFileError, StorageError
from gamlp.graph.graph import Graph
from gamlp.runs.spec import WHOLE_GRAPH, RunSpec, Seed, Spec, check_same_graph, command_of
from gamlp.storage.files import read_json
from gamlp.storage.validated import Model, Validated, parsed
from gamlp.targets.metrics import BASELINES, LARGEST_CLASS, METRICS, Metric

FORMAT = 2
USUAL = "accuracy"
Number = float | None
Count = Annotated[int, Field(ge=0)]

SCORES = [f"{part}_{metric}" for metric in (*METRICS, *BASELINES) for part in ("valid", "test")]
OF_0_1 = ("accuracy", "macro_f1", "log_loss")  # which every result has; the others came later
REQUIRED: dict[str, Any] = {name: ... if name.split("_", 1)[1] in OF_0_1 else None for name in SCORES}
SEED_FIELDS: dict[str, Any] = {
    "seed": (Seed, ...), **{name: (Number, default) for name, default in REQUIRED.items()},
    "parameters": (Count, 0), "stages": (list[dict[str, float]], ...), "seconds": (float, ...),
}  # fmt: skip
SeedResult = create_model("SeedResult", __base__=Validated, **SEED_FIELDS)
FIELDS: dict[str, Any] = {
    "best_seed": (Seed, ...), "runs": (list[SeedResult], ...), "seeds": (list[Seed], ...),
    **{name + end: (Number, default) for name, default in REQUIRED.items() for end in ("", "_std")},
    "metric": (str, USUAL), "peak_memory_bytes": (Number, ...),
    "seconds": (float, ...), "seconds_per_seed": (float, ...), "parameters": (Count, 0),
}  # fmt: skip
Result = create_model("Result", __base__=Validated, **FIELDS)  # of all seeds together


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

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''}"
        state, found = "not finished", self.result
        if found is not None:
            metric = metric_of(found)
            scores = {part: found[f"{part}_{metric.name}"] for part in ("valid", "test")}
            known = [f"{part} {metric.said(score)}" for part, score in scores.items() if score is not None]
            words = baseline_words(found)
            state = (", ".join(known) or "finished") + (f" ({words})" if words else "")
        return f"Run of {self.method} on {self.dataset}, {seeds}: {state}"


def metric_of(result: Mapping[str, Any]) -> Metric:
    """Return what chose in a run or in a method's line of a comparison; of runs before 0.2.0 it was the accuracy."""
    return METRICS[result.get("metric") or USUAL]


def baseline_of(result: Mapping[str, Any]) -> Metric:
    """Return what stands beside the scores of a run: which share of the nodes the commonest answer is right for."""
    return next((one for one in BASELINES.values() if f"test_{one.name}" in result), LARGEST_CLASS)


def baseline_words(result: Mapping[str, Any]) -> str:
    """Say it in a few words, as "largest class 30.2 % on test"; nothing of runs that did not keep it."""
    metric = baseline_of(result)
    value = result.get(f"test_{metric.name}")
    return "" if value is None else f"{metric.title} {100 * value:.1f} % on test"


def new_record(graph: Graph, spec: RunSpec) -> Record:
    """Return the record that a run begins with."""
    versions = {"gamlp": gamlp.__version__, "torch": torch.__version__, "numpy": numpy.__version__}
    machine = f"{platform.machine()}, {platform.system()}, {torch.get_num_threads()} threads"
    told: dict[str, Any] = {"dataset": graph.name, "notes": list(getattr(graph, "notes", ()))}
    return Record(**spec.fields_of(RunSpec), format=FORMAT, **told, versions=versions, machine=machine)


def read_run(folder: Path) -> Record:
    """Read run.json of a run directory."""
    missing = f"{folder} is not a run directory: it has no run.json.\nName a folder that gamlp train made."
    return read_kept(folder / "run.json", Record, missing)


def read_kept(path: Path, kind: type[Model], missing: str) -> Model:
    """Read run.json or comparison.json, of this version or of 0.1.0."""
    if not path.is_file():
        raise MissingFileError(missing)
    return parsed(in_this_format(read_json(path), path), kind, path)


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


def check_goes_on(there: Spec, spec: Spec, graph: Graph, folder: Path, *, what: str, keys: Sequence[str]) -> None:
    """Refuse to go on with other work than `spec`, or on another graph."""
    differing = [key for key in keys if getattr(there, key) != getattr(spec, key)]
    if differing:
        raise StorageError(
            f"{folder} holds another {what}, of other {', '.join(differing)}.\n"
            f"Go on with it by --resume {folder}, or choose another --out."
        )
    check_same_graph(there, graph)


def check_version(record: Any, folder: Path) -> None:
    """Refuse to go on with the work of an older version."""
    if record.format != FORMAT:
        raise StorageError(
            f"{folder} was begun by gamlp 0.1.0, and this version cannot go on with it.\n"
            f"Begin anew in another folder: {command_of(record) or 'train again'}"
        )


def finished_seed(folder: Path, record: Record, seed: int | None) -> int:
    """Return the seed of a finished run that is asked for, or its best on validation."""
    if record.result is None:
        raise MissingFileError(f"{folder} is not finished.\nFinish it with: gamlp train --resume {folder}")
    chosen = int(record.result["best_seed"]) if seed is None else seed
    if chosen not in record.seeds:
        raise MissingFileError(f"{folder} has no seed {chosen}.\nIt has: {', '.join(map(str, record.seeds))}.")
    return chosen
