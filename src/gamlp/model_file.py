"""A fitted pipeline as two files: model.safetensors with all that was learned, model.json with all else.

Nothing is unpickled: the JSON holds the method, its settings and sizes, from which everything is built again, and the
checksum of the tensors beside it.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import TypeAdapter

from gamlp.errors import FormatError
from gamlp.graph.encode import Columns
from gamlp.labels.correction import CorrectAndSmooth
from gamlp.methods import method_named
from gamlp.methods.base import Context
from gamlp.pipeline import Fitted, Pipeline
from gamlp.propagate.engines.base import Engine
from gamlp.storage.checksums import check_files, file_checksum
from gamlp.storage.files import Array, read_json, write_json
from gamlp.targets.objective import Objective
from gamlp.targets.registry import KINDS, SINGLE
from gamlp.train.checkpoint import load_tensors, prefixed, save_tensors, without_prefix
from gamlp.train.hop_source import HopSource
from gamlp.trust.trust import Trust

if TYPE_CHECKING:
    from torch import Tensor

COLUMNS = "columns:"  # tensors of what was learned of a type's columns begin with this


def save_fitted(fitted: Fitted, folder: Path) -> None:
    """Write both files into `folder`; model.json comes last."""
    kept = {} if fitted.trust is None else prefixed("trust", as_tensors(fitted.trust.arrays()))
    learned = {kind: columns.data() for kind, columns in (fitted.encoding or {}).items()}
    tensors = {f"{COLUMNS}{kind}": torch.from_numpy(array) for kind, (_, array) in learned.items() if len(array)}
    save_tensors(folder / "model.safetensors", {**fitted.learned.tensors(), **kept, **tensors}, {})
    content = {
        "format": 2,
        "weights": file_checksum(folder / "model.safetensors"),
        "method": fitted.pipeline.method.name,
        "settings": fitted.pipeline.method.settings_data(fitted.pipeline.settings),
        "targets": fitted.kind.name,
        "classes": list(fitted.classes),
        "features": fitted.features,
        "feature_names": None if fitted.feature_names is None else list(fitted.feature_names),
        "columns": None if fitted.encoding is None else {kind: described for kind, (described, _) in learned.items()},
        "embedded": fitted.embedded,
        "state": fitted.learned.state(),
        "correct_and_smooth": None if fitted.smoothing is None else asdict(fitted.smoothing),
        "trust": None if fitted.trust is None else fitted.trust.data(),
    }
    write_json(folder / "model.json", content)


def load_fitted(
    folder: Path, *, engine: Engine | None = None, device: str = "cpu", hop_source: HopSource | None = None
) -> Fitted:
    """Read both files back; a file that does not fit the other is refused. `hop_source` may be another pipeline's."""
    content = read_json(folder / "model.json")
    if isinstance(content, dict) and "weights" in content:
        check_files(folder, {"model.safetensors": content["weights"]})
    if isinstance(content, dict) and content.get("format") == 1:
        content = from_format_1(content, folder)
    tensors, _ = load_tensors(folder / "model.safetensors")
    try:
        if content["format"] == 1:
            tensors = {re.sub(r"^network\.", "stage-1.", name): value for name, value in tensors.items()}
        method = method_named(content["method"])
        settings = method.settings_from(content["settings"])
        pipeline = Pipeline(method, settings, engine=engine, device=device, hop_source=hop_source)
        objective = Objective(KINDS[content.get("targets", SINGLE.name)])
        context = Context(pipeline.hop_source, len(content["classes"]), device=device, objective=objective)
        trust, tensors = trust_from(content.get("trust"), tensors)
        columns = content.get("columns")  # models of 0.1.0 have none
        encoding = None if columns is None else {
            kind: Columns.from_data(described, tensors.pop(f"{COLUMNS}{kind}", torch.empty(0)).numpy())
            for kind, described in columns.items()
        }  # fmt: skip
        learned = method.load(settings, content["state"], tensors, context)
        smoothing = TypeAdapter(CorrectAndSmooth | None).validate_python(content["correct_and_smooth"])
        if smoothing is not None and asdict(smoothing) != content["correct_and_smooth"]:
            raise ValueError("correct_and_smooth is not complete")
        names = None if content["feature_names"] is None else tuple(content["feature_names"])
        more = (tuple(content["classes"]), names, int(content["features"]), objective, str(content["embedded"]))
        return Fitted(pipeline, learned, smoothing, *more, trust, encoding=encoding)
    except (KeyError, TypeError, RuntimeError, AttributeError, ValueError) as error:
        raise FormatError(
            f"{folder}: model.json and model.safetensors do not belong together ({error}).\nTake both from one run."
        ) from error


def trust_from(data: dict[str, Any] | None, tensors: dict[str, Tensor]) -> tuple[Trust | None, dict[str, Tensor]]:
    """Return what was learned of trust, and the other tensors; models of 0.1.0 have none and stay as they were."""
    others = {name: tensor for name, tensor in tensors.items() if not name.startswith("trust.")}
    if data is None:
        return None, others
    return Trust.from_data(
        data, {name: kept.numpy() for name, kept in without_prefix("trust", tensors).items()}
    ), others


def as_tensors(arrays: dict[str, Array]) -> dict[str, Tensor]:
    """Return arrays as tensors."""
    import torch

    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def from_format_1(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a model of version 0.1 in the present form, if it held all that prediction needs."""
    settings = content.get("settings", {})
    stages = len(settings.get("epochs", [])) > 1 and settings.get("labels", True)
    if stages or settings.get("correct_and_smooth"):
        missing = "the networks of its earlier stages" if stages else "how its predictions are smoothed"
        raise FormatError(
            f"{folder} was written by gamlp 0.1, which did not keep {missing}.\n"
            "Its stored predictions can be read; to predict for another graph, train again."
        )
    embedded = "another graph's" if settings.get("featureless") == "embeddings" else ""  # whose is not known
    state = {"seed": 0, "width": content["width"], "subsets": content.get("subsets", []), "stages": 1}
    return {**content, "feature_names": None, "embedded": embedded, "state": state, "correct_and_smooth": None}
