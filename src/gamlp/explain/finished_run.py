"""A finished run: what one of its seeds left, beside the graph it was trained on.

R rows were predicted: all N nodes, or those of the split only. C classes, K+1 hops.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import MissingFileError, SettingsError, ShapeError, StorageError
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.methods.base import labels_of
from gamlp.runs.record import read_record
from gamlp.runs.seed import check_kept
from gamlp.runs.spec import RunSpec, check_same_graph
from gamlp.storage.files import Array, read_array, read_json
from gamlp.targets.base import TargetKind
from gamlp.targets.registry import kind_of


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """One seed of a finished run. `record` is run.json, `history` has one entry per evaluation."""

    folder: Path
    record: dict[str, Any]
    graph: Graph
    seed: int
    rows: Array  # (R,) node ids, sorted
    probabilities: Array  # (R, C)
    attention: Array | None  # (R, K+1), None where the method does not weigh hops
    history: list[dict[str, float]]

    @cached_property
    def split(self) -> Split:
        """The split of this seed."""
        return self.graph.split_for(self.seed)

    @cached_property
    def labels(self) -> Array:
        """The label of each row, −1 where unknown; (R,), or (R, T) of several labels."""
        return np.asarray(self.graph.labels[self.rows])

    @cached_property
    def known(self) -> Array:
        """The labels of the nodes that trained, −1 for all others; (N,)."""
        return labels_of(self.graph.labels, self.split.train)

    @cached_property
    def predicted(self) -> Array:
        """The class each row was given, as labels are; (R,) or (R, T)."""
        return self.kind.predicted(self.probabilities)

    @cached_property
    def confidence(self) -> Array:
        """The probability of that class, mean over several labels; (R,)."""
        return self.kind.sureness(self.probabilities)

    @cached_property
    def right(self) -> Array:
        """Which of the labelled test nodes were given their class, or all known labels; as long as `test`."""
        same = (self.predicted[self.test] == self.labels[self.test]) | (self.labels[self.test] < 0)
        return np.asarray(same if same.ndim == 1 else same.all(axis=1))

    @property
    def kind(self) -> TargetKind:
        """The kind of target."""
        return kind_of(self.graph.labels)

    def words(self, labels: Array) -> list[str | None]:
        """Return labels as words."""
        return list(self.kind.words(labels, self.classes))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the C classes, which are the graph's own (`check_own_graph`)."""
        return self.graph.classes

    @property
    def result(self) -> dict[str, Any]:
        """What result.json says of this seed."""
        return dict(next(one for one in self.record["result"]["runs"] if one["seed"] == self.seed))

    @property
    def stages(self) -> list[dict[str, Any]]:
        """What it says of each stage."""
        return list(self.result["stages"])

    @property
    def trust(self) -> dict[str, Any]:
        """What it says of calibration, coverage and shift (`trust.measure`); {} of a run of 0.1.0."""
        return dict(self.result.get("trust", {}))

    @cached_property
    def degrees(self) -> Array:
        """The number of neighbours of each row; (R,)."""
        return np.asarray(np.diff(self.graph.adjacency.indptr)[self.rows])

    @cached_property
    def test(self) -> Array:
        """Where the labelled test nodes stand among the rows; those that were not predicted are left out."""
        labelled = self.split.test[self.kind.known(self.graph.labels[self.split.test])]
        return np.flatnonzero(np.isin(self.rows, labelled, assume_unique=True))

    def name_of(self, node: int) -> str:
        """Return the id that came in."""
        return str(node if self.graph.names is None else self.graph.names[node])

    def needed_attention(self) -> Array:
        """Return the attention, or say why there is none."""
        if self.attention is None:
            raise SettingsError(
                f"{self.record['method']} does not weigh hops, so there is no attention to explain.\n"
                "Explain a run of a method on hops: gamlp-jk, gamlp-recursive, gamlp-smoothing, sagn, …"
            )
        return self.attention


def open_run(graph: Graph, folder: Path, *, seed: int | None = None, memory_map: bool = False) -> FinishedRun:
    """Read what a seed of a finished run left, or map it; by default the best seed on validation."""
    record = finished_record(folder)
    chosen = int(record["result"]["best_seed"] if seed is None else seed)
    place = folder / f"seed-{chosen}"
    if not (place / "rows.npy").exists():
        raise MissingFileError(f"{folder} has no seed {chosen}.\nIt has: {', '.join(map(str, record['seeds']))}.")
    check_kept(place, record=record)
    check_own_graph(record, place, graph)
    rows, probabilities = read_array(place / "rows.npy"), read_array(place / "probabilities.npy", memory_map=memory_map)
    if (len(rows) and int(rows.max()) >= graph.nodes) or probabilities.shape[1] != len(graph.classes):
        raise ShapeError(
            f"{folder} predicts {probabilities.shape[1]} classes for nodes up to {int(rows.max()):,}; "
            f"the graph has {len(graph.classes)} classes and {graph.nodes:,} nodes.\n"
            "The graph has changed since the run. Restore its files, or train again."
        )
    weights = place / "attention.npy"
    attention = read_array(weights, memory_map=memory_map) if weights.exists() else None
    history = read_json(place / "history.json")
    return FinishedRun(folder, record, graph, chosen, rows, probabilities, attention, history)


def finished_record(folder: Path) -> dict[str, Any]:
    """Read run.json of a run that has its result."""
    record = read_record(folder)
    if "result" not in record:
        raise MissingFileError(f"{folder} is not finished.\nFinish it with: gamlp train --resume {folder}")
    return record


def check_own_graph(record: dict[str, Any], seed_folder: Path, graph: Graph) -> None:
    """Refuse a graph that is not the one of the run, and name what differs; of 0.1.0 the model tells the classes."""
    check_same_graph(RunSpec.model_validate(record), graph)
    model = seed_folder / "model.json"
    if model.exists() and tuple(read_json(model).get("classes", graph.classes)) != graph.classes:
        raise StorageError(
            "The graph has changed since the run: classes.\n"
            "Restore its files, or train again. Predictions for the changed graph: gamlp predict RUN GRAPH."
        )
