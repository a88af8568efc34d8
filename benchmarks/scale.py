"""How does propagation on disk fare as graphs grow, within a fixed amount of memory?

    python benchmarks/scale.py --json --folder /somewhere/with/space          4M to 1G entries within 8GiB
    python benchmarks/scale.py --entries 200000 --features 16 --hops 2        a quick look

Graphs in the shape of papers100M (34.5M nodes at 1G entries; hubs, communities, ids far apart) are generated, each is
propagated within a memory limit in a process of its own, with the labelled rows kept, and removed again. `seconds`
counts everything from the mapped graph to the finished folder of hops.

The yardstick is a loop that only reads, from two states of the same width in turn and for the same column ids, the rows
that the hops read (`gather_limit.py`), as often as the blocks and hops do, on the same threads, in the same process
beside it: caches and address tables make large graphs slower per entry for anyone. `gather_limit` is the share of its
speed that the engine reaches. `disk_vs_memory` compares with no limit where --both entries allow it. On
graphs that take seconds or less the three take turns, three or fifteen times, and medians are compared; on larger ones
the yardstick is laid before and after, and the mean of both counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (4_000_000, 30_000_000, 100_000_000, 300_000_000, 1_000_000_000)
TURNS = {10_000_000: 15, 120_000_000: 3}  # entries → runs of which the median is taken; above, there is one
ENTRIES_A_NODE = 29  # of papers100M, symmetric


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="*", default=SIZES, help="of the adjacency, about")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--hops", type=int, default=6)
    parser.add_argument("--storage", default="float32", help="or float16")
    parser.add_argument("--memory", default="8GiB")
    parser.add_argument("--both", type=int, default=120_000_000, help="entries up to which memory is compared")
    parser.add_argument("--folder", type=Path, help="where graphs go; by default a temporary folder")
    parser.add_argument("--keep", action="store_true", help="leave the graphs, for the next time")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--graph", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.graph:
        print(json.dumps(measure(options)))
        return
    result = summary([one_size(entries, options) for entries in options.entries], options)
    show(json.dumps(result, indent=2))
    if options.json:
        print(json.dumps(result))


def one_size(entries: int, options: argparse.Namespace) -> dict[str, Any]:
    """Generate a graph, measure in a process of its own, remove the graph."""
    folder = options.folder or Path(tempfile.mkdtemp(prefix="gamlp-scale-"))
    graph = folder / f"papers-{entries}-{options.features}"
    made = generate(graph, entries, options)
    if not made:
        as_if_just_made(graph)
    words = [f"--{name}={getattr(options, name)}" for name in ("features", "hops", "storage", "memory", "both")]
    command = [sys.executable, __file__, f"--graph={graph}", *words]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    answer["generate_seconds"] = made
    if not options.keep:
        shutil.rmtree(graph)
        if options.folder is None:
            shutil.rmtree(folder)
    show(json.dumps(answer))
    return answer


def generate(graph: Path, entries: int, options: argparse.Namespace) -> float:
    from gamlp.storage.sizes import parse_size
    from gamlp.synth.draw import shape_named
    from gamlp.synth.write import write_synth

    if graph.exists():
        return 0.0
    show(f"generating {entries:,} entries")
    start = time.perf_counter()
    nodes = max(1000, entries // ENTRIES_A_NODE)
    edges = int(entries / 2 * 1.09)  # a few are drawn twice, or lead from a node to itself
    shape = replace(shape_named("papers100M"), nodes=nodes, edges=edges, features=options.features)
    write_synth(graph, shape, memory=parse_size(options.memory))
    return time.perf_counter() - start


def as_if_just_made(graph: Path) -> None:
    """Bring a graph that was kept into the system's cache, and the others out of it, as after generating it."""
    for path in graph.parent.glob("papers-*/*.npy"):
        with path.open("rb", buffering=0) as file:
            if path.parent != graph:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while path.parent == graph and file.read(2**24):
                pass


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Propagate the graph of a folder, then measure the limit, and without a memory limit where the graph is small."""
    from gamlp.graph.store import load_graph
    from gamlp.propagate import Propagation
    from gamlp.propagate.budget import budget
    from gamlp.propagate.spec import Job
    from gamlp.storage.sizes import parse_size

    graph = load_graph(options.graph, verify=False)
    rows = np.sort(np.concatenate([graph.split.train, graph.split.valid, graph.split.test]))
    job = Job(graph.adjacency, graph.features, Propagation(options.hops, rows=rows, storage=options.storage))
    memory = parse_size(options.memory)
    widths = [block.stop - block.start for block in budget(job, memory).blocks]
    warm_up(options, widths)
    turns = next((turns for most, turns in TURNS.items() if graph.adjacency.entries <= most), 1)
    limits, in_memory = [limit_seconds(job, memory)] if turns == 1 else [], []
    base = resident("VmRSS:")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    disk = [within(job, options.graph.parent, memory)]
    peak = resident("VmHWM:")
    here = copied(job) if graph.adjacency.entries <= options.both else None
    for turn in range(turns):
        disk += [within(job, options.graph.parent, memory)] if turn else []
        limits.append(limit_seconds(job, memory))
        in_memory += [propagated(here)] if here else []
    seconds, limit = statistics.median(disk), statistics.median(limits)
    answer = {
        "entries": graph.adjacency.entries,
        "nodes": graph.nodes,
        "seconds": seconds,
        "peak_bytes": peak,
        "base_bytes": base,
        "gather_limit": limit / seconds,
        "limit_seconds": limit,
        "rows": len(rows),
        "blocks": widths,
    }
    if in_memory:
        answer["memory_seconds"] = statistics.median(in_memory)
    return answer


def within(job: Any, folder: Path, memory: int) -> float:
    """Return the seconds within a memory limit; the hops are written below `folder`, and removed."""
    from gamlp.propagate import LocalEngine

    tempfile.tempdir = str(folder)
    return timed(lambda: LocalEngine(memory=memory).propagate(job.adjacency, job.columns, job.spec))


def copied(job: Any) -> Any:
    """Return the same job with everything in memory."""
    from gamlp.graph.graph import Adjacency

    adjacency = Adjacency(np.array(job.adjacency.indptr), np.array(job.adjacency.indices))
    return replace(job, adjacency=adjacency, columns=np.array(job.columns))


def propagated(job: Any) -> float:
    """Return the seconds without a limit."""
    from gamlp.propagate import propagate

    return timed(lambda: propagate(job.adjacency, job.columns, job.spec))


def warm_up(options: argparse.Namespace, widths: list[int]) -> None:
    """Compile everything that is measured, on a graph of a few nodes."""
    from gamlp.graph.build.csr import adjacency_from_edges
    from gamlp.propagate import LocalEngine, Propagation

    tiny = adjacency_from_edges(np.array([0, 1]), np.array([1, 2]), nodes=3)
    spec = Propagation(2, rows=np.array([0]), storage=options.storage)  # the last hop has a kernel of its own
    for width in {*widths, options.features}:
        for memory in (None, 2**26):
            LocalEngine(memory=memory).propagate(tiny, np.ones((3, width), np.float32), spec)


def limit_seconds(job: Any, memory: int) -> float:
    """Return the seconds that reading the rows alone takes, for all blocks and hops; of the last, the wanted rows."""
    from gamlp.propagate.budget import budget
    from gamlp.propagate.kernels import padded
    from gamlp.storage.huge_pages import empty, prefaulted
    from gamlp.storage.threads import available, workers

    widths = [padded(block.stop - block.start) for block in budget(job, memory).blocks]
    total = 0.0
    with workers(available()) as run:
        for width in sorted(set(widths)):
            states = [prefaulted(empty((job.adjacency.nodes, width), job.spec.storage)) for _ in range(2)]
            passes = job.spec.hops - 1 + job.rows / job.adjacency.nodes
            total += widths.count(width) * passes * reading_once(job.adjacency, states, run)
            del states
    return total


def reading_once(adjacency: Any, states: list[np.ndarray], run: Any) -> float:
    """Return the seconds of the fastest loop over all entries, the mean of one pass over each state.

    The entries are brought to memory outside the clock. A hop reads what the hop before has written, and so never finds
    the rows that it has just read in the cache; nor does the loop, which goes from one state to the other.
    """
    from gamlp.storage.array_reader import ArrayReader
    from gamlp.storage.huge_pages import empty
    from gamlp.storage.threads import available, ranges
    from gather_limit import limits

    loops, source = limits(states[0]), ArrayReader(adjacency.indices)
    buffer = empty((min(2**25, adjacency.entries),), adjacency.indices.dtype)
    words = [x.view(np.int64) for x in states]
    chunks = ranges(adjacency.entries, 2**25)

    def read(loop: Any, state: np.ndarray, chunk: tuple[int, int]) -> float:
        part = source.rows(*chunk, buffer)
        pieces = ranges(len(part), -(-len(part) // (8 * available())))
        return timed(lambda: run([partial(loop, part, state, *piece) for piece in pieces]))

    for loop in loops.values():
        loop(np.zeros(1, buffer.dtype), words[0], 0, 1)  # compiles
    middle = chunks[len(chunks) // 2]
    fastest = min(loops.values(), key=lambda loop: min(read(loop, state, middle) for state in words))
    return sum(read(fastest, state, chunk) for state in words for chunk in chunks) / 2


def summary(runs: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    from gamlp.machine.facts import processor_name

    both = [run["memory_seconds"] / run["seconds"] for run in runs if "memory_seconds" in run]
    ratios: dict[str, float | None] = {
        "gather_limit_min": min(run["gather_limit"] for run in runs),
        "disk_vs_memory": min(both, default=None),
        "peak_vs_budget": max(run["peak_bytes"] for run in runs) / budget_of(options),
    }
    large = [run for run in runs if run["entries"] > 80_000_000]
    if len(large) > 1:
        first, last = large[0], large[-1]
        per_entry = [run["seconds"] / run["entries"] for run in (first, last)]
        of_limit = [run["limit_seconds"] / run["entries"] for run in (first, last)]
        ratios["growth_vs_limit"] = (per_entry[1] / per_entry[0]) / (of_limit[1] / of_limit[0])
    return {
        "runs": runs,
        "ratios": ratios,
        "features": options.features,
        "hops": options.hops,
        "storage": options.storage,
        "memory": options.memory,
        "machine": {
            "threads": len(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0],
            "kind": platform.platform(),
            "processor": processor_name(),
        },
    }


def budget_of(options: argparse.Namespace) -> int:
    from gamlp.storage.sizes import parse_size

    return parse_size(options.memory)


def timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def resident(what: str, process: int | str = "self") -> int:
    """Return a figure of a process's memory in bytes; zero once it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(status.split(what)[1].split()[0]) * 1024 if what in status else 0


def show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
