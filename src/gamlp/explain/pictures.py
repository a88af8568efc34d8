"""The report's figures as files: learning curves, calibration, confusion, accuracy of groups, reliable nodes, methods.

Each is written as .png and .svg with its numbers as .csv beside it (see `plots`, which draws what attention learned).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.explain.calibration import Calibration
from gamlp.explain.learning import series, stage_marks
from gamlp.explain.mistakes import Confusion, Group
from gamlp.explain.plots import DENSE, SPARSE, heat, plain, save, write_csv
from gamlp.explain.run_summary import Entry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_GROUPS = 40


def write_learning(history: Sequence[dict[str, float]], stem: Path) -> list[Path]:
    """Draw loss and validation accuracy over the epochs, the stages one after the other."""
    keys = list(dict.fromkeys(key for entry in history for key in entry))
    table = write_csv(stem, keys, [[entry.get(key, "") for key in keys] for entry in history])
    curves: dict[str, list[tuple[str, tuple[str, ...]]]] = {
        "loss": [("training", ("loss",)), ("validation", ("valid_log_loss", "valid_loss"))],
        "validation accuracy, %": [("", ("valid_accuracy",))],
    }

    def draw(figure: Figure) -> None:
        for axes, (title, lines) in zip(figure.subplots(1, 2), curves.items(), strict=True):
            for (name, wanted), colour in zip(lines, (SPARSE, DENSE), strict=False):
                points = series(history, *wanted)
                if points:
                    x, y = np.array(points).T
                    axes.plot(x, 100 * y if "%" in title else y, color=colour, label=name)
            for x, word in stage_marks(history):
                axes.axvline(x, color="grey", linestyle=":", linewidth=1)
                axes.annotate(word, (x, 1), xycoords=("data", "axes fraction"), fontsize=8, va="bottom")
            axes.set(xlabel="epoch", ylabel=title)
            if any(name for name, _ in lines):
                axes.legend(frameon=False)

    return [*save(stem, draw, size=(9, 3.4)), table]


def write_calibration(found: Calibration, stem: Path) -> list[Path]:
    """Draw the share that is right in each bin of confidence, beside the diagonal where both are equal."""
    rows = zip(found.edges[:-1], found.edges[1:], found.nodes, found.confidence, found.right, strict=True)
    table = write_csv(stem, ("from", "to", "nodes", "confidence", "right"), [[*map(float, row)] for row in rows])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        filled = found.nodes > 0
        width = np.diff(found.edges)[filled]
        axes.bar(found.edges[:-1][filled], found.right[filled], width=0.92 * width, align="edge", color=SPARSE)
        axes.plot(found.confidence[filled], found.confidence[filled], "_", color=DENSE, markersize=16)
        axes.plot([0, 1], [0, 1], color="grey", linestyle=":", linewidth=1)
        title = f"Calibration: expected error {100 * found.error:.1f} %"
        axes.set(title=title, xlabel="confidence", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))

    return [*save(stem, draw, size=(4.6, 3.8)), table]


def write_confusion(found: Confusion, stem: Path) -> list[Path]:
    """Draw the most confused classes, label × prediction, as shares of the label."""
    columns = (*found.classes, "others")
    rows = [(name, *map(int, counts)) for name, counts in zip(found.classes, found.counts, strict=True)]
    table = write_csv(stem, ("label", *columns), rows)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        shares = found.counts / np.maximum(found.totals, 1)[:, None]
        names = [plain(name) for name in found.classes]
        heat(axes, shares, rows=names, columns=[*names, "others"], label="share of the label", colours="Blues", low=0)
        axes.tick_params(axis="x", rotation=90)
        axes.set(title="The most confused classes", xlabel="predicted", ylabel="label")

    side = 0.5 * len(columns)
    return [*save(stem, draw, size=(3.2 + side, 2.4 + side)), table]


def write_groups(title: str, groups: Sequence[Group], stem: Path) -> list[Path]:
    """Draw the accuracy of groups of test nodes as bars; of very many the first, the .csv has them all."""
    table = write_csv(stem, ("group", "nodes", "accuracy"), [(one.name, one.nodes, one.accuracy) for one in groups])
    drawn = groups[:MOST_GROUPS]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        names = [f"{plain(one.name)}  ({one.nodes:,})" for one in drawn]
        axes.barh(range(len(drawn)), [100 * one.accuracy for one in drawn], color=SPARSE)
        axes.set_yticks(range(len(drawn)), names)
        axes.invert_yaxis()
        axes.set(title=title, xlabel="accuracy on test nodes, %", xlim=(0, 100))

    return [*save(stem, draw, size=(5.6, 1.3 + 0.26 * len(drawn))), table]


def write_reliable(stages: Sequence[dict[str, Any]], stem: Path) -> list[Path]:
    """Draw how many nodes are reliable in each stage."""
    counts = [int(stage["reliable"]) for stage in stages]
    table = write_csv(stem, ("stage", "reliable nodes"), list(enumerate(counts, start=1)))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places = [str(stage) for stage in range(1, len(counts) + 1)]
        axes.bar_label(axes.bar(places, counts, color=SPARSE, width=0.6), fmt="{:,.0f}")
        axes.set(title="The reliable set", xlabel="stage", ylabel="reliable nodes")

    return [*save(stem, draw, size=(4.2, 3.2)), table]


def write_methods(entries: Sequence[Entry], stem: Path) -> list[Path]:
    """Draw each method's seeds, mean ± std, and the published value."""
    keys = ("test_accuracy", "test_accuracy_std", "valid_accuracy", "valid_accuracy_std", "seconds_per_seed")
    more = ("peak_memory_bytes", "parameters")
    rows = [
        (one.name, *(one.result[key] for key in (*keys, *more)), one.published, one.published_std) for one in entries
    ]
    header = ("name", *keys, *more, "published", "published_std")
    table = write_csv(stem, header, [["" if value is None else value for value in row] for row in rows])
    tested = [entry for entry in entries if entry.tests]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for place, one in enumerate(tested):
            seeds = [100 * value for value in one.tests.values()]
            axes.plot(seeds, [place] * len(seeds), ".", color=SPARSE, alpha=0.45)
            spread = 100 * (one.result["test_accuracy_std"] or 0)
            axes.errorbar(100 * one.result["test_accuracy"], place, xerr=spread, fmt="o", color=SPARSE, capsize=3)
            if one.published is not None:
                wide = 100 * (one.published_std or 0)
                axes.errorbar(100 * one.published, place + 0.25, xerr=wide, fmt="D", markersize=4, color=DENSE)
        axes.set_yticks(range(len(tested)), [plain(one.name) for one in tested])
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.25)
        axes.set(title="Blue: mean ± std and seeds; orange: published", xlabel="test accuracy, %")

    return [*(save(stem, draw, size=(6.4, 1.4 + 0.4 * len(tested))) if tested else []), table]
