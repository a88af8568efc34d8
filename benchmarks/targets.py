"""Targets as they are: a binary graph with 1 % positives and one with 20 labels a node, beside PyG's GCN.

    python benchmarks/targets.py --record benchmarks/recorded/targets.json

Both graphs are made here, written as Parquet tables and trained by the command line; PyG's GCN (two GCNConv, hidden 64,
dropout 0.5, Adam 0.01, weight decay 5e-4, 200 epochs) learns from the same split, with cross-entropy or binary
cross-entropy, and keeps its best epoch by the same metric on validation. Test scores are scikit-learn's, of
the run directory's probabilities and of the GCN alike, mean ± std over the seeds.

    binary      features tell a positive faintly; a quarter of a positive's edges leads to positives
    multi       every node is in two of 30 communities, edges join nodes that share one, a label belongs to some
                communities; a fifth of the labels is not known
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

Array = np.ndarray[Any, Any]
SETS = ("train", "valid", "test")
RUNS: dict[str, dict[str, Sequence[str]]] = {
    "binary": {
        "gamlp, chosen by accuracy": (),
        "gamlp --metric average_precision": ("--metric", "average_precision"),
        "… and class_weight=balanced": ("--metric", "average_precision", "--set", "class_weight=balanced"),
        "label-propagation": ("--method", "label-propagation", "--metric", "average_precision"),
    },
    "multi": {
        "gamlp": (),
        "label-propagation": ("--method", "label-propagation"),
    },
}


def main() -> None:
    """Make the graphs, train everything, print a table and perhaps record it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--record", type=Path, help="a JSON file to write")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def keep(row: dict[str, Any]) -> None:
        rows.append(row)
        print(line(row), flush=True)
        result = {"machine": platform.machine(), "nodes": options.nodes, "seeds": options.seeds, "rows": rows}
        if options.record:
            options.record.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")

    for name, make in (("binary", binary_graph), ("multi", multi_graph)):
        graph = make(options.nodes)
        keep(beside("PyG's GCN", name, graph, [gcn(graph, seed) for seed in range(options.seeds)]))
        with tempfile.TemporaryDirectory() as folder:
            tables = write_tables(graph, Path(folder))
            for title, words in RUNS[name].items():
                keep(by_command_line(name, title, graph, tables, words, Path(folder), options.seeds))


def binary_graph(nodes: int) -> dict[str, Any]:
    """Return a graph of which 1 % is positive."""
    random = np.random.default_rng(0)
    labels = (random.random(nodes) < 0.01).astype(np.int64)
    positives = np.flatnonzero(labels)
    source = np.repeat(np.arange(nodes), 4)
    target = random.integers(0, nodes, len(source))
    alike = (labels[source] == 1) & (random.random(len(source)) < 0.25)
    target[alike] = random.choice(positives, int(alike.sum()))
    features = random.normal(size=(nodes, 16)) + 0.4 * labels[:, None] * random.normal(size=16)
    return whole(source, target, features, labels, random)


def multi_graph(nodes: int, labels: int = 20, communities: int = 30) -> dict[str, Any]:
    """Return a graph with several labels a node."""
    random = np.random.default_rng(1)
    member = np.stack([random.permutation(communities)[:2] for _ in range(nodes)])  # (N, 2)
    order = np.argsort(member[:, 0], kind="stable")
    starts = np.searchsorted(member[order, 0], np.arange(communities + 1))
    source = np.repeat(np.arange(nodes), 5)
    shared = member[source, random.integers(0, 2, len(source))]
    low, high = starts[shared], starts[shared + 1]
    target = order[(low + random.random(len(source)) * (high - low)).astype(np.int64)]
    anywhere = random.random(len(source)) < 0.3
    target[anywhere] = random.integers(0, nodes, int(anywhere.sum()))
    of_community = random.random((communities, labels)) < 0.15
    truth = (of_community[member[:, 0]] | of_community[member[:, 1]]).astype(np.int64)
    flipped = random.random(truth.shape) < 0.02
    truth[flipped] = 1 - truth[flipped]
    truth[random.random(truth.shape) < 0.2] = -1
    centres = random.normal(size=(communities, 16))
    features = centres[member].sum(axis=1) + 4 * random.normal(size=(nodes, 16))
    return whole(source, target, features, truth, random)


def whole(source: Array, target: Array, features: Array, labels: Array, random: np.random.Generator) -> dict[str, Any]:
    """Return the parts, and a split: 30 % train, 20 % validate, 50 % test."""
    sets = random.choice(3, size=len(features), p=[0.3, 0.2, 0.5])
    edges = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])
    return {"edges": edges, "features": features.astype(np.float32), "labels": labels, "sets": sets}


