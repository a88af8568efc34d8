"""A served graph that changes: batches of changes make versions of a graph directory, and the newest is served.

    1  the tables are read as `gamlp update` reads them, and a new version is made of the directory (`propagate.update`)
    2  the network speaks of all nodes of the new version, from the states that the update brought along
    3  the new version takes the place of the old: requests under way still end with the old one

The run and its own graph stay as they are: the first batch makes the directory. Killed anywhere, the directory holds
the old version or the new one, and a server that is started again serves what is there. Cost: that of the update, and
of predicting all nodes; meanwhile the old version answers.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gamlp.errors import SettingsError, StorageError
from gamlp.explain.finished_run import FinishedRun
from gamlp.graph.graph import Graph
from gamlp.graph.readers.change_tables import read_changes
from gamlp.graph.store import check_place, is_graph_folder, load_graph, read_contents
from gamlp.pipeline import Fitted
from gamlp.propagate.states import PREFIX
from gamlp.propagate.stationary import is_symmetric
from gamlp.propagate.update import update_graph
from gamlp.serve.service import Service
from gamlp.storage.files import read_array, write_array
from gamlp.storage.locks import locked

PREDICTIONS = "served"


class Versions:
    """The newest version of a run's graph, in `folder`; without a folder the run's own, which nobody changes."""

    def __init__(self, own: FinishedRun, fitted: Fitted, folder: Path | None = None) -> None:
        self.own, self.fitted, self.folder = own, fitted, folder
        self.engine = fitted.pipeline.hop_source.engine
        self.count, self._made = 0, set[str]()  # batches that were applied, and what the cache has of the last
        self._graph, self._contents = replace(own.graph, split=own.split), None
        if folder is not None and folder.exists():
            check_place(folder, overwrite=True)
        if folder is not None and is_graph_folder(folder):
            self._graph, self._contents = load_graph(folder), read_contents(folder)
        self.service = Service.of(own if self._contents is None else self.opened(self._graph), fitted)

    def opened(self, graph: Graph) -> FinishedRun:
        """Return the run as it speaks of another version of its graph; what it says is mapped from disk."""
        fitted = self.fitted
        graph = fitted.fit_columns(graph)
        graph = replace(graph, labels=fitted.class_numbers(graph), classes=fitted.classes)
        said = fitted.predict(graph, split=graph.split_for(self.own.seed))
        parts: dict[str, Any] = {"rows": said.rows, "probabilities": said.probabilities, "attention": said.weights}
        if self.engine.cache is not None:
            place = self.engine.cache / PREDICTIONS
            given = {name: values for name, values in parts.items() if values is not None}
            for name, values in given.items():
                write_array(place / f"{name}.npy", values)
            parts |= {name: read_array(place / f"{name}.npy", memory_map=True) for name in given}
        return replace(self.own, graph=graph, **parts)

    def change(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Apply a batch, `nodes` and `edges` with a column op, and return what was done once it is served."""
        if self.folder is None:
            raise SettingsError(
                "The server was started without a place for changes.\nStart it with --graph FOLDER: the first batch "
                "makes a version of the run's graph there."
            )
        graph, edges, nodes = self._graph, tables.get("edges"), tables.get("nodes")
        given = [table for table in (edges, nodes) if table is not None]
        changes = read_changes(graph, edges, nodes, **self.service.roles(*given))
        with locked(self.folder):
            self.check_own_version()
            before = self.kept()
            directed = not is_symmetric(graph.adjacency)
            facts = update_graph(self.folder, graph, changes, self.engine, directed=directed)
            self._contents = read_contents(self.folder)
        self._graph = load_graph(self.folder, verify=False)
        self.service = Service.of(self.opened(self._graph), self.fitted)
        self.forget(before)
        self.count += 1
        return {key: value for key, value in facts.items() if key != "out"} | {"version": self.count}

    def check_own_version(self) -> None:
        """Refuse to change a directory that somebody else has changed: their changes would be lost."""
        assert self.folder is not None
        there = read_contents(self.folder) if is_graph_folder(self.folder) else None
        if there != self._contents:
            raise StorageError(
                "The graph directory has been changed by another process.\nStart the server again: it then serves, and "
                "changes, what is there."
            )

    def kept(self) -> set[str]:
        """Return what the cache has."""
        cache = self.engine.cache
        return set() if cache is None or not cache.is_dir() else {place.name for place in cache.iterdir()}

    def forget(self, before: set[str]) -> None:
        """Remove what the cache has of the version before, unless it is the run's own graph or still in use."""
        living, made = self.service.living, self.kept() - before
        used = {PREDICTIONS} | made
        if living is not None:
            used |= {name for states in living.states for name in (states.key, f"{PREFIX}{states.key}")}
        for name in self._made - used:
            shutil.rmtree(self.engine.cache / name, ignore_errors=True)  # type: ignore[operator]
        self._made = (self._made & used) | (made - {PREDICTIONS})
