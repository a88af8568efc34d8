"""Label hops: what it saves to leave out zeros, rows that nobody wants, and half of the bits.

    python benchmarks/label_hops.py --scale 0.01 --hops 9 3 --json

Labels of a graph in the shape of papers100M, 172 columns of mostly zeros, are propagated for the labelled rows in five
ways, in turns, and the processor's seconds are compared, as others may use the machine at the same time:

    dense     all rows of all hops, as columns of features would be
    last      the last hop for the wanted rows alone
    sparse    the last hop likewise, and the first ones read only the rows that a label has reached: what is used
    float16   the same stored in half the bytes (--set storage=float16)

The result of each is compared with that of the first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from gamlp.graph.store import load_graph
from gamlp.labels import initial_labels
from gamlp.machine.facts import machine_facts
from gamlp.propagate import LocalEngine, Normalization, Propagation, block
from gamlp.synth.draw import shape_named
from gamlp.synth.write import write_synth

WAYS = {
    "dense": ("float32", 0.0, 0.0),
    "last": ("float32", 0.0, block.FEW),
    "sparse": ("float32", block.DENSE, block.FEW),
    "float16": ("float16", block.DENSE, block.FEW),
}  # storage, and the shares from which rows are read and summed all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.01, help="times papers100M's nodes and edges")
    parser.add_argument("--hops", type=int, nargs="+", default=[9, 3])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--memory", type=int, default=2**33)
    parser.add_argument("--graph", type=Path, help="a graph directory instead of a generated one")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.graph or Path(folder) / "graph"
        if options.graph is None:
            write_synth(place, shape_named("papers100M").scaled(options.scale))
        graph = load_graph(place, verify=False)
        split = graph.split_for(0)
        labels = initial_labels(graph.nodes, len(graph.classes), split.train, graph.labels[split.train])
        rows = np.sort(np.concatenate([split.train, split.valid, split.test]))
        facts = machine_facts(Path(folder))
        found = [measured(graph.adjacency, labels, rows, hops, options) for hops in options.hops]
    size = {"nodes": graph.nodes, "entries": graph.adjacency.entries, "classes": len(graph.classes), "rows": len(rows)}
    result = {**size, "runs": found, "processor": facts["processor"], "threads": facts["threads"]}
    print(json.dumps(result) if options.json else json.dumps(found, indent=2))


def measured(adjacency: Any, labels: Any, rows: Any, hops: int, options: Any) -> dict[str, Any]:
    """Return the least processor seconds of each way, and how far its result is from that of dense columns."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    results: dict[str, Any] = {}
    for turn in range(options.repeats + 1):  # the first compiles
        for way, (storage, dense, few) in WAYS.items():
            spec = Propagation(hops, Normalization(0.0, False), rows=rows, keep="last", storage=storage)  # type: ignore[arg-type]
            engine = LocalEngine(memory=options.memory)
            some = adjacency if turn else tiny(adjacency)
            with mock.patch.object(block, "DENSE", dense), mock.patch.object(block, "FEW", few):
                began = time.process_time()
                if turn:
                    results[way] = np.array(engine.propagate(some, labels, spec).values[:, 0], np.float32)
                    seconds[way].append(time.process_time() - began)
                else:
                    engine.propagate(some, labels[: some.nodes], Propagation(2, storage=storage))  # type: ignore[arg-type]
    least = {way: min(values) for way, values in seconds.items()}
    error = {way: float(np.abs(values - results["dense"]).max()) for way, values in results.items()}
    return {
        "hops": hops, "cpu_seconds": least, "difference": error,
        "gain": {way: least["dense"] / value for way, value in least.items()},
    }  # fmt: skip


def tiny(adjacency: Any) -> Any:
    """Return an adjacency of a thousand nodes without edges, of the same types."""
    from gamlp.graph.graph import Adjacency

    return Adjacency(np.zeros(1001, adjacency.indptr.dtype), np.zeros(0, adjacency.indices.dtype))


if __name__ == "__main__":
    main()
