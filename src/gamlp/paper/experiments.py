"""The experiments as data: rows (methods) × columns (graphs, or settings of one graph), read from experiments.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from gamlp.errors import SettingsError, did_you_mean
from gamlp.recipes.recipe import Published


class Entry(BaseModel):
    """A part of the file; a key that nobody reads is a mistake in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(Entry):
    """A method, by its name in the paper."""

    name: str
    method: str
    set: dict[str, Any] = {}
    published: dict[str, Published | tuple[float]] = {}  # column → test accuracy in %, where no recipe has it
    time: float | None = None  # published, relative to the first row


class Column(Entry):
    """A graph, perhaps with settings."""

    graph: str = ""  # a data set's name
    synth: str = ""  # or the shape of a generated graph
    scale: float = 1.0  # of that shape
    recipe: str = ""  # by default the graph's own
    set: dict[str, Any] = {}
    name: str = ""

    @property
    def title(self) -> str:
        """What stands over the column."""
        return self.name or self.graph


class Experiment(Entry):
    """A table, an ablation or a figure."""

    name: str
    title: str
    source: str
    seeds: int
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    figure: str = ""  # the module of gamlp.explain.figures that draws it; a table where there is none
    relative: bool = False  # times relative to the first row are what it is about

    @property
    def kind(self) -> str:
        """What it is."""
        return "figure" if self.figure else "table"

    def without(self, methods: list[str]) -> Experiment:
        """Return it without the rows of some methods, named as here or as in the paper."""
        for name in methods:
            known = [word for row in self.rows for word in (row.name, row.method)]
            if name not in known:
                raise SettingsError(f"{self.name} has no row '{name}'.\n{did_you_mean(name, known)}")
        rows = tuple(row for row in self.rows if row.name not in methods and row.method not in methods)
        if not rows:
            raise SettingsError(f"Nothing is left of {self.name}.\nLeave fewer methods out.")
        return self.model_copy(update={"rows": rows})

    def on(self, graph: str) -> Experiment:
        """Return it on another graph; settings of its columns stay."""
        columns: list[Column] = []
        for column in self.columns:
            other = column.model_copy(update={"graph": graph, "synth": ""})
            columns += [] if other in columns else [other]
        return self.model_copy(update={"columns": tuple(columns)})


@cache
def experiments() -> dict[str, Experiment]:
    """Return all experiments by name, in the order of the paper."""
    text = (resources.files("gamlp.paper") / "experiments.toml").read_text(encoding="utf-8")
    return {name: Experiment(name=name, **content) for name, content in tomllib.loads(text).items()}


def experiment_named(name: str) -> Experiment:
    """Return the experiment of that name."""
    if name not in experiments():
        raise SettingsError(f"The paper has no '{name}'.\n{did_you_mean(name, experiments())}")
    return experiments()[name]


def missing_data(experiment: Experiment, root: Path | None) -> str:
    """Say in one line which files have to be fetched; nothing where all are there."""
    from gamlp.graph.readers.datasets import ROOT, find_dataset

    place = root or ROOT
    for column in experiment.columns:
        dataset = find_dataset(column.graph) if column.graph else None
        missing = dataset.lacking(place)[1] if dataset else []
        if dataset and missing:
            return f"{dataset.name} is not below {place}: fetch {', '.join(missing)}"
    return ""
