"""Make an experiment: every column is a comparison on its graph, so that what is finished is kept and hops are shared.

FOLDER/<graph>/                  a comparison (gamlp.runs.comparison)
FOLDER/<graph>-<settings>/       … of the columns and rows with settings of their own
FOLDER/result.json               all cells, once all are there; table.md, table.csv and report.html tell the same

Whatever is there already is read, not trained again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gamlp.errors import MissingFileError
from gamlp.explain.comparison import write_pages
from gamlp.explain.figures.chart import Chart
from gamlp.graph.graph import Graph
from gamlp.graph.readers.source import GraphSource
from gamlp.methods import method_named
from gamlp.paper.experiments import Column, Experiment, Row, missing_data
from gamlp.paper.table import write_results
from gamlp.progress import progress
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.recipes.recipe import Published, Recipe, load_recipe, usual_recipe
from gamlp.runs.comparison import check_overrides, compare, comparison_for
from gamlp.storage.files import write_json

MEASURED = (
    "method", "valid_accuracy", "valid_accuracy_std", "test_accuracy", "test_accuracy_std", "seconds", "parameters",
    "own_settings", "test_largest_class",
)  # fmt: skip  # of a comparison's row


def make(
    experiment: Experiment,
    folder: Path,
    *,
    root: Path | None = None,
    seeds: Sequence[int],
    engine: EngineChoice,
    device: str = "cpu",
    overrides: Mapping[str, Any] | None = None,
    command: str = "",
    read: Callable[[GraphSource], Graph] = GraphSource.read,
) -> dict[str, Any]:
    """Train every cell of an experiment that is not there yet, and write what came of it."""
    lacking = missing_data(experiment, root)
    if lacking:
        raise MissingFileError(f"{lacking}.\nPut the files there, or name another folder with --root.")
    check_overrides([method_named(row.method) for row in experiment.rows], overrides or {})
    cells, charts = [], []
    with progress("columns", total=len(experiment.columns)) as advance:
        for column in experiment.columns:
            advance(0, note=column.title)
            source = source_of(column, folder, root, engine.memory)
            graph, shared = read(source), {"seeds": seeds, "engine": engine, "device": device, "source": source}
            cells += column_cells(experiment, column, graph, folder, overrides or {}, shared)
            charts += charts_of_run(experiment, column, graph, folder) if experiment.figure else []
            advance(1)
    result = {
        "experiment": experiment.name, "title": experiment.title, "source": experiment.source,
        "relative": experiment.relative, "command": command, "seeds": list(seeds), "cells": cells,
        "charts": [told(chart) for chart in charts if chart.note],
    }  # fmt: skip
    write_json(folder / "result.json", result)
    return {**result, "files": [str(file) for file in write_results(result, folder, charts)]}


def source_of(column: Column, folder: Path, root: Path | None, memory: int | None) -> GraphSource:
    """Return where the graph of a column is read from; a generated one is made first, in the experiment's folder."""
    if not column.synth:
        return GraphSource.named([column.graph], root=root)
    from gamlp.graph.build.import_directory import MEMORY
    from gamlp.synth.draw import shape_named
    from gamlp.synth.write import write_synth

    place = folder / f"{column.synth}-graph"
    if not place.exists():
        write_synth(place, shape_named(column.synth).scaled(column.scale), memory=memory or MEMORY)
    return GraphSource.named([str(place)])


def column_cells(
    experiment: Experiment,
    column: Column,
    graph: Graph,
    folder: Path,
    changes: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Compare the methods of a column; rows with the same settings share a comparison.

    `changes` are settings for the rows that have them, `shared` what every comparison is given.
    """
    recipe = recipe_of(column)
    groups: dict[Path, list[Row]] = {}
    for row in experiment.rows:
        groups.setdefault(place_of(column, row, folder), []).append(row)
    measured: dict[Path, Any] = {}
    for place, rows in groups.items():
        names = [row.method for row in rows]
        own = {**taken(changes, names), **column.set, **rows[0].set}
        done = compare(graph, comparison_for(graph, names, recipe.name, own, **shared), folder=place)
        measured |= {place / line["method"]: line for line in done["rows"]}
        write_pages(graph, place)
    found = [(row, run_of(column, row, folder)) for row in experiment.rows]
    return [cell(row, column, recipe, run, measured[run]) for row, run in found]


def recipe_of(column: Column) -> Recipe:
    """Return the recipe of a column: its own, or that of its graph."""
    return load_recipe(column.recipe or usual_recipe([column.graph]))


def taken(changes: Mapping[str, Any], methods: Sequence[str]) -> dict[str, Any]:
    """Return the settings that at least one of the methods has: a change is for the rows that it fits."""
    found = [method_named(name) for name in methods]
    names = {name for method in found for name in (method.base, method.name)}
    return {
        key: value
        for key, value in changes.items()
        if key.rpartition(".")[0] in names or any(method.takes(key) for method in found)
    }


def published_test(row: Row, column: Column, of_recipe: Mapping[str, Published]) -> Published | tuple[float] | None:
    """Return what was published of a cell: with the experiment or, where settings are as there, with the recipe."""
    own, as_there = row.published.get(column.title), not (column.set or row.set)
    return own or (of_recipe.get(method_named(row.method).name) if as_there else None)


def cell(row: Row, column: Column, recipe: Recipe, run: Path, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return one cell of the table: measured and published."""
    changed = {**column.set, **row.set}
    published = {
        "valid": shares(None if changed else recipe.published_valid.get(line["method"])),
        "test": shares(published_test(row, column, recipe.published)),
    }
    return {
        "row": row.name, "set": changed, "column": column.title, "recipe": recipe.name,
        **{key: line.get(key) for key in MEASURED},  # earlier comparisons lack the later ones
        **{f"published_{part}": mean for part, (mean, _) in published.items()},
        **{f"published_{part}_std": std for part, (_, std) in published.items()},
        "published_time": row.time, "run": str(run),
    }  # fmt: skip


def shares(published: Published | tuple[float] | None) -> tuple[float | None, float | None]:
    """Return mean and std from 0 to 1, None where there is none."""
    mean, std = (*(published or ()), None, None)[:2]
    return mean and mean / 100, std and std / 100


def told(chart: Chart) -> dict[str, Any]:
    """Return the numbers of a chart and what is said of them, for the tables."""
    return {"title": chart.title, "note": chart.note, "header": list(chart.header), "rows": list(map(list, chart.rows))}


def charts_of_run(experiment: Experiment, column: Column, graph: Graph, folder: Path) -> list[Chart]:
    """Draw the figure of an experiment from its one run."""
    from gamlp.explain.figures import charts_of, hop_suitability, receptive
    from gamlp.explain.finished_run import open_run

    (row,) = experiment.rows
    if experiment.figure == "receptive":
        return receptive.charts(receptive.receptive_fields(graph.adjacency, hops=row.set["hops"]))
    run = open_run(graph, run_of(column, row, folder))
    if experiment.figure == "hop_suitability":
        return hop_suitability.charts(hop_suitability.hop_suitability(run))
    return charts_of(experiment.figure, run)


def place_of(column: Column, row: Row, folder: Path) -> Path:
    """Return the folder of the comparison that a cell belongs to."""
    settings = {**column.set, **row.set}.items()
    return folder / "-".join([Path(column.graph or column.synth).name, *(f"{key}-{value}" for key, value in settings)])


def run_of(column: Column, row: Row, folder: Path) -> Path:
    """Return the folder of the run that a cell is of."""
    return place_of(column, row, folder) / method_named(row.method).name
