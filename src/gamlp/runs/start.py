"""A run that begins where another ended: `gamlp train --from RUN`, on the graph as it is now.

Method, settings, seeds, columns, classes and scaling are those of the run; every stage begins with the weights of the
same stage of the same seed. What the run's own model scores on validation of the graph stands beside the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph, check_trainable
from gamlp.graph.readers.source import GraphSource
from gamlp.methods import method_named
from gamlp.model_file import load_fitted
from gamlp.pipeline import Fitted
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.runs.record import Record, finished_seed, read_run
from gamlp.runs.spec import RunSpec, check_engine
from gamlp.train.hop_source import HopSource

START = "start_valid_{}"  # what the run's own model scores on validation, by the metric that chooses


def start_of(run: Path, seed: int, *, device: str = "cpu", source: HopSource | None = None) -> Fitted:
    """Return the model of one seed of a finished run; its hops may come from the source of another pipeline."""
    record = read_run(run)
    return load_fitted(run / f"seed-{finished_seed(run, record, seed)}", device=device, hop_source=source)


def spec_from(
    run: Path,
    record: Record,
    graph: Graph,
    *,
    overrides: Mapping[str, Any],
    engine: EngineChoice,
    device: str,
    source: GraphSource | None,
) -> tuple[Graph, RunSpec]:
    """Return the graph with a run's columns and classes, and what is trained on it; `overrides` change settings."""
    method = method_named(record.method)
    if not method.takes_start:
        raise SettingsError(
            f"{record.method} cannot begin with the weights of another run.\n"
            "Networks on hops and portfolios can (gamlp-…, sign, …): train anew, without --from."
        )
    graph = as_known(graph, start_of(run, finished_seed(run, record, None)))
    for seed in record.seeds:
        check_trainable(graph, graph.split_for(seed))
    method.check_overrides(overrides)
    settings = method.settings_from({**record.settings, **overrides})
    method.check(graph, settings)
    check_engine(method, engine, device)
    check_same_network(record, method.settings_data(settings), overrides)
    return graph, RunSpec(
        source=source, recipe=record.recipe, overrides={**record.overrides, **overrides}, seeds=record.seeds,
        engine=engine, device=device, fingerprints=dict(graph.fingerprints), method=record.method,
        settings=method.settings_data(settings), start=run.resolve(),
    )  # fmt: skip


def as_known(graph: Graph, fitted: Fitted) -> Graph:
    """Return the graph with columns and classes of a model; a class that it does not know is refused."""
    graph = fitted.fit_columns(graph)
    if unknown := [name for name in graph.classes if name not in fitted.classes]:
        raise SettingsError(
            f"{graph.name} has the class '{unknown[0]}', which the run does not know: its network has no place for it."
            "\nTrain anew, without --from."
        )
    return replace(graph, labels=fitted.class_numbers(graph), classes=fitted.classes)


WEIGHTS = (
    "hops", "combiner", "hop_layers", "hidden", "jk_layers", "jk_reference", "head_layers", "residual", "batch_norm",
    "head_residual", "labels", "label_layers", "components", "relations", "subsets", "featureless", "feature_scaling",
)  # fmt: skip


def check_same_network(record: Record, settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    """Refuse settings that make another network of it, or scale the features otherwise."""
    for key in overrides:
        if key in WEIGHTS and settings.get(key) != record.settings.get(key):
            raise SettingsError(
                f"--set {key}={overrides[key]}: the run has {key} = {record.settings.get(key)}, and its weights fit no "
                "other.\nLeave it out, or train anew, without --from."
            )
