"""How many new nodes get the class that a recomputation of the whole graph gives them?

    python benchmarks/new_nodes.py                       debian, 5 % and 10 % of its nodes held out at random
    python benchmarks/new_nodes.py --epochs 20           a quick look

A part of the test packages is taken out of the graph, with their edges, and a method trained on the rest by its recipe;
then they are given back as new nodes. `same` is the share of them whose class is that of the graph with all nodes,
predicted whole, the labels of training known; `first ring` the same where only old nodes beside new ones are followed,
`nothing felt` where no old node feels the new ones (see gamlp.propagate.attach).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

from gamlp import read_graph
from gamlp.graph.build.changes import Changes, EdgeSet, apply_changes
from gamlp.graph.build.new_nodes import NewNodes
from gamlp.graph.graph import Graph
from gamlp.graph.readers.change_tables import some_nodes
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.propagate import attach
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import load_recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", default="0.05,0.1")
    parser.add_argument("--methods", default="gamlp-recursive-labels,gamlp-recursive")
    parser.add_argument("--epochs", type=int, help="instead of the recipe's")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    whole = read_graph("debian")
    rows = [
        measure(whole, float(share), method, options.epochs)
        for share in options.shares.split(",")
        for method in options.methods.split(",")
    ]
    if options.json:
        machine = f"{os.cpu_count()} cores, {platform.machine()}"
        print(json.dumps({"dataset": "debian", "epochs": options.epochs, "machine": machine, "rows": rows}))


def held_out(whole: Graph, share: float) -> tuple[Graph, NewNodes]:
    """Take so many test nodes out of the graph, and return them as new ones."""
    split = whole.split_for(0)
    out = np.sort(np.random.default_rng(0).choice(split.test, int(share * whole.nodes), replace=False))
    small, moved = apply_changes(replace(whole, split=split), Changes(removed=out), directed=False)
    assert moved.number is not None
    number = moved.number.copy()
    number[out] = small.nodes + np.arange(len(out))
    row = number[np.repeat(np.arange(whole.nodes), np.diff(whole.adjacency.indptr))]
    column = number[whole.adjacency.indices]
    theirs = (row >= small.nodes) & ((row < column) | (column < small.nodes))
    return small, NewNodes(some_nodes(whole, out), row[theirs], column[theirs])


def measure(whole: Graph, share: float, name: str, epochs: int | None) -> dict[str, Any]:
    """Train on what is left, and compare both ways to the classes of the new nodes."""
    small, new = held_out(whole, share)
    split, method = small.split_for(0), method_named(name)
    settings = load_recipe("debian").resolve(method, {"epochs": epochs} if epochs else {}, Outline.of(small, split))
    fitted = Pipeline(method, settings).fit(small, split, 0)
    exact = fitted.predict_exactly(small, new, split=split).probabilities
    living = fitted.living(small, split=split)
    row: dict[str, Any] = {"method": name, "share": share, "new": new.nodes.nodes, "bytes": living.bytes}
    started = time.process_time()
    usual = living.predict(new).probabilities
    row["cpu_seconds"] = time.process_time() - started
    for words, found in (
        ("same", usual),
        ("first ring", followed(living, new, 1.0)),
        ("nothing felt", unfelt(living, new)),
    ):
        row[words] = float((found.argmax(axis=1) == exact.argmax(axis=1)).mean())
    labels = fitted.class_numbers(new.nodes)
    row["accuracy"], row["accuracy_exact"] = (float((one.argmax(axis=1) == labels).mean()) for one in (usual, exact))
    print(row, file=sys.stderr, flush=True)
    return row


def followed(living: Any, new: NewNodes, share: float) -> np.ndarray:
    """Predict with another share from which on old nodes are followed."""
    before, attach.SHARE = attach.SHARE, share
    try:
        return living.predict(new).probabilities
    finally:
        attach.SHARE = before


def unfelt(living: Any, new: NewNodes) -> np.ndarray:
    """Predict as if edges led from new nodes to old ones alone: these then feel nothing."""
    swap = new.source < living.graph.nodes  # an entry stands in the row of the source: the new node
    ends = np.where(swap, new.target, new.source), np.where(swap, new.source, new.target)
    among = new.source >= living.graph.nodes
    among &= new.target >= living.graph.nodes
    both = EdgeSet(*(np.concatenate([one, other[among]]) for one, other in (ends, ends[::-1])))
    alone = replace(living)
    alone.__dict__["directed"] = True
    return alone.predict(NewNodes(new.nodes, both.source, both.target)).probabilities


if __name__ == "__main__":
    main()
