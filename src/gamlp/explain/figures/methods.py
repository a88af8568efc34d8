"""Several runs side by side: a dot for every seed, the mean with its standard deviation, and what was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gamlp.explain.figures.chart import ACCENT, SECOND, Chart, label, legend_above
from gamlp.explain.run_summary import RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURED = (
    "test_accuracy", "test_accuracy_std", "valid_accuracy", "valid_accuracy_std", "seconds_per_seed",
    "peak_memory_bytes", "parameters",
)  # fmt: skip


def charts(runs: Sequence[RunSummary]) -> list[Chart]:
    """Draw the test accuracies; nothing where none was tested."""
    tested = [run for run in runs if run.tests]
    if not tested:
        return []
    values = [(run.name, *(run.result[key] for key in MEASURED), run.published, run.published_std) for run in runs]
    rows = [["" if value is None else value for value in row] for row in values]

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        for place, run in enumerate(tested):
            draw_run(axes, run, place)
        axes.set(ylim=(len(tested) - 0.5, -0.6), yticks=[], xlabel="test accuracy")
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        axes.grid(axis="x")
        legend_above(axes)

    header = ("name", *MEASURED, "published", "published_std")
    return [Chart("methods", "Test accuracy of each method", header, rows, draw, size=(4.8, 1 + 0.5 * len(tested)))]


def draw_run(axes: Axes, run: RunSummary, place: int) -> None:
    """Draw one method on its own line, beneath its name."""

    def named(text: str) -> str | None:
        return text if text not in axes.get_legend_handles_labels()[1] else None

    mean, std = run.result["test_accuracy"], run.result["test_accuracy_std"]
    axes.text(0, place - 0.25, f"{label(run.name)}  {spread(mean, std)}", transform=axes.get_yaxis_transform())
    axes.plot(list(run.tests.values()), [place] * len(run.tests), "o", color=ACCENT, markersize=4, alpha=0.4,
              markeredgewidth=0, label=named("one seed"))  # fmt: skip
    axes.errorbar(mean, place, xerr=std, fmt="o", color=ACCENT, markersize=7, elinewidth=2.4,
                  label=named("mean ± std"))  # fmt: skip
    if run.published is not None:
        axes.errorbar(run.published, place + 0.2, xerr=run.published_std, fmt="D", color=SECOND, markersize=5,
                      elinewidth=1.6, label=named("published"))  # fmt: skip


def spread(mean: float, std: float | None) -> str:
    """Write a share as 84.31 ± 0.52 %."""
    return f"{100 * mean:.2f}" + ("" if std is None else f" ± {100 * std:.2f}") + " %"
