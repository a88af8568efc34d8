"""A finished run as files, without training: what explain and report read."""

from contextlib import nullcontext
from unittest.mock import Mock

import numpy as np

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.graph.store import save_graph
from gamlp.storage.files import write_array, write_json


def path_with_star() -> Graph:
    """0 – 1 – 2 – 3 – 4, and a star: 4 is joined to 5, 6, 7, 8; node 9 is alone. Three classes."""
    source = [0, 1, 2, 3, 4, 4, 4, 4]
    target = [1, 2, 3, 4, 5, 6, 7, 8]
    return Graph(
        adjacency=adjacency_from_edges(np.array(source), np.array(target), nodes=10),
        features=np.eye(10, 3, dtype=np.float32),
        labels=np.array([0, 0, 1, 1, 2, 2, 0, 1, 2, -1]),
        classes=("red", "green", "blue"),
        split=Split(np.array([0, 2, 5, 6]), np.array([1]), np.array([3, 4, 7, 8])),
        names=np.array([f"node-{index}" for index in range(10)]),
        name="tiny",
    ).check()


PROBABILITIES = np.array(
    [
        [0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.7, 0.1], [0.9, 0.05, 0.05],
        [0.1, 0.1, 0.8], [0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.7, 0.1], [0.4, 0.3, 0.3],
    ],
    dtype=np.float32,
)  # fmt: skip
NUMBERS = {"nodes": 4, "mean_confidence": 0.7, "brier_score": 0.4, "log_loss": 0.9, "calibration_error": 0.225}
BINS = {"nodes": [0] * 9 + [4], "confidence": [0.0] * 9 + [0.95], "right": [0.0] * 9 + [0.5]}
TRUST = {  # by hand: what result.json says of calibration, coverage and shift
    "temperature": 1.5, "diffusion": 0.0, "apart": False, "valid_accuracy": 0.5, "calibration_nodes": 40,
    "test": {
        "before": {**NUMBERS, "calibration_error": 0.45, "brier_score": 0.6, "log_loss": 1.2, "bins": BINS},
        "after": {**NUMBERS, "bins": BINS},
    },
    "shift": {
        "found": ["degree"], "distances": {"confidence": 0.05, "degree": 0.4, "predicted": 0.02},
        "mean_confidence": {"valid": 0.9, "other": 0.7}, "median_degree": {"valid": 8.0, "other": 2.0},
        "expected_accuracy": 0.61,
    },
    "coverage": [
        {"asked": 0.9, "coverage": 0.75, "mean_size": 1.5, "empty": 0.0, "one_class": 0.5,
         "class_coverage": [None, 1.0, 0.5], "class_nodes": [0, 2, 2]},
    ],
}  # fmt: skip
ATTENTION = np.array([[0.5, 0.25, 0.25]] * 4 + [[0.0, 0.5, 0.5]] + [[0.25, 0.5, 0.25]] * 4 + [[1.0, 0.0, 0.0]])


def make_run(
    graph, folder, *, probabilities=PROBABILITIES, attention=ATTENTION, method="gamlp-jk", rows=None, trust=TRUST
):
    """Write a run directory with one seed, as gamlp train leaves it."""
    save_graph(graph, folder / "graph", overwrite=True)
    place = folder / "run" / "seed-0"
    write_array(place / "rows.npy", np.arange(graph.nodes) if rows is None else rows)
    write_array(place / "probabilities.npy", probabilities)
    if attention is not None:
        write_array(place / "attention.npy", attention)
    history = [
        {"stage": float(stage), "epoch": float(epoch), "loss": 2 / epoch, "valid_accuracy": 0.1 * epoch,
         "valid_log_loss": 3 / epoch}
        for stage in (1, 2)
        for epoch in (1, 2, 3)
    ]  # fmt: skip
    write_json(place / "history.json", history)
    stages = [{"epochs": 3, "best_epoch": 3, "reliable": reliable, "valid_accuracy": 0.3} for reliable in (0, 3)]
    scores = {f"{part}_{name}": 0.5 for part in ("valid", "test") for name in ("accuracy", "macro_f1", "log_loss")}
    result = {
        "dataset": graph.name, "method": method, "recipe": "default",
        **scores, **{f"{key}_std": None for key in scores},
        "parameters": 42, "seeds": [0], "seconds": 1.5, "seconds_per_seed": 1.5, "peak_memory_bytes": 2**20,
        "best_seed": 0, "run": "run",
        "runs": [{"seed": 0, **scores, "parameters": 42, "stages": stages, "seconds": 1.5, "trust": trust}],
    }  # fmt: skip
    record = {
        "format": 2, "dataset": graph.name, "method": method, "recipe": "default", "overrides": {"hops": 2},
        "source": {"what": [str(folder / "graph")]},
        "fingerprints": dict(graph.fingerprints), "seeds": [0],
        "device": "cpu", "settings": {"hops": 2, "combiner": "jk"}, "versions": {"gamlp": "0.1.0"},
        "machine": "a machine", "result": result,
    }  # fmt: skip
    write_json(folder / "run" / "run.json", record)
    return folder / "run"


def undrawn(chart, **_):
    """In place of chart.drawn, which takes a second or so: files without a picture in them."""
    return nullcontext(Mock())
