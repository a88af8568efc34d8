"""One page for several runs of one graph: DIRECTORY/report.html of a comparison, or of any runs that are named.

Means with their spread beside the published values, every seed as a dot, time and memory, the settings that differ, and
the commands that repeat it. Paired differences: all runs of a comparison have the same seeds and splits, so the gap
between two methods is averaged seed by seed, and its spread is that of the gap, not of the two methods.

Only run.json and comparison.json are read, so that the page is rebuilt without the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gamlp.errors import InputError, MissingFileError
from gamlp.explain.figures.chart import ACCENT, SECOND, Axes, Chart, label, legend_above, write_charts
from gamlp.explain.finished_run import finished_record
from gamlp.explain.report import own_page, render_page, text_of
from gamlp.graph.graph import Graph
from gamlp.runs.comparison import published_in, read_comparison
from gamlp.runs.record import USUAL, baseline_words, metric_of
from gamlp.runs.spec import RunSpec, Spec, command_of
from gamlp.storage.checksums import json_digest
from gamlp.storage.files import write_text
from gamlp.targets.metrics import METRICS, Metric, mean_and_std

COSTS = ("seconds_per_seed", "peak_memory_bytes", "parameters")


@dataclass(frozen=True)
class RunSummary:
    """One run. Scores are shares from 0 to 1."""

    name: str  # the method; the folder beside it where two runs have the same
    folder: Path
    record: dict[str, Any]  # run.json
    published: float | None
    published_std: float | None

    @property
    def result(self) -> dict[str, Any]:
        """Mean, std and seeds of everything that was scored."""
        return dict(self.record["result"])

    def tests(self, metric: Metric) -> dict[int, float]:
        """Return the score on test of each seed."""
        found = {int(one["seed"]): one.get(f"test_{metric.name}") for one in self.result["runs"]}
        return {seed: value for seed, value in found.items() if value is not None}

    def measured(self, metric: Metric) -> dict[str, float | None]:
        """Return mean and std of the metric on test and validation."""
        names = [f"{part}_{metric.name}{end}" for part in ("test", "valid") for end in ("", "_std")]
        return {name: self.result.get(name) for name in names}


def write_comparison(folders: Sequence[Path], *, out: Path | None = None) -> Path:
    """Write the page of a comparison, or of several runs; the latter need a place, `out`."""
    if out is None and len(folders) > 1:
        raise InputError("Several runs were named, and no place for their page.\nName one, as --out side-by-side.html.")
    path = out or folders[0] / "report.html"
    return write_text(path, render(folders, beside=path.parent))


def write_pages(graph: Graph, folder: Path) -> Path:
    """Write the page of every method of a comparison that has none yet, and the one that sets them side by side."""
    for run in runs_in(folder):
        own_page(graph, run)
    return write_comparison([folder])


def write_comparison_figures(folders: Sequence[Path], folder: Path) -> list[Path]:
    """Write the figure of several runs as .png, .svg and .csv."""
    return write_charts(charts(summaries_of(folders)), folder)


def render(folders: Sequence[Path], *, beside: Path) -> str:
    """Return the page; links lead to the runs' own pages from the folder `beside`."""
    entries = summaries_of(folders)
    metric = shared_metric(entries)
    best = max(
        (entry for entry in entries if entry.tests(metric)),
        key=lambda entry: metric.better(entry.result[f"test_{metric.name}"]),
        default=None,
    )
    first = entries[0].record
    is_one = len(folders) == 1 and (folders[0] / "comparison.json").exists()
    whole = read_comparison(folders[0]) if is_one else None
    specs: list[Spec] = [whole] if whole else [RunSpec.model_validate(entry.record) for entry in entries]
    content = {
        "title": f"{len(entries)} {'runs' if len(folders) > 1 else 'methods'} on {first['dataset']}",
        "record": first,
        "metric": metric,
        "baseline": baseline_words(entries[0].result),
        "others": [one for one in METRICS.values() if one != metric],
        "best": best,
        "charts": charts(entries),
        "rows": [line(entry, best, metric, beside) for entry in entries],
        "seeds": sorted({seed for entry in entries for seed in entry.tests(metric)}),
        "slowest": max((entry.result["seconds_per_seed"] for entry in entries), default=0) or 1,
        "largest": max((entry.result["peak_memory_bytes"] or 0 for entry in entries), default=0) or 1,
        "propagation": whole and whole.propagation_seconds,
        "names": [entry.name for entry in entries],
        "settings": differing_settings(entries),
        "commands": [words for spec in specs if (words := command_of(spec))],
    }
    return render_page("comparison.html.j2", content, scripts=["sort.js.j2"])


def shared_metric(entries: Sequence[RunSummary]) -> Metric:
    """Return the metric that chose in all runs; where they differ, the accuracy, which every run has."""
    names = {metric_of(entry.result).name for entry in entries}
    return METRICS[names.pop() if len(names) == 1 else USUAL]


