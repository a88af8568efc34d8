"""A fitted pipeline as two files: model.safetensors with all that was learned, model.json with all else.

Nothing is unpickled: the JSON holds the method, its settings and sizes, from which everything is built again, and the
checksum of the tensors beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError
from gamlp.labels.correction import CorrectAndSmooth, Correction, Smoothing
from gamlp.methods import method_named
from gamlp.methods.base import Context
from gamlp.pipeline import Fitted, Pipeline
from gamlp.propagate.engines.base import Engine
from gamlp.propagate.normalize import Normalization
from gamlp.storage.checksums import check_files, file_checksum
from gamlp.storage.files import read_json, write_json
from gamlp.train.checkpoint import load_tensors, save_tensors

FORMAT = 2


def save_fitted(fitted: Fitted, folder: Path) -> None:
    """Write both files into `folder`; model.json comes last."""
    save_tensors(folder / "model.safetensors", fitted.learned.tensors(), {})
    content = {
        "format": FORMAT,
        "weights": file_checksum(folder / "model.safetensors"),
        "method": fitted.pipeline.method.name,
        "settings": fitted.pipeline.method.settings_data(fitted.pipeline.settings),
        "classes": list(fitted.classes),
        "features": fitted.features,
        "feature_names": None if fitted.feature_names is None else list(fitted.feature_names),
        "embedded": fitted.embedded,
        "state": fitted.learned.state(),
        "correct_and_smooth": None if fitted.smoothing is None else asdict(fitted.smoothing),
    }
    write_json(folder / "model.json", content)


def read_fitted(folder: Path, *, engine: Engine | None, device: str) -> Fitted:
    """Read both files back; a file that does not fit the other is refused."""
    content = read_json(folder / "model.json")
    if isinstance(content, dict) and "weights" in content:
        check_files(folder, {"model.safetensors": content["weights"]})
    if isinstance(content, dict) and content.get("format") == 1:
        content = from_format_1(content, folder)
    tensors, _ = load_tensors(folder / "model.safetensors")
    try:
        method = method_named(content["method"])
        settings = method.settings_from(content["settings"])
        pipeline = Pipeline(method, settings, engine=engine, device=device)
        if content["format"] == 1:
            tensors = {_stage_name(name): value for name, value in tensors.items()}
        context = Context(pipeline.hop_source, len(content["classes"]), device=device)
        learned = method.load(settings, content["state"], tensors, context)
        names = content["feature_names"]
        return Fitted(
            pipeline,
            learned,
            smoothing_from(content["correct_and_smooth"]),
            tuple(content["classes"]),
            None if names is None else tuple(names),
            int(content["features"]),
            str(content["embedded"]),
        )
    except (KeyError, TypeError, RuntimeError, AttributeError, ValueError) as error:
        raise FormatError(
            f"{folder}: model.json and model.safetensors do not belong together ({error}).\nTake both from one run."
        ) from error


def smoothing_from(content: Mapping[str, Any] | None) -> CorrectAndSmooth | None:
    """Read back how probabilities are corrected and smoothed."""
    if content is None:
        return None

    def half(kind: Any, values: Mapping[str, Any] | None) -> Any:
        return values and kind(**{**values, "normalization": Normalization(**values["normalization"])})

    return CorrectAndSmooth(half(Correction, content["correction"]), half(Smoothing, content["smoothing"]))


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


def _stage_name(name: str) -> str:
    return name.replace("network.", "stage-1.", 1) if name.startswith("network.") else name
