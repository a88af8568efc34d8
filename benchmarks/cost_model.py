"""Hold the predictions of gamlp doctor against measured runs of the engines in memory and on disk.

    python benchmarks/cost_model.py --json
    python benchmarks/cost_model.py --json --recorded benchmarks/recorded/scale_xeon85.json

Draws graphs of some sizes, measures the machine's constants, then propagates, a few times each; the shortest counts, as
with the constants. With --recorded it does not propagate, but takes the runs that `scale.py` recorded on this
processor. A ratio is measured seconds over predicted seconds; the model is called good where all lie within 1/3 and 3.
A machine that others use at the same time makes both sides worthless.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Adjacency
from gamlp.machine.cost import Constants, Work, limited, predict
from gamlp.machine.facts import free_bytes, machine_facts, memory_bytes
from gamlp.machine.measure import measure
from gamlp.propagate import LocalEngine, Propagation, propagate
from gamlp.storage.sizes import parse_size
from propagate import skewed_edges


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, nargs="+", default=[4_000_000, 20_000_000])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--hops", type=int, default=3)
    parser.add_argument("--memory", type=int, default=2**29, help="bytes for the engine within a limit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--recorded", type=Path, help="what scale.py printed on this processor")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        constants, facts = measure(Path(folder)), machine_facts(Path(folder))
        runs = recorded(options.recorded, constants) if options.recorded else measured(options, constants, Path(folder))
    ratios = [run["measured"] / run["predicted"] for run in runs]
    result = {
        "runs": runs,
        "ratios": {"least": min(ratios), "most": max(ratios)},
        "constants": asdict(constants),
        "machine": {key: value for key, value in facts.items() if key != "folder"},
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(json.dumps(result["ratios"]))


def measured(options: argparse.Namespace, constants: Constants, folder: Path) -> list[dict[str, Any]]:
    """Return the runs of graphs that are drawn here."""
    tiny = adjacency_from_edges(np.array([0]), np.array([1]), nodes=2)
    propagate(tiny, np.ones((2, options.features)), Propagation(1))  # compiles
    return [run for entries in options.entries for run in runs_of(entries, options, constants, folder)]


def recorded(record: Path, constants: Constants) -> list[dict[str, Any]]:
    """Return the runs of a record of scale.py, each with what the model says of it."""
    found = json.loads(record.read_text(encoding="utf-8"))
    if found["machine"]["processor"] != constants.processor:
        sys.exit(f"{record} is of an {found['machine']['processor']}, this is an {constants.processor}.")
    runs = []
    for run in found["runs"]:
        work = Work(run["nodes"], run["entries"], found["features"], found["hops"], run["rows"], found["storage"])
        cost = limited(work, constants, memory=parse_size(found["memory"]), ram=memory_bytes() or 0)
        runs.append({"engine": "limited", "nodes": run["nodes"], "entries": run["entries"],
                     "measured": run["seconds"], "predicted": cost.seconds, "blocks": cost.blocks})  # fmt: skip
    return runs


def runs_of(entries: int, options: argparse.Namespace, constants: Any, folder: Path) -> list[dict[str, Any]]:
    nodes = entries // 16
    adjacency = adjacency_from_edges(*skewed_edges(nodes, entries // 2), nodes=nodes)
    features = np.random.default_rng(0).standard_normal((nodes, options.features), dtype=np.float32)
    work = Work(nodes, adjacency.entries, options.features, options.hops, nodes)
    costs = predict(work, constants, memory=options.memory, ram=free_bytes() or 2**34)
    spec = Propagation(options.hops)
    seconds = {"local": timed(lambda: propagate(adjacency, features, spec), options.repeats)}
    mapped, by_columns = saved(adjacency, features, folder)
    tempfile.tempdir = str(folder)  # where an engine without a cache writes to
    within = LocalEngine(memory=options.memory)
    seconds["limited"] = timed(lambda: within.propagate(mapped, by_columns, spec), options.repeats)
    runs = []
    for engine, taken in seconds.items():
        cost = costs[engine]
        runs.append({"engine": engine, "nodes": nodes, "entries": adjacency.entries, "measured": taken,
                     "predicted": cost.seconds, "blocks": cost.blocks})  # fmt: skip
        print(f"{entries:>12,} {engine:8} {taken:8.2f} s, predicted {cost.seconds:8.2f} s", file=sys.stderr)
    return runs


def saved(adjacency: Adjacency, features: np.ndarray, folder: Path) -> tuple[Adjacency, np.ndarray]:
    """Return both as mapped files, the features by columns, as an import writes them."""
    arrays = {"indptr": adjacency.indptr, "indices": adjacency.indices, "features": np.asfortranarray(features)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    maps = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays]
    return Adjacency(maps[0], maps[1]), maps[2]


def timed(work: Callable[[], Any], repeats: int) -> float:
    """Return the shortest time."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


if __name__ == "__main__":
    main()
