"""Finished runs of one graph, side by side: those of a comparison, or any that are named.

Only run.json and comparison.json are read, so that the page of a comparison is rebuilt without the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gamlp.errors import InputError, MissingFileError
from gamlp.runs.comparison import read_comparison
from gamlp.runs.record import read_record
from gamlp.storage.checksums import json_digest


@dataclass(frozen=True)
class RunSummary:
    """One run. Accuracies are shares from 0 to 1."""

    name: str  # the method; the folder beside it where two runs have the same
    folder: Path
    record: dict[str, Any]  # run.json
    published: float | None
    published_std: float | None

    @property
    def result(self) -> dict[str, Any]:
        """Mean, std and seeds of everything that was scored."""
        return dict(self.record["result"])

    @property
    def tests(self) -> dict[int, float]:
        """The test accuracy of each seed."""
        found = {int(one["seed"]): one["test_accuracy"] for one in self.result["runs"]}
        return {seed: value for seed, value in found.items() if value is not None}


def summaries_of(folders: Sequence[Path]) -> list[RunSummary]:
    """Return the runs of all folders, comparisons opened up; runs of different graphs are refused."""
    runs = [run for folder in folders for run in runs_in(folder)]
    entries = [summary_of(run) for run in dict.fromkeys(runs)]
    graphs = {json_digest(entry.record["fingerprints"]): entry.record["dataset"] for entry in entries}
    if len(graphs) > 1:
        raise InputError(
            f"The runs are of {len(graphs)} different graphs: {', '.join(graphs.values())}.\n"
            "Name runs of one and the same graph; accuracies of different graphs cannot be compared."
        )
    double = {name for name, count in Counter(entry.name for entry in entries).items() if count > 1}
    return [replace(one, name=f"{one.name} ({one.folder.name})") if one.name in double else one for one in entries]


def runs_in(folder: Path) -> list[Path]:
    """Return the runs of a comparison in its order, or the run itself."""
    if (folder / "comparison.json").exists():
        record = read_comparison(folder)
        if record.rows is None:
            raise MissingFileError(f"{folder} is not finished.\nFinish it with: gamlp compare --resume {folder}")
        return [folder / name for name in record.methods]
    return [folder]


def summary_of(run: Path) -> RunSummary:
    """Read one finished run, and what was published with its recipe."""
    if not (run / "run.json").is_file():
        raise MissingFileError(
            f"{run} has neither run.json nor comparison.json.\nName what gamlp train or compare made."
        )
    record = read_record(run)
    if "result" not in record:
        raise MissingFileError(f"{run} is not finished.\nFinish it with: gamlp train --resume {run}")
    mean, std = published_of(record)
    return RunSummary(record["method"], run, record, mean, std)


def published_of(record: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return the published test accuracy of the run's method as a share; a recipe that is gone has none."""
    from gamlp.recipes import load_recipe

    try:
        mean, std = load_recipe(record["recipe"]).published.get(record["method"], (None, None))
    except InputError:
        mean, std = None, None
    return mean and mean / 100, std and std / 100


def best_of(entries: Sequence[RunSummary]) -> RunSummary | None:
    """Return the run with the best mean test accuracy; None where nothing was tested."""
    tested = [entry for entry in entries if entry.result["test_accuracy"] is not None]
    return max(tested, key=lambda entry: entry.result["test_accuracy"], default=None)


def behind(entry: RunSummary, best: RunSummary) -> tuple[float, float | None] | None:
    """Return mean and std of best − entry over the seeds that both have: paired, as seeds share splits."""
    from gamlp.train.metrics import mean_and_std

    gaps = [best.tests[seed] - value for seed, value in entry.tests.items() if seed in best.tests]
    return mean_and_std(gaps) if gaps and entry is not best else None