def write_tables(graph: dict[str, Any], folder: Path) -> list[str]:
    """Write the tables and return the words that name them on the command line."""
    edges, labels = graph["edges"], graph["labels"]
    count = edges.shape[1] // 2
    parquet.write_table(pa.table({"source": edges[0, :count], "target": edges[1, :count]}), folder / "edges.parquet")
    columns: dict[str, Any] = {"id": np.arange(len(labels)), "split": np.array(SETS)[graph["sets"]]}
    several = labels.ndim == 2
    for at, column in enumerate(labels.T if several else [labels]):
        columns[f"go_{at}" if several else "label"] = pa.array(column, mask=column < 0)
    columns |= {f"x{at}": column for at, column in enumerate(graph["features"].T)}
    parquet.write_table(pa.table(columns), folder / "nodes.parquet")
    words = [str(folder / "edges.parquet"), str(folder / "nodes.parquet")]
    return [*words, "--column", "label=go_*"] if several else words


def by_command_line(
    name: str, title: str, graph: dict[str, Any], tables: list[str], words: Sequence[str], folder: Path, seeds: int
) -> dict[str, Any]:
    """Train by `gamlp train`, and score the probabilities that the run keeps of each seed."""
    run = folder / f"run-{len(list(folder.iterdir()))}"
    train = ["train", *tables, *words, "--seeds", str(seeds), "--out", str(run), "--json"]
    subprocess.run([sys.executable, "-m", "gamlp", *train], check=True, capture_output=True)
    said = [np.load(run / f"seed-{seed}" / "probabilities.npy") for seed in range(seeds)]
    said = said if name == "multi" else [chances[:, 1] for chances in said]
    return beside(title, name, graph, said)


def gcn(graph: dict[str, Any], seed: int, epochs: int = 200) -> Array:
    """Train PyG's GCN; return its probabilities of the positive class, or of every label."""
    from torch_geometric.nn import GCNConv

    torch.manual_seed(seed)
    several = graph["labels"].ndim == 2
    features, edges = torch.from_numpy(graph["features"]), torch.from_numpy(graph["edges"])
    labels, sets = torch.from_numpy(graph["labels"]), graph["sets"]
    first, last = GCNConv(features.shape[1], 64), GCNConv(64, labels.shape[1] if several else 2)
    adam = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.01, weight_decay=5e-4)
    train, valid = torch.from_numpy(np.flatnonzero(sets == 0)), np.flatnonzero(sets == 1)

    def forward(dropout: float) -> torch.Tensor:
        hidden = torch.nn.functional.dropout(first(features, edges).relu(), dropout, training=dropout > 0)
        return last(hidden, edges)

    best, kept = -1.0, np.zeros(0)
    for _ in range(epochs):
        adam.zero_grad()
        logits, wanted = forward(0.5)[train], labels[train]
        known = wanted >= 0
        loss = (
            binary_cross_entropy_with_logits(logits[known], wanted[known].float())
            if several
            else cross_entropy(logits, wanted)
        )
        loss.backward()
        adam.step()
        with torch.no_grad():
            chances = (forward(0).sigmoid() if several else forward(0).softmax(dim=1)[:, 1]).numpy()
        auc, precision = measured(graph["labels"][valid], chances[valid])
        if (score := auc if several else precision) > best:
            best, kept = score, chances
    return kept


def measured(labels: Array, chances: Array) -> tuple[float, float]:
    """Return ROC-AUC and average precision by scikit-learn, mean over the labels, each where it is known."""
    columns = zip(labels.reshape(len(labels), -1).T, chances.reshape(len(labels), -1).T, strict=True)
    pairs = [(truth[truth >= 0], chance[truth >= 0]) for truth, chance in columns]
    found = [(roc_auc_score(*pair), average_precision_score(*pair)) for pair in pairs]
    return float(np.mean([one[0] for one in found])), float(np.mean([one[1] for one in found]))


def beside(title: str, name: str, graph: dict[str, Any], said: Sequence[Array]) -> dict[str, Any]:
    """Return one row of the table: test scores of all seeds, and the base rate."""
    test = np.flatnonzero(graph["sets"] == 2)
    labels = graph["labels"][test]
    scores = np.array([measured(labels, chances[test]) for chances in said])
    spread = scores.std(axis=0, ddof=1) if len(said) > 1 else np.zeros(2)
    names = ("roc_auc", "average_precision")
    values = {key: float(value) for key, value in zip(names, scores.mean(axis=0), strict=True)}
    values |= {f"{key}_std": float(value) for key, value in zip(names, spread, strict=True)}
    return {"graph": name, "method": title, **values, "base_rate": float((labels == 1).sum() / (labels >= 0).sum())}


def line(row: dict[str, Any]) -> str:
    """Write a row as Markdown."""
    cells = [f"{100 * row[key]:.2f} ± {100 * row[f'{key}_std']:.2f}" for key in ("roc_auc", "average_precision")]
    return f"| {row['graph']} | {row['method']} | {' | '.join(cells)} | {100 * row['base_rate']:.1f} |"


if __name__ == "__main__":
    main()