def line(entry: RunSummary, best: RunSummary | None, metric: Metric, beside: Path) -> dict[str, Any]:
    """Return one run as the template wants it."""
    page, place = (entry.folder / "report.html").resolve(), beside.resolve()
    link = page.relative_to(place).as_posix() if page.exists() and page.is_relative_to(place) else None
    relative = {"page": link, "best": entry is best, "behind": best and behind(entry, best, metric)}
    values = list(entry.measured(metric).values())
    scores = {"test": values[:2], "valid": values[2:], "tests": entry.tests(metric)}
    return {**vars(entry), "result": entry.result, **scores, **relative}


def behind(entry: RunSummary, best: RunSummary, metric: Metric) -> tuple[float, float | None] | None:
    """Return mean and std of best − entry over the seeds that both have: paired, as seeds share splits."""
    leading = best.tests(metric)
    gaps = [metric.better(leading[seed] - value) for seed, value in entry.tests(metric).items() if seed in leading]
    return mean_and_std(gaps) if gaps and entry is not best else None


def differing_settings(entries: Sequence[RunSummary]) -> dict[str, list[str]]:
    """Return the settings that are not the same in all runs, a text for each run; – where a run has no such setting."""
    runs = [{key: text_of(value) for key, value in entry.record["settings"].items()} for entry in entries]
    texts = {key: [run.get(key, "–") for run in runs] for key in dict.fromkeys(key for run in runs for key in run)}
    return {key: values for key, values in texts.items() if len(set(values)) > 1}


def summaries_of(folders: Sequence[Path]) -> list[RunSummary]:
    """Return the runs of all folders, comparisons opened up; runs of different graphs are refused."""
    runs = [run for folder in folders for run in runs_in(folder)]
    entries = [summary_of(run) for run in dict.fromkeys(runs)]
    graphs = {json_digest(entry.record["fingerprints"]): entry.record["dataset"] for entry in entries}
    if len(graphs) > 1:
        raise InputError(
            f"The runs are of {len(graphs)} different graphs: {', '.join(graphs.values())}.\n"
            "Name runs of one and the same graph; scores of different graphs cannot be compared."
        )
    count = Counter(entry.name for entry in entries)
    return [replace(one, name=f"{one.name} ({one.folder.name})") if count[one.name] > 1 else one for one in entries]


def runs_in(folder: Path) -> list[Path]:
    """Return the runs of a comparison in its order, or the run itself."""
    if not (folder / "comparison.json").exists():
        return [folder]
    record = read_comparison(folder)
    if record.rows is None:
        raise MissingFileError(f"{folder} is not finished.\nFinish it with: gamlp compare --resume {folder}")
    return [folder / name for name in record.methods]


def summary_of(run: Path) -> RunSummary:
    """Read one finished run, and what was published with its recipe, as a share; a recipe that is gone has none."""
    if not (run / "run.json").is_file():
        raise MissingFileError(f"{run} has neither run.json nor comparison.json.\nName what train or compare made.")
    record = finished_record(run)
    mean, std = published_in(record["recipe"]).get(record["method"], (None, None))
    return RunSummary(record["method"], run, record, mean and mean / 100, std and std / 100)


def charts(runs: Sequence[RunSummary]) -> list[Chart]:
    """Draw the scores on test, a dot for every seed beside mean ± std and what was published; or nothing, untested."""
    metric = shared_metric(runs)
    tested = [run for run in runs if run.tests(metric)]
    if not tested:
        return []
    costs = [[run.result[key] for key in COSTS] for run in runs]
    values = [
        (run.name, *run.measured(metric).values(), *cost, run.published, run.published_std)
        for run, cost in zip(runs, costs, strict=True)
    ]
    rows = [["" if value is None else value for value in row] for row in values]

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        for place, run in enumerate(tested):
            draw_run(axes, run, metric, place)
        axes.set(ylim=(len(tested) - 0.5, -0.6), yticks=[], xlabel=f"test {metric.title}")
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        if metric.higher:
            axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        axes.grid(axis="x")
        legend_above(axes)

    header = ("name", *tested[0].measured(metric), *COSTS, "published", "published_std")
    title, size = f"Test {metric.title} of each method", (4.8, 1 + 0.5 * len(tested))
    return [Chart("methods", title, header, rows, draw, size=size)]


def draw_run(axes: Axes, run: RunSummary, metric: Metric, place: int) -> None:
    """Draw one method on its own line, beneath its name."""

    def named(text: str) -> str | None:
        return text if text not in axes.get_legend_handles_labels()[1] else None

    mean, std = run.result[f"test_{metric.name}"], run.result[f"test_{metric.name}_std"]
    spread, tests = metric.said(mean, std), run.tests(metric)
    axes.text(0, place - 0.25, f"{label(run.name)}  {spread}", transform=axes.get_yaxis_transform())
    axes.plot(list(tests.values()), [place] * len(tests), "o", color=ACCENT, markersize=4, alpha=0.4,
              markeredgewidth=0, label=named("one seed"))  # fmt: skip
    axes.errorbar(mean, place, xerr=std, fmt="o", color=ACCENT, markersize=7, elinewidth=2.4,
                  label=named("mean ± std"))  # fmt: skip
    if run.published is not None and metric.name == USUAL:
        axes.errorbar(run.published, place + 0.2, xerr=run.published_std, fmt="D", color=SECOND, markersize=5,
                      elinewidth=1.6, label=named("published"))  # fmt: skip
