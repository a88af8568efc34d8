"""Several processes on one machine: propagation by Ray with 1, 2 and 4 workers, training by torchrun with 1 and 2.

    python benchmarks/processes.py --json                       some minutes
    python benchmarks/processes.py --entries 400000 --json      a quick look

Every worker and every rank has one thread. Graphs have the shape of papers100M; hops are those of 64 float32 features,
four cache lines, so that four workers have a block each. The ways take turns, as others may use the machine at the same
time, and the best of each counts. Recorded beside the seconds:

    cpu_seconds   of all processes: where these rise with the workers, these wait for memory, not for each other
    one_process   the local engine with one thread, which starts nothing: what Ray adds to one worker is its start and
                  the file of each block
    processors    that this process may use: more workers than these share them, and cannot be faster

Training is of `gamlp-jk`, with the same batches whatever the number of ranks. The cost model carries the measured
time of one worker to 16 machines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

FEATURES, HOPS = 64, 4
RAY = """
import json, sys, time
import ray
from pathlib import Path
from gamlp.graph.store import load_graph
from gamlp.propagate import LocalEngine, Propagation
from gamlp.propagate.engines.ray import RayEngine
import numpy as np
folder, workers = Path(sys.argv[1]), int(sys.argv[2])
graph = load_graph(folder / "graph", verify=False)
rows = np.sort(np.concatenate([graph.split.train, graph.split.valid, graph.split.test]))
spec = Propagation(int(sys.argv[3]), rows=rows)
if workers:
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error",
             _memory=2**34, object_store_memory=2**27)
engine = RayEngine(memory=2**31) if workers else LocalEngine(memory=2**31, threads=1)
seconds = []
for turn in range(2):  # the first starts the workers, and compiles or loads what was compiled
    began = time.perf_counter()
    engine.propagate(graph.adjacency, graph.features, spec)
    seconds.append(time.perf_counter() - began)
print(json.dumps({"first": seconds[0], "seconds": seconds[1]}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=20_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4], help="0 = the local engine")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TMPDIR"] = str(folder)
        facts = made(folder, options)
        propagation = turns(options.workers, options.repeats, lambda workers: by_ray(folder, workers))
        training = turns(options.ranks, options.repeats, lambda ranks: by_torchrun(folder, ranks, options))
        result = {**facts, "propagation": propagation, "training": training, **carried(facts, propagation, folder)}
    print(json.dumps(result) if options.json else json.dumps(result, indent=2))


def made(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Generate the graph; say what it has, and on what machine."""
    from dataclasses import replace

    from gamlp.machine.facts import processor_name
    from gamlp.synth.draw import shape_named
    from gamlp.synth.write import write_synth

    nodes, edges = max(2000, options.entries // 29), int(options.entries / 2 * 1.09)
    shape = replace(shape_named("papers100M"), nodes=nodes, edges=edges, features=FEATURES, classes=20, train=0.1)
    found = write_synth(folder / "graph", shape, memory=2**30)
    size = {key: found[key] for key in ("nodes", "entries", "labelled")}
    machine = {"processor": processor_name(), "processors": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}
    return {**size, "features": FEATURES, "hops": HOPS, "machine": machine}


def turns(numbers: list[int], repeats: int, run: Any) -> list[dict[str, Any]]:
    """Measure all numbers of processes in turn, so many times; return the best of each, and how many times as fast."""
    found: dict[int, list[dict[str, Any]]] = {number: [] for number in numbers}
    for _ in range(repeats):
        for number in numbers:
            before = os.times()
            one = run(number)
            after = os.times()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            found[number].append({"processes": number, **one, "cpu_seconds": used})
            print(json.dumps(found[number][-1]), file=sys.stderr)
    best = [min(found[number], key=lambda one: one["seconds"]) for number in numbers]
    base = next(one["seconds"] for one in best if one["processes"] == 1)
    return [{**one, "speed_up": base / one["seconds"]} for one in best]


def by_ray(folder: Path, workers: int) -> dict[str, Any]:
    """Return the seconds of a propagation with so many workers, started before; 0 = without Ray."""
    words = [sys.executable, "-c", RAY, str(folder), str(workers), str(HOPS)]
    done = subprocess.run(words, check=True, capture_output=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def by_torchrun(folder: Path, ranks: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds of a training, hops taken from a cache."""
    words = ["train", str(folder / "graph"), "--method", "gamlp-jk", "--recipe", "ogbn-products", "--seeds", "1"]
    words += ["--set", f"epochs={options.epochs}", "--set", "hidden=128", "--set", "batch_size=4096"]
    words += ["--set", "rows=labelled", "--cache", str(folder / "hops"), "--json"]
    out = folder / f"run-{ranks}-{time.time_ns()}"
    start = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", "29517"]
    command = [sys.executable, *start, "-m", "gamlp", *words, "--out", str(out)]
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    whole = time.perf_counter() - began
    result = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
    return {"seconds": result["seconds"], "whole": whole, "valid_accuracy": result["valid_accuracy"]}


def carried(facts: dict[str, Any], runs: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Return what the cost model says of each number of workers and machines, by the constants of one thread."""
    from gamlp.machine.cost import Work, on_cluster
    from gamlp.machine.measure import measure

    constants = measure(folder, sizes=(2**26, 2**29), disk_bytes=2**26)
    work = Work(facts["nodes"], facts["entries"], FEATURES, HOPS, facts["labelled"])
    papers = Work(111_059_956, 3_228_124_712, 128, 6, 1_546_782, "float16")
    many = (1, 2, 4, 8, 16)
    room: dict[str, Any] = {"memory": 2**31, "ram": 2**31}
    seconds = {workers: on_cluster(work, constants, machines=workers, **room).seconds for workers in many}
    for run in runs:
        run["predicted"] = seconds.get(max(1, run["processes"]))
    whole = {count: on_cluster(papers, constants, machines=count, memory=2**34, ram=2**34) for count in many}
    return {
        "predicted": seconds,
        "papers100M_float16_16GiB": {
            key: {"seconds": cost.seconds, "blocks": cost.blocks} for key, cost in whole.items()
        },
        "constants": asdict(constants),
    }


if __name__ == "__main__":
    main()
