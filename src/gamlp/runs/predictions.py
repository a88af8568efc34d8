"""Predictions as a table: one row a node, with the id that came in, the class and how sure the model is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gamlp.graph.graph import Graph
from gamlp.runs.seed import check_kept
from gamlp.storage.files import Array, read_array, replacing
from gamlp.storage.threads import ranges

if TYPE_CHECKING:
    import pyarrow as pa

Beside = tuple[Sequence[object], Array]  # names, and a column (R, ) of each
SETS = np.array(["", "train", "valid", "test"], dtype=object)


def prediction_tables(
    graph: Graph,
    rows: Array,
    probabilities: Array,
    *,
    seed: int | None = None,
    beside: Mapping[str, Beside] | None = None,
    rows_a_table: int = 2**17,
) -> Iterator[pa.Table]:
    """Yield tables with columns id, predicted, confidence, label (empty where unknown) and, with a seed, set.

    `beside` gives more columns by what they are: logit_cat, logit_dog, … of {"logit": (("cat", "dog"), (R, 2))}.
    `probabilities` (R, C) may be memory-mapped: one table's rows are in memory at a time.
    """
    import pyarrow as pa

    classes = np.array(graph.classes, dtype=object)
    members = None if seed is None else membership(graph, seed)
    for first, last in ranges(len(rows), rows_a_table) or [(0, 0)]:
        ids, part = rows[first:last], np.asarray(probabilities[first:last])
        labels = graph.labels[ids]
        known = classes[labels]  # a label −1 takes the last class, and is emptied next
        known[labels < 0] = None
        columns = {
            "id": pa.array(ids if graph.names is None else graph.names[ids]),
            "predicted": pa.array(classes[part.argmax(axis=1)], type=pa.string()),
            "confidence": pa.array(part.max(axis=1, initial=0).astype(np.float32)),
            "label": pa.array(known, type=pa.string()),
        }
        if members is not None:
            columns["set"] = pa.array(SETS[members[ids]], type=pa.string())
        for what, (names, values) in (beside or {}).items():
            some = np.asarray(values[first:last], np.float32)
            columns |= {f"{what}_{name}": pa.array(some[:, at]) for at, name in enumerate(names)}
        yield pa.table(columns)


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
