"""How a run learned: loss and score on validation over the epochs of all stages, and the reliable set of each.

The same curves can be written for TensorBoard (extra `tensorboard`): one line a seed, epochs counted over all stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import MissingExtraError
from gamlp.explain.comparison import summaries_of
from gamlp.explain.figures.cells import bar_chart
from gamlp.explain.figures.chart import ACCENT, SECOND, SOFT, Axes, Chart, legend_above
from gamlp.explain.finished_run import FinishedRun
from gamlp.runs.record import metric_of
from gamlp.runs.seed import check_kept
from gamlp.storage.files import read_json

History = Sequence[dict[str, float]]
Curve = tuple[str | int, list[tuple[float, float]], dict[str, Any]]  # which, points, how it is drawn
LOSS, VALID_LOSS = ("loss",), ("valid_log_loss", "valid_loss")


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the losses of this seed, the score of all seeds on validation, and the reliable nodes of the stages."""
    return [*loss_charts(run.history), *score_charts(run), *reliable_charts(run)]


def loss_charts(history: History) -> list[Chart]:
    """Draw training and validation loss; nothing where neither was noted."""
    curves: list[Curve] = [
        ("training", series(history, *LOSS), {"color": ACCENT, "label": "training"}),
        ("validation", series(history, *VALID_LOSS), {"color": SECOND, "linestyle": "--", "label": "validation"}),
    ]
    return curve_charts("loss", "Loss", ("curve", "epoch", "loss"), curves, history)


def score_charts(run: FinishedRun) -> list[Chart]:
    """Draw the metric of this seed on validation, the other seeds faintly."""
    metric = metric_of(run.record["result"])
    key = f"valid_{metric.name}"
    own = {"color": ACCENT, "label": f"seed {run.seed}", "zorder": 3}
    curves: list[Curve] = [(run.seed, series(run.history, key), own)]
    for seed in run.record["seeds"]:
        if seed != run.seed:
            check_kept(run.folder / f"seed-{seed}", names=("history.json",))
            points = series(read_json(run.folder / f"seed-{seed}" / "history.json"), key)
            label = "" if any(before for _, before, _ in curves[1:]) else "other seeds"
            curves.append((seed, points, {"color": SOFT, "linewidth": 0.8, "alpha": 0.6, "label": label}))
    title = f"Validation {metric.title}"
    name, header = f"validation-{metric.name.replace('_', '-')}", ("seed", "epoch", title.lower())
    return curve_charts(name, title, header, curves, run.history, percent=metric.higher)


def curve_charts(
    name: str, title: str, header: Sequence[str], curves: Sequence[Curve], history: History, *, percent: bool = False
) -> list[Chart]:
    """Draw curves over the epochs, and mark where stages begin; nothing where no curve has a point."""
    rows = [(which, epoch, value) for which, points, _ in curves for epoch, value in points]

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        for _, points, look in curves:
            if points:
                axes.plot(*np.array(points).T, **look)
        for x, stage in stage_marks(history):
            axes.axvline(x, color=SOFT, linestyle=":", linewidth=1)
            axes.annotate(stage, (x, 0.99), xycoords=("data", "axes fraction"), xytext=(3, 0),
                          textcoords="offset points", fontsize=8, va="top", color=SOFT)  # fmt: skip
        if percent:
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        axes.grid(axis="y")
        axes.set(xlabel="epoch")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        legend_above(axes)

    return [Chart(name, title, header, rows, draw)] if rows else []


def reliable_charts(run: FinishedRun) -> list[Chart]:
    """Draw how many nodes each stage takes the class of from the stage before, where a stage has such nodes."""
    rows = [(stage, int(one["reliable"])) for stage, one in enumerate(run.stages, start=1)]
    if not any(count for _, count in rows):
        return []
    bars = [(f"stage {stage}", 0, f"{count:,}", count / run.graph.nodes) for stage, count in rows]
    note = "Reliable nodes are those whose class the stage before was sure of; the bar is their share of all nodes."
    return [bar_chart("reliable-set", "The reliable set", bars, ("stage", "reliable nodes"), rows=rows,
                      xlabel="share of all nodes", note=note)]  # fmt: skip


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


def write_curves(folders: list[Path], out: Path) -> list[Path]:
    """Write event files below `out`, a folder for each run and seed; return these folders."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("tensorboard", "Writing curves for TensorBoard") from error
    opened: Any = SummaryWriter  # its types differ with what else is installed
    made = []
    for entry in summaries_of(folders):
        name = metric_of(entry.result).name
        curves = {"loss/train": LOSS, "loss/valid": VALID_LOSS, f"{name}/valid": (f"valid_{name}",)}
        for one in entry.result["runs"]:
            history = read_json(entry.folder / f"seed-{one['seed']}" / "history.json")
            place = out / entry.folder.resolve().name / f"seed-{one['seed']}"
            with opened(log_dir=str(place)) as writer:
                for curve, keys in curves.items():
                    for epoch, value in series(history, *keys):
                        writer.add_scalar(curve, value, int(epoch))
                if one[f"test_{name}"] is not None:
                    writer.add_scalar(f"{name}/test", one[f"test_{name}"], 0)
            made.append(place)
    return made
