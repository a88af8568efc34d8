"""Predictions as a table: one row a node, with the id that came in, the class and how sure the model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gamlp.errors import InputError
from gamlp.files import Array, read_array, replacing
from gamlp.graph.graph import Graph

if TYPE_CHECKING:
    import pyarrow as pa


def predictions_table(graph: Graph, rows: Array, probabilities: Array, *, seed: int | None = None) -> pa.Table:
    """Return columns id, predicted, confidence, label (empty where unknown) and, with a seed, set."""
    import pyarrow as pa

    classes = np.array(graph.classes, dtype=object)
    labels = graph.labels[rows]
    known = classes[labels]  # a label −1 takes the last class, and is emptied next
    known[labels < 0] = None
    columns = {
        "id": pa.array((np.arange(graph.nodes) if graph.names is None else graph.names)[rows]),
        "predicted": pa.array(classes[probabilities.argmax(axis=1)]),
        "confidence": pa.array(probabilities.max(axis=1).astype(np.float32)),
        "label": pa.array(known, type=pa.string()),
    }
    if seed is not None:
        member = np.full(graph.nodes, "", dtype=object)
        split = graph.split_for(seed)
        member[split.train], member[split.valid], member[split.test] = "train", "valid", "test"
        columns["set"] = pa.array(member[rows])
    return pa.table(columns)


def write_table(table: pa.Table, path: Path) -> None:
    """Write .parquet or .csv, by the name's ending."""
    check_ending(path)
    with replacing(path) as file:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, file)
        else:
            from pyarrow import csv

            csv.write_csv(table, file)


def check_ending(path: Path) -> None:
    """Refuse a name that does not say which of the two formats is meant."""
    if path.suffix not in {".parquet", ".csv"}:
        raise InputError(f"Predictions cannot be written as '{path.name}'.\nUse a name that ends in .parquet or .csv.")


def write_predictions(graph: Graph, folder: Path, seed: int) -> None:
    """Write predictions.parquet of a run from what its seed left."""
    rows, probabilities = stored(folder / f"seed-{seed}")
    write_table(predictions_table(graph, rows, probabilities, seed=seed), folder / "predictions.parquet")


def stored(seed_folder: Path) -> tuple[Array, Array]:
    """Return the rows and probabilities that a finished seed left."""
    return read_array(seed_folder / "rows.npy"), read_array(seed_folder / "probabilities.npy")
