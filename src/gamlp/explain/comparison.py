"""One page for several runs of one graph: DIRECTORY/report.html of a comparison.

Means with their spread beside the published values, every seed as a dot, time and memory, the settings that differ, and
the commands that repeat it. Paired differences: all runs of a comparison have the same seeds and splits, so the gap
between two methods is averaged seed by seed, and its spread is that of the gap, not of the two methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gamlp.errors import InputError
from gamlp.explain.figures import methods
from gamlp.explain.figures.chart import write_charts
from gamlp.explain.page import render_page, write_page
from gamlp.explain.report import text_of
from gamlp.explain.run_summary import RunSummary, behind, best_of, summaries_of
from gamlp.runs.command import command_of
from gamlp.runs.comparison import read_comparison
from gamlp.runs.spec import RunSpec


def write_comparison(folders: Sequence[Path], *, out: Path | None = None) -> Path:
    """Write the page of a comparison, or of several runs; the latter need a place, `out`."""
    if out is None and len(folders) > 1:
        raise InputError("Several runs were named, and no place for their page.\nName one, as --out side-by-side.html.")
    path = out or folders[0] / "report.html"
    return write_page(render(folders, beside=path.parent), path)


def render(folders: Sequence[Path], *, beside: Path) -> str:
    """Return the page; links lead to the runs' own pages from the folder `beside`."""
    entries = summaries_of(folders)
    best = best_of(entries)
    first = entries[0].record
    content = {
        "title": f"{len(entries)} {'runs' if len(folders) > 1 else 'methods'} on {first['dataset']}",
        "record": first,
        "best": best,
        "charts": methods.charts(entries),
        "rows": [line(entry, best, beside) for entry in entries],
        "seeds": sorted({seed for entry in entries for seed in entry.tests}),
        "slowest": max((entry.result["seconds_per_seed"] for entry in entries), default=0) or 1,
        "largest": max((entry.result["peak_memory_bytes"] or 0 for entry in entries), default=0) or 1,
        "propagation": propagation_seconds(folders),
        "names": [entry.name for entry in entries],
        "settings": differing_settings(entries),
        "commands": commands(folders, entries),
    }
    return render_page("comparison.html.j2", content, scripts=["sort.js.j2"])


def write_comparison_figures(folders: Sequence[Path], folder: Path) -> list[Path]:
    """Write the figure of several runs as .png, .svg and .csv."""
    return write_charts(methods.charts(summaries_of(folders)), folder)


def line(entry: RunSummary, best: RunSummary | None, beside: Path) -> dict[str, Any]:
    """Return one run as the template wants it."""
    page = entry.folder / "report.html"
    inside = page.exists() and page.resolve().is_relative_to(beside.resolve())
    return {
        "name": entry.name,
        "page": page.resolve().relative_to(beside.resolve()).as_posix() if inside else None,
        "best": entry is best,
        "result": entry.result,
        "tests": entry.tests,
        "published": entry.published,
        "published_std": entry.published_std,
        "behind": best and behind(entry, best),
    }


def propagation_seconds(folders: Sequence[Path]) -> float | None:
    """Return what a comparison says of the hops its methods share."""
    file = folders[0] / "comparison.json"
    return read_comparison(folders[0]).propagation_seconds if len(folders) == 1 and file.exists() else None


def differing_settings(entries: Sequence[RunSummary]) -> dict[str, list[str]]:
    """Return the settings that are not the same in all runs, a text for each run; – where a run has no such setting."""
    keys = dict.fromkeys(key for entry in entries for key in entry.record["settings"])
    texts = {
        key: [text_of(entry.record["settings"][key]) if key in entry.record["settings"] else "–" for entry in entries]
        for key in keys
    }
    return {key: values for key, values in texts.items() if len(set(values)) > 1}


def commands(folders: Sequence[Path], entries: Sequence[RunSummary]) -> list[str]:
    """Return the lines that repeat it all: one for a comparison, one for each run otherwise."""
    file = folders[0] / "comparison.json"
    if len(folders) == 1 and file.exists():
        found = [command_of(read_comparison(folders[0]))]
    else:
        found = [command_of(RunSpec.model_validate(entry.record)) for entry in entries]
    return [words for words in found if words]
