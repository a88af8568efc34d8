"""How a run learned: loss and validation accuracy over the epochs, the stages one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gamlp.explain.figures.chart import ACCENT, SECOND, SOFT, Chart, legend_above
from gamlp.explain.finished_run import FinishedRun
from gamlp.runs.seed_files import check_kept
from gamlp.storage.files import read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

History = Sequence[dict[str, float]]
LOSS, VALID_LOSS, ACCURACY = ("loss",), ("valid_log_loss", "valid_loss"), ("valid_accuracy",)


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the losses of this seed, and the validation accuracy of all seeds."""
    return [*loss_charts(run.history), *accuracy_charts(run)]


def loss_charts(history: History) -> list[Chart]:
    """Draw training and validation loss; nothing where neither was noted."""
    curves = {"training": series(history, *LOSS), "validation": series(history, *VALID_LOSS)}

    def draw(axes: Axes) -> None:
        for (name, points), colour, style in zip(curves.items(), (ACCENT, SECOND), ("-", "--"), strict=True):
            if points:
                axes.plot(*np.array(points).T, color=colour, linestyle=style, label=name)
        finish(axes, history)

    rows = [(name, epoch, value) for name, points in curves.items() for epoch, value in points]
    return [Chart("loss", "Loss", ("curve", "epoch", "loss"), rows, draw)] if rows else []


def accuracy_charts(run: FinishedRun) -> list[Chart]:
    """Draw the validation accuracy of this seed, the other seeds faintly."""
    curves = {run.seed: series(run.history, *ACCURACY)}
    for seed in run.record["seeds"]:
        if seed != run.seed:
            check_kept(run.folder / f"seed-{seed}", names=("history.json",))
            curves[seed] = series(read_json(run.folder / f"seed-{seed}" / "history.json"), *ACCURACY)

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import PercentFormatter

        others = "other seeds"
        for seed, points in curves.items():
            if points and seed == run.seed:
                axes.plot(*np.array(points).T, color=ACCENT, label=f"seed {seed}", zorder=3)
            elif points:
                axes.plot(*np.array(points).T, color=SOFT, linewidth=0.8, alpha=0.6, label=others)
                others = ""
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        finish(axes, run.history)

    rows = [(seed, epoch, value) for seed, points in curves.items() for epoch, value in points]
    header = ("seed", "epoch", "validation accuracy")
    return [Chart("validation-accuracy", "Validation accuracy", header, rows, draw)] if rows else []


def finish(axes: Axes, history: History) -> None:
    """Mark where stages begin, and name the axis and the lines."""
    from matplotlib.ticker import MaxNLocator

    for x, name in stage_marks(history):
        axes.axvline(x, color=SOFT, linestyle=":", linewidth=1)
        axes.annotate(name, (x, 0.99), xycoords=("data", "axes fraction"), xytext=(3, 0), textcoords="offset points",
                      fontsize=8, va="top", color=SOFT)  # fmt: skip
    axes.grid(axis="y")
    axes.set(xlabel="epoch")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    legend_above(axes)


def series(history: History, *keys: str) -> list[tuple[float, float]]:
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


def stage_marks(history: History) -> list[tuple[float, str]]:
    """Return where each stage begins, where there are several."""
    stages = [entry.get("stage", 1.0) for entry in history]
    places = [x for x, _ in series(history, "epoch")]
    starts = [(places[stages.index(stage)], f"stage {int(stage)}") for stage in sorted(set(stages))]
    return starts if len(starts) > 1 else []
