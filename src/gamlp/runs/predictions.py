"""Predictions as a table: one row a node, with the id that came in, the class and how sure the model is.

Of several labels a node, `predicted` and `label` have the names of those that it has, with ; between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Graph
from gamlp.runs.seed import check_kept
from gamlp.storage.files import Array, read_array, replacing
from gamlp.storage.threads import ranges
from gamlp.targets.registry import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

    from gamlp.train.prediction import Prediction

Beside = tuple[Sequence[object], Array]  # names, and a column (R, ) of each


class Tally:
    """What is told of predictions when they are written: how many, how sure, how good where the truth is known."""

    def __init__(self, *, scored: bool) -> None:
        """`scored`: what is said of nodes whose class is known is held, (n, C), for the metrics."""
        self.nodes, self.confidence, self.scored = 0, 0.0, scored
        self.truths: list[Array] = []
        self.said: list[Array] = []

    def add(self, rows: Array, probabilities: Array, labels: Array) -> None:
        """Count some more, (n,) and (n, C); labels are those of all nodes, −1 = unknown."""
        truth, kind = labels[rows], kind_of(labels)
        known = kind.known(truth)
        self.nodes += len(rows)
        self.confidence += float(kind.sureness(probabilities).sum(dtype=np.float64))
        if self.scored and known.any():
            self.truths.append(truth[known])
            self.said.append(probabilities[known])

    def scores(self) -> dict[str, float]:
        """Return all metrics by name, of the nodes whose class is known; nothing where none is."""
        if not self.truths:
            return {}
        truth = np.concatenate(self.truths)
        return kind_of(truth).scores(np.concatenate(self.said), truth)


def tables_of(
    parts: Iterable[Prediction], graph: Graph, tally: Tally, method: str, shown: dict[str, bool], asked: dict[str, Any]
) -> Iterator[Any]:
    """Yield the tables of predictions that come in parts, and count them."""
    for said in parts:
        tally.add(said.rows, said.probabilities, graph.labels)
        beside: dict[str, Beside] = {"probability": (graph.classes, said.probabilities)} if shown["probability"] else {}
        if shown["logit"]:
            beside["logit"] = (graph.classes, logits_of(said, method))
        if said.embeddings is not None:
            beside["embedding"] = (range(said.embeddings.shape[1]), said.embeddings)
        yield from prediction_tables(graph, said.rows, said.probabilities, beside=beside, **asked)


def logits_of(said: Prediction, method: str) -> Array:
    """Return the logits of a prediction, or say that there are none."""
    if said.logits is None:
        raise SettingsError(
            f"{method} does not end in logits: its probabilities are no softmax.\n"
            "Leave out --logits; --probabilities gives what it says."
        )
    return said.logits


SETS = np.array(["", "train", "valid", "test"], dtype=object)


def prediction_tables(
    graph: Graph,
    rows: Array,
    probabilities: Array,
    *,
    seed: int | None = None,
    beside: Mapping[str, Beside] | None = None,
    sets: Array | None = None,
    abstain: bool = False,
    rows_a_table: int = 2**17,
) -> Iterator[pa.Table]:
    """Yield tables with columns id, predicted, confidence, label (empty where unknown) and, with a seed, set.

    `beside` gives more columns by what they are: logit_cat, logit_dog, … of {"logit": (("cat", "dog"), (R, 2))}.
    `sets` (R, C) bool adds the column classes, those of the set, the likeliest first, with | between; with `abstain`
    no class is predicted where the set has not exactly one.
    `probabilities` (R, C) may be memory-mapped: one table's rows are in memory at a time.
    """
    import pyarrow as pa

    kind = kind_of(graph.labels)
    members = None if seed is None else membership(graph, seed)
    for first, last in ranges(len(rows), rows_a_table) or [(0, 0)]:
        ids, part = rows[first:last], np.asarray(probabilities[first:last])
        predicted = kind.words(kind.predicted(part), graph.classes)
        if sets is not None and abstain:
            predicted[sets[first:last].sum(axis=1) != 1] = None
        columns = {
            "id": pa.array(ids if graph.names is None else graph.names[ids]),
            "predicted": pa.array(predicted, type=pa.string()),
            "confidence": pa.array(kind.sureness(part).astype(np.float32)),
            "label": pa.array(kind.words(graph.labels[ids], graph.classes), type=pa.string()),
        }
        if members is not None:
            columns["set"] = pa.array(SETS[members[ids]], type=pa.string())
        if sets is not None:
            columns["classes"] = pa.array(
                named_sets(sets[first:last], part, np.array(graph.classes, dtype=object)), type=pa.string()
            )
        for what, (names, values) in (beside or {}).items():
            some = np.asarray(values[first:last], np.float32)
            columns |= {f"{what}_{name}": pa.array(some[:, at]) for at, name in enumerate(names)}
        yield pa.table(columns)


def named_sets(sets: Array, probabilities: Array, classes: Array) -> list[str]:
    """Return the classes of each set, (n, C) bool, as one text, the likeliest first."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    within = np.take_along_axis(sets, order, axis=1)
    return ["|".join(classes[row[has]]) for row, has in zip(order, within, strict=True)]


def membership(graph: Graph, seed: int) -> Array:
    """Return for each node the place of its set in SETS, (N,) uint8."""
    split = graph.split_for(seed)
    member = np.zeros(graph.nodes, np.uint8)
    for at, ids in enumerate((split.train, split.valid, split.test), start=1):
        member[ids] = at
    return member


def write_predictions_to(tables: Iterable[pa.Table], path: Path) -> None:
    """Write .parquet or .csv, by the name's ending, a table at a time; in Parquet each is a row group."""
    from pyarrow import csv, parquet

    kind = parquet.ParquetWriter if path.suffix == ".parquet" else csv.CSVWriter
    with replacing(path) as file:
        waiting = iter(tables)
        first = next(waiting)
        with kind(file, first.schema) as writer:
            for table in chain([first], waiting):
                writer.write_table(table)


def write_predictions(graph: Graph, folder: Path, seed: int) -> None:
    """Write predictions.parquet of a run from what its seed left."""
    rows, probabilities = stored(folder / f"seed-{seed}")
    write_predictions_to(prediction_tables(graph, rows, probabilities, seed=seed), folder / "predictions.parquet")


def stored(seed_folder: Path) -> tuple[Array, Array]:
    """Return the rows and probabilities that a finished seed left, the latter memory-mapped."""
    check_kept(seed_folder, names=("rows.npy", "probabilities.npy"))
    return read_array(seed_folder / "rows.npy"), read_array(seed_folder / "probabilities.npy", memory_map=True)
