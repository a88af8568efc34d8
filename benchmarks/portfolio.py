"""The default beside every single method: on public graphs, and on generated ones whose neighbours differ.

    python benchmarks/portfolio.py graphs --root DATA [--graphs cora,…] [--splits 5] [--methods gcn,…]
    python benchmarks/portfolio.py own --root DATA [--graphs cora,…] [--splits 5]
    python benchmarks/portfolio.py homophily [--splits 3]

graphs      splits of 60 % train, 20 % valid, 20 % test, drawn anew for each number: `portfolio`, which is what
            `gamlp train` runs on a graph of one's own, and single methods with the settings of the recipe that adapts
            itself; of message passing it scales the features, the rest is its authors'
own         the splits that the graphs come with, a seed a number: what `gamlp train GRAPH --root DATA` runs, and the
            best rows of the paper's tables, message passing among them, with the settings of the recipe (RIVALS)
homophily   4,000 nodes, 5 classes, 32 features, 8 edges a node; the share of edges within a class from 0.1 to 0.9, the
            others lead to the next class (`gamlp synth products --nodes 4000 … --homophily H`); the same methods, and a
            picture in docs/images

Rows go to benchmarks/recorded/portfolio.json as they are finished: what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from finished_rows import FinishedRows
from gamlp.graph.graph import Graph
from gamlp.graph.readers.datasets import load_dataset
from gamlp.graph.splits import Split, SplitRule
from gamlp.graph.store import load_graph
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.propagate.engines.local import LocalEngine
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import load_recipe, usual_recipe
from gamlp.synth.draw import shape_named
from gamlp.synth.write import write_synth
from gamlp.train.hop_source import HopSource

RECORD = Path(__file__).parent / "recorded" / "portfolio.json"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "homophily.png"
MINUTES = 10  # for the default: so much that what comes out does not depend on what else the machine does
DEFAULT = "portfolio"  # the method that the recipes have where none is named
GRAPHS = ("cora", "citeseer", "photo", "pubmed", "computers", "cs", "physics")
METHODS = ("portfolio", "gcn", "graphsage", "appnp", "sign", "boosting")
RIVALS = {  # the best of `gamlp paper` on each graph, and of docs/results.md on Debian's
    "cora": "gamlp-recursive,gamlp-recursive+rlu,gamlp-recursive+rlu+scr,s2gc,appnp",
    "citeseer": "gamlp-recursive,gamlp-recursive+rlu,gamlp-recursive+rlu+scr,gamlp-jk,appnp",
    "pubmed": "gamlp-recursive,gamlp-recursive+rlu+scr,gbp,ap-gcn",
    "photo-lcc": "gbp,gamlp-recursive+rlu,gamlp-recursive+scr,appnp",
    "computers-lcc": "gbp,gamlp-recursive,gamlp-recursive+rlu,gcn",
    "cs": "gamlp-recursive,gamlp-recursive+rlu,s2gc,ap-gcn",
    "physics": "s2gc,gamlp-recursive+rlu,appnp,ap-gcn",
    "debian": "gamlp-recursive,gamlp-recursive+rlu,sign",
    "debian-hetero": "nars,nars-sagn,nars-gamlp-recursive",
}
ON_GENERATED = ("portfolio", "mlp", "sgc", "s2gc", "gbp", "sign", "sagn", "gamlp-jk", "gamlp-recursive")
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("graphs", "own", "homophily"))
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--graphs", help="by default all that are named here")
    parser.add_argument("--methods")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    if asked.what == "homophily":
        for share in SHARES:
            for number in range(asked.splits):
                graph = generated(share, number)
                methods = (asked.methods or ",".join(ON_GENERATED)).split(",")
                rows("homophily", f"{share:g}", graph, SplitRule(0.6, 0.2).draw(graph.labels, number), number, methods)
        return draw()
    for number in range(asked.splits):
        for name in (asked.graphs or ",".join(RIVALS if asked.what == "own" else GRAPHS)).split(","):
            graph = load_dataset(name, asked.root)
            if asked.what == "own":
                methods = (asked.methods or f"{DEFAULT},{RIVALS[name]}").split(",")
                rows("its own split", name, graph, graph.split_for(number), number, methods, usual_recipe([name]))
            else:
                split = SplitRule(0.6, 0.2).draw(graph.labels, number)
                rows("60/20/20", name, graph, split, number, (asked.methods or ",".join(METHODS)).split(","))
    return None


def generated(share: float, seed: int) -> Graph:
    """Return a graph of that homophily."""
    shape = replace(shape_named("products"), nodes=4_000, edges=16_000, features=32, classes=5, signal=0.3)
    with TemporaryDirectory() as place:
        write_synth(Path(place) / "graph", shape.with_homophily(share), seed=seed)
        graph = load_graph(Path(place) / "graph")  # mapped: copied before the folder goes
        adjacency = replace(
            graph.adjacency, indptr=graph.adjacency.indptr.copy(), indices=graph.adjacency.indices.copy()
        )
        return replace(graph, adjacency=adjacency, features=graph.features.copy(), labels=graph.labels.copy())


def rows(
    kind: str, name: str, graph: Graph, split: Split, number: int, methods: list[str], by: str = "default"
) -> None:
    """Fit every method on one split, with the settings of a recipe, and keep what comes out."""
    source, recipe, outline = HopSource(LocalEngine()), load_recipe(by), Outline.of(graph, split)
    finished = FinishedRows(RECORD, torch.get_num_threads())
    for wanted in methods:
        place = {"kind": kind, "graph": name, "split": number, "method": wanted}
        if finished.known(place):
            continue
        method = method_named(wanted)
        settings = recipe.resolve(method, {"minutes": MINUTES} if method.takes("minutes") else {}, outline)
        began = time.perf_counter()
        said = Pipeline(method, settings, hop_source=source).fit(graph, split, number).prediction
        assert said is not None
        took, right = time.perf_counter() - began, said.probabilities.argmax(axis=1) == graph.labels[said.rows]
        scores = {part: float(100 * right[ids].mean()) for part, ids in (("valid", split.valid), ("test", split.test))}
        finished.add({**place, **scores, "seconds": took})


def means(kind: str) -> dict[tuple[str, str], tuple[float, int]]:
    """Return the mean test score of each graph and method, and of how many splits."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in json.loads(RECORD.read_text())["rows"]:
        if row["kind"] == kind:
            found.setdefault((row["graph"], row["method"]), []).append(row["test"])
    return {at: (float(np.mean(scores)), len(scores)) for at, scores in found.items()}


def draw() -> None:
    """Draw test accuracy against homophily."""
    from matplotlib.figure import Figure

    found = means("homophily")
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for method in ON_GENERATED:
        points = [(share, found[f"{share:g}", method][0]) for share in SHARES if (f"{share:g}", method) in found]
        style: dict[str, Any] = {"color": "black", "linewidth": 2.5, "zorder": 3} if method == "portfolio" else {}
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=method, **style)
    axes.set_xlabel("share of edges within a class")
    axes.set_ylabel("test accuracy, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=3, loc=(0.3, 0.06))
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
