"""Make an experiment: every column is a comparison on its graph, so that what is finished is kept and hops are shared.

FOLDER/<graph>/                  a comparison (gamlp.runs.comparison)
FOLDER/<graph>-<settings>/       … of the columns and rows with settings of their own
FOLDER/result.json               all cells, once all are there; table.md, table.csv and report.html tell the same

Whatever is there already is read, not trained again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gamlp.errors import MissingFileError
from gamlp.explain.comparison import write_comparison
from gamlp.explain.figures.chart import Chart
from gamlp.explain.report import write_report
from gamlp.graph.graph import Graph
from gamlp.graph.readers.source import GraphSource
from gamlp.methods import method_named
from gamlp.paper.experiments import Column, Experiment, Row, missing_data
from gamlp.paper.table import write_results
from gamlp.progress import progress
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.recipes.recipe import load_recipe, recipe_names
from gamlp.runs.comparison import check_overrides, compare, comparison_for
from gamlp.storage.files import write_json


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
) -> dict[str, Any]:
    """Train every cell of an experiment that is not there yet, and write what came of it."""
    lacking = missing_data(experiment, root)
    if lacking:
        raise MissingFileError(f"{lacking}.\nPut the files there, or name another folder with --root.")
    check_overrides([method_named(row.method) for row in experiment.rows], overrides or {})
    cells = []
    with progress("columns", total=len(experiment.columns)) as advance:
        for column in experiment.columns:
            advance(0, note=column.title)
            shared = {"seeds": seeds, "engine": engine, "device": device}
            cells += column_cells(experiment, column, folder, root, overrides or {}, shared)
            advance(1)
    result = {
        "experiment": experiment.name, "title": experiment.title, "source": experiment.source,
        "relative": experiment.relative, "command": command, "seeds": list(seeds), "cells": cells,
    }  # fmt: skip
    charts = charts_for(experiment, folder, root) if experiment.figure else []
    write_json(folder / "result.json", result)
    return {**result, "files": [str(file) for file in write_results(result, folder, charts)]}


def column_cells(
    experiment: Experiment,
    column: Column,
    folder: Path,
    root: Path | None,
    changes: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Compare the methods of a column; rows with the same settings share a comparison.

    `changes` are settings for the rows that have them, `shared` what every comparison is given.
    """
    graph, source = graph_of(column, folder, root, memory=shared["engine"].memory)
    recipe = column.recipe or (column.graph if column.graph in recipe_names() else "default")
    groups: dict[Path, list[Row]] = {}
    for row in experiment.rows:
        groups.setdefault(place_of(column, row, folder), []).append(row)
    found = []
    for place, rows in groups.items():
        names = [row.method for row in rows]
        own = {**taken(changes, names), **column.set, **rows[0].set}
        spec = comparison_for(graph, names, recipe, own, source=source, **shared)
        measured = {line["method"]: line for line in compare(graph, spec, folder=place)["rows"]}
        write_pages(graph, place, names)
        found += [(row, measured[method_named(row.method).name], place) for row in rows]
    order = list(experiment.rows)
    found.sort(key=lambda one: order.index(one[0]))
    return [cell(row, column, recipe, line, place / row.method) for row, line, place in found]


def taken(changes: Mapping[str, Any], methods: Sequence[str]) -> dict[str, Any]:
    """Return the settings that at least one of the methods has: a change is for the rows that it fits."""
    found = [method_named(name) for name in methods]
    names = {name for method in found for name in (method.base, method.name)}
    return {
        key: value
        for key, value in changes.items()
        if key.rpartition(".")[0] in names or any(method.takes(key) for method in found)
    }


def cell(row: Row, column: Column, recipe: str, line: dict[str, Any], run: Path) -> dict[str, Any]:
    """Return one cell of the table: measured, and published in the recipe or with the experiment."""
    told = load_recipe(recipe)
    name = method_named(row.method).name
    test = row.published.get(column.title) or (told.published.get(name) if not (row.set or column.set) else None)
    valid = told.published_valid.get(name) if not (row.set or column.set) else None
    keys = ("valid_accuracy", "valid_accuracy_std", "test_accuracy", "test_accuracy_std", "seconds", "parameters")
    published = {"valid": valid, "test": test}
    return {
        "row": row.name, "method": name, "set": {**column.set, **row.set}, "column": column.title, "recipe": recipe,
        **{key: line[key] for key in keys},
        **{f"published_{part}": value and value[0] / 100 for part, value in published.items()},
        **{f"published_{part}_std": value[1] / 100 if value and len(value) > 1 and value[1] is not None else None
           for part, value in published.items()},
        "published_time": row.time, "run": str(run),
    }  # fmt: skip


def graph_of(column: Column, folder: Path, root: Path | None, *, memory: int | None) -> tuple[Graph, GraphSource]:
    """Read the graph of a column; a generated one is made first, in the experiment's folder."""
    if column.synth:
        from gamlp.graph.build.import_directory import MEMORY
        from gamlp.synth.draw import shape_named
        from gamlp.synth.write import write_synth

        place = folder / f"{column.synth}-graph"
        if not place.exists():
            write_synth(place, shape_named(column.synth).scaled(column.scale), memory=memory or MEMORY)
        source = GraphSource.named([str(place)])
    else:
        source = GraphSource.named([column.graph], root=root)
    with progress(f"read {source.title}"):
        return source.read(), source


def write_pages(graph: Graph, folder: Path, methods: Sequence[str]) -> None:
    """Write a page for each run, and one for their comparison."""
    for name in methods:
        place = folder / method_named(name).name
        if not (place / "report.html").exists():
            write_report(graph, place)
    write_comparison([folder])


def charts_for(experiment: Experiment, folder: Path, root: Path | None) -> list[Chart]:
    """Draw the figure of an experiment from its one run."""
    from gamlp.explain.figures import charts_of, hop_suitability, receptive
    from gamlp.explain.finished_run import open_run

    (column,), (row,) = experiment.columns, experiment.rows
    graph, _ = graph_of(column, folder, root, memory=None)
    if experiment.figure == "receptive":
        return receptive.charts(receptive.receptive_fields(graph.adjacency, hops=row.set["hops"]))
    run = open_run(graph, place_of(column, row, folder) / method_named(row.method).name)
    if experiment.figure == "hop_suitability":
        return hop_suitability.charts(hop_suitability.hop_suitability(run))
    return charts_of(experiment.figure, run)


def place_of(column: Column, row: Row, folder: Path) -> Path:
    """Return the folder of the comparison that a cell belongs to."""
    settings = {**column.set, **row.set}.items()
    return folder / "-".join([column.graph or column.synth, *(f"{key}-{value}" for key, value in settings)])
