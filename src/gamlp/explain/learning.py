"""How a run learned: loss and validation accuracy over the epochs, the stages one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gamlp.explain.charts import Line, line_chart, percent
from gamlp.explain.finished_run import OpenedRun
from gamlp.runs.seed_files import check_kept
from gamlp.storage.files import read_json


class Chart(NamedTuple):
    """What one chart shows, and how its numbers are written."""

    title: str
    lines: list[Line]
    unit: Callable[[float], str]


def learning_curves(run: OpenedRun) -> list[dict[str, Any]]:
    """Return the charts of loss and validation accuracy: the stages one after the other, other seeds faintly."""
    for seed in run.record["seeds"]:
        check_kept(run.folder / f"seed-{seed}", names=("history.json",))
    histories = {seed: read_json(run.folder / f"seed-{seed}" / "history.json") for seed in run.record["seeds"]}
    other = {seed: entries for seed, entries in histories.items() if seed != run.seed}
    loss = [
        Line("training loss", "first", series(run.history, "loss")),
        Line("validation log loss", "second", series(run.history, "valid_log_loss", "valid_loss")),
    ]
    accuracy = [Line(f"seed {seed}", "faint", series(entries, "valid_accuracy")) for seed, entries in other.items()]
    accuracy.append(Line(f"seed {run.seed}", "first", series(run.history, "valid_accuracy")))
    drawn = [
        Chart("Loss", [line for line in loss if line.points], lambda value: f"{value:g}"),
        Chart("Validation accuracy", [line for line in accuracy if line.points], percent),
    ]
    return [
        {"title": chart.title, "lines": chart.lines, "svg": line_chart(*chart, marks=stage_marks(run.history))}
        for chart in drawn
        if chart.lines
    ]


def series(history: Sequence[dict[str, float]], *keys: str) -> list[tuple[float, float]]:
    """Return (epoch over all stages, value) of the first of `keys` that the entries have."""
    points, before, last, stage = [], 0.0, 0.0, 1.0
    for entry in history:
        if entry.get("stage", 1.0) != stage:
            before, stage = before + last, entry["stage"]
        last = entry["epoch"]
        value = next((entry[key] for key in keys if entry.get(key) is not None), None)
        if value is not None:
            points.append((before + last, float(value)))
    return points


def stage_marks(history: Sequence[dict[str, float]]) -> list[tuple[float, str]]:
    """Return where each stage begins, where there are several."""
    stages = [entry.get("stage", 1.0) for entry in history]
    places = [x for x, _ in series(history, "epoch")]
    starts = [(places[stages.index(stage)], f"stage {int(stage)}") for stage in sorted(set(stages))]
    return starts if len(starts) > 1 else []
