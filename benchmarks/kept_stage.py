"""Few labels: keep the last stage, as the paper does, or the one that validates best?

    python benchmarks/kept_stage.py --root DATA [--graphs cora,…] [--splits 4] [--threads 1]

The network that the default fits to a graph with few labels, trained on splits that no table shows: 20 nodes a class
train, 500 nodes validate (30 a class on the co-purchase and co-author graphs), all others test. Which one the default
keeps depends on how many neighbours a node has (`gamlp/recipes/adapt.py`).

Rows go to benchmarks/recorded/kept_stage.json as they are finished: what is there is not run again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from finished_rows import FinishedRows
from gamlp.graph.graph import Graph
from gamlp.graph.readers.datasets import load_dataset
from gamlp.graph.splits import Split
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.propagate.engines.local import LocalEngine
from gamlp.recipes.adapt import Outline, adapted_network
from gamlp.recipes.recipe import load_recipe
from gamlp.train.hop_source import HopSource

RECORD = Path(__file__).parent / "recorded" / "kept_stage.json"
CITATION = ("cora", "citeseer", "pubmed")
GRAPHS = (*CITATION, "cs", "photo", "computers", "physics")
SEEDS = 5_000  # the first of the splits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    finished = FinishedRows(RECORD, asked.threads)
    for name in asked.graphs.split(","):
        graph, source = load_dataset(name, asked.root), HopSource(LocalEngine())
        for number in range(asked.splits):
            split = drawn(graph, number, valid=500 if name in CITATION else 30 * len(graph.classes))
            outline = Outline.of(graph, split)
            method = method_named(adapted_network(outline).removesuffix("+cs"))
            for kept in ("last", "best"):
                row = {"graph": name, "dense": outline.dense, "split": number, "kept": kept}
                if finished.known(row):
                    continue
                settings = load_recipe("default").resolve(method, {"keep_stage": kept}, outline)
                said = Pipeline(method, settings, hop_source=source).fit(graph, split, number).prediction
                assert said is not None
                right = said.probabilities.argmax(axis=1) == graph.labels[said.rows]
                scores = {part: float(100 * right[split.sets[part]].mean()) for part in ("valid", "test")}
                finished.add({**row, **scores})


def drawn(graph: Graph, number: int, *, valid: int) -> Split:
    """Return 20 nodes of each class that train, so many that validate, and all others."""
    draw = np.random.default_rng(SEEDS + number)
    classes = [draw.permutation(np.flatnonzero(graph.labels == one)) for one in range(len(graph.classes))]
    rest = draw.permutation(np.concatenate([nodes[20:] for nodes in classes]))
    return Split(*map(np.sort, (np.concatenate([nodes[:20] for nodes in classes]), rest[:valid], rest[valid:])))


if __name__ == "__main__":
    main()
