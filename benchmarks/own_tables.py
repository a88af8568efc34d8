"""Tables as people have them: each trains by one command without a flag, and what comes out beside references.

    python benchmarks/own_tables.py --root DATA [--only cora,photo,citeseer,debian] [--seeds 3]

cora, photo, citeseer   edges.csv (id_1, id_2) and target.csv (id, target), without features, as the MUSAE graphs are
                        published; beside label propagation, and a logistic regression on FastRP vectors (written here
                        from Chen et al., CIKM 2019, with its published weights; C is chosen on validation)
debian                  the messy table of benchmarks/messy_debian.py, beside `debian` itself by the same recipe

All are scored on the same splits: one a seed for the pairs (60 % train, 20 % validate), and that of `debian`.
The commands have no option but --json; --seeds adds one. Results go to benchmarks/recorded/own_tables.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gamlp.graph.graph import Graph
from gamlp.graph.readers.datasets import load_dataset, read_graph
from messy_debian import write_debian

RECORD = Path(__file__).parent / "recorded" / "own_tables.json"
PAIRS = ("cora", "photo", "citeseer")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--only", default=",".join((*PAIRS, "debian")))
    parser.add_argument("--seeds", type=int, help="other than the three of the command")
    parser.add_argument("--record", type=Path, default=RECORD)
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        with TemporaryDirectory() as place:
            measure = pair if name in PAIRS else debian
            row = measure(name, arguments.root, Path(place), arguments.seeds)
        print(json.dumps(row), flush=True)
        known = json.loads(arguments.record.read_text()) if arguments.record.exists() else {}
        arguments.record.write_text(json.dumps({**known, name: row}, indent=1) + "\n")


def pair(name: str, root: Path, place: Path, seeds: int | None) -> dict[str, Any]:
    """Train on a pair of files without features."""
    write_pair(load_dataset(name, root), place)
    row = {"trained": train(place, "edges.csv", "target.csv", seeds=seeds)}
    found = row["trained"]["seeds"]
    row["label propagation"] = train(place, "edges.csv", "target.csv", "--method", "label-propagation", seeds=seeds)
    graph = read_graph([place / "edges.csv", place / "target.csv"])
    scores = [100 * on_fastrp(graph, seed) for seed in found]
    row["logistic regression on FastRP"] = {"test": float(np.mean(scores)), "std": deviation(scores), "seeds": found}
    return row


def debian(name: str, root: Path, place: Path, seeds: int | None) -> dict[str, Any]:
    """Train on the messy table, and on the data set by the same recipe."""
    what = write_debian(place)
    return {
        "descriptions": what,
        "trained": train(place, "edges.csv", "nodes.csv", seeds=seeds),
        "shipped": train(place, "debian", "--recipe", "default", seeds=seeds),
    }


def train(place: Path, *words: str, seeds: int | None) -> dict[str, Any]:
    """Run one command; return its scores in %, and its wall and processor time."""
    command = [sys.executable, "-m", "gamlp", "train", *words, *([] if seeds is None else ["--seeds", str(seeds)])]
    began, before = time.perf_counter(), os.times()
    said = subprocess.run([*command, "--json"], cwd=place, check=True, capture_output=True, text=True)
    after, result = os.times(), json.loads(said.stdout)
    spent = [getattr(after, part) - getattr(before, part) for part in ("children_user", "children_system")]
    return {
        "command": " ".join(["gamlp", *command[3:]]), "told": said.stderr.splitlines()[:3],
        "method": result["method"], "seeds": result["seeds"],
        "valid": 100 * result["valid_accuracy"], "test": 100 * result["test_accuracy"],
        "std": 100 * (result["test_accuracy_std"] or 0), "seconds": time.perf_counter() - began,
        "processor_seconds": sum(spent),
    }  # fmt: skip


def write_pair(graph: Graph, place: Path) -> None:
    """Write each edge once, and each node's class."""
    source = np.repeat(np.arange(graph.nodes), np.diff(graph.adjacency.indptr))
    once = source < graph.adjacency.indices
    rows = zip(source[once], graph.adjacency.indices[once], strict=True)
    targets = ((node, graph.classes[label]) for node, label in enumerate(graph.labels))
    for name, header, content in (("edges", ["id_1", "id_2"], rows), ("target", ["id", "target"], targets)):
        with (place / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(content)


def on_fastrp(graph: Graph, seed: int) -> float:
    """Return the test accuracy of a logistic regression on FastRP vectors."""
    from sklearn.linear_model import LogisticRegression

    vectors, split = fastrp(graph, seed), graph.split_for(seed)
    vectors = (vectors - vectors.mean(axis=0)) / np.maximum(vectors.std(axis=0), 1e-9)
    best, score = -1.0, 0.0
    for strength in (0.001, 0.01, 0.1, 1.0):
        model = LogisticRegression(C=strength, max_iter=1000).fit(vectors[split.train], graph.labels[split.train])
        valid, test = (model.score(vectors[ids], graph.labels[ids]) for ids in (split.valid, split.test))
        if valid > best:
            best, score = valid, test
    return score


def fastrp(graph: Graph, seed: int, *, dimension: int = 512, power: float = -0.628) -> Any:
    """Return N = Σ_k w_k (D⁻¹A)ᵏ Dᵝ R, rows of each term of length 1, with the weights 1, 1, 7.81, 45.28."""
    from scipy.sparse import csr_array, diags_array

    indptr, indices, nodes = graph.adjacency.indptr, graph.adjacency.indices, graph.nodes
    degree = np.maximum(np.diff(indptr), 1).astype(np.float64)
    walk = diags_array(1 / degree) @ csr_array((np.ones(len(indices)), indices, indptr), shape=(nodes, nodes))
    random = np.random.default_rng(seed)
    signs = random.choice([-1.0, 0.0, 1.0], (nodes, dimension), p=[1 / 6, 2 / 3, 1 / 6]) * np.sqrt(3)
    state, total = (degree / degree.sum())[:, None] ** power * signs, np.zeros((nodes, dimension))
    for weight in (1.0, 1.0, 7.81, 45.28):
        state = walk @ state
        total += weight * state / np.maximum(np.linalg.norm(state, axis=1, keepdims=True), 1e-12)
    return total


def deviation(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
