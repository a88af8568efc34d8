"""What does a change of a graph cost beside propagating all of it again, and are the bits the same?

    python benchmarks/update.py FOLDER                                       200,000 nodes, 9 M entries
    python benchmarks/update.py FOLDER --nodes 2449029 --edges 61859140      the size of ogbn-products
    python benchmarks/update.py FOLDER --inside 0.99                         99 of 100 edges within communities of 200

The graph has the shape of ogbn-products (gamlp synth products): classes, skewed degrees, communities; it is made in
FOLDER, and found there again, as are its states.

For 1, 10, …, 100,000 edges, half of them added and half removed, drawn at random, what `gamlp update` does, disk to
disk: `update` is its time, with its parts; `rows` those with other bits, hop by hop, None where it chose to propagate
all. `whole` is the time to propagate the changed graph to disk, as `gamlp propagate --states` does; its bytes are
compared with what the update left. `cpu` is the processor time of this process and all its threads, `wall` is what a
clock saw.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.graph.build.changed_adjacency import some_rows
from gamlp.graph.build.changes import Changes, EdgeSet
from gamlp.graph.graph import Adjacency
from gamlp.graph.store import is_graph_folder, load_graph
from gamlp.propagate import LocalEngine, Normalization, Propagation
from gamlp.propagate import changed_states as changing
from gamlp.propagate.layers import Layers
from gamlp.propagate.states import PREFIX, States, keep_states
from gamlp.propagate.update import update_folder
from gamlp.synth.draw import shape_named
from gamlp.synth.write import write_synth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=5_000_000, help="drawn; an entry each way")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--inside", type=float, default=0.6, help="share of the edges within communities")
    parser.add_argument("--hops", type=int, default=3)
    parser.add_argument(
        "--r", type=float, default=0.0, help="of the normalisation; the states of r = 0 know no degrees"
    )
    parser.add_argument("--storage", default="float32")
    parser.add_argument("--most", type=int, default=100_000, help="changed edges, at most")
    parser.add_argument("--always", action="store_true", help="never propagate the whole instead: what would it cost?")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    if options.always:
        changing.MOST = np.inf
    place = drawn_graph(options)
    spec = Propagation(options.hops, Normalization(options.r), storage=options.storage)
    graph, cache = load_graph(place, newer=True), options.folder / "kept"
    base = keep_states(LocalEngine(cache=cache), graph.adjacency, graph.features, spec)
    counts = [10**power for power in range(6) if 10**power <= options.most]
    rows = [measure(place, graph.adjacency, base, cache, count) for count in counts]
    result = {"nodes": options.nodes, "entries": graph.adjacency.entries, **about(options), "changes": rows}
    if options.json:
        print(json.dumps(result))


def drawn_graph(options: argparse.Namespace) -> Path:
    """Return the folder of the graph, generated where it is not there yet."""
    sizes = {"nodes": options.nodes, "edges": options.edges, "features": options.features, "inside": options.inside}
    place = options.folder / "-".join(["products", *map(str, sizes.values())])
    if not is_graph_folder(place):
        show(f"drawing {options.edges:,} edges between {options.nodes:,} nodes")
        rest = {"same_class": (1 - options.inside) / 2}
        write_synth(place, replace(shape_named("products"), **sizes, **rest))
    return place


def measure(place: Path, adjacency: Adjacency, base: States, cache: Path, count: int) -> dict[str, Any]:
    """Change so many edges, and compare with the whole."""
    changes, out, own = drawn(adjacency, count), place.with_name("next"), cache.with_name("own")
    for old in (out, own, cache.with_name("fresh")):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(cache / f"{PREFIX}{base.key}", own / f"{PREFIX}{base.key}", copy_function=os.link)
    facts, update = timed(lambda: update_folder(place, lambda _: changes, LocalEngine(cache=own), out=out))
    new = load_graph(out, newer=True)

    def states(folder: str) -> States:
        return keep_states(LocalEngine(cache=cache.with_name(folder)), new.adjacency, new.features, base.spec)

    want, whole = timed(lambda: states("fresh"))
    got = states("own")
    rows = [len(rows) for rows in got.values.rows] if isinstance(got.values, Layers) else None
    share = None if rows is None else share_of(new.adjacency, got.values.rows[1:])
    steps = range(0, new.nodes, 2**15)
    same = all(got.values[at : at + 2**15].tobytes() == want.values[at : at + 2**15].tobytes() for at in steps)
    show(
        f"{count:>7,} edges: {update['wall']:6.2f} s ({update['cpu']:.2f} cpu) beside {whole['wall']:6.2f} s "
        f"({whole['cpu']:.2f} cpu), rows by hop {rows}, share {share}; same bits: {same}; {facts['seconds']}"
    )
    found = {"touched": facts["rows_touched"][0], "rows": rows, "share": share, "same_bits": same}
    return {"edges": count, **found, "update": update, "parts": facts["seconds"], "whole": whole}


def share_of(adjacency: Adjacency, rows: list[np.ndarray]) -> float:
    """Return the share of these rows in the work of all hops, as `changed_states.too_many` counts it."""
    counts = np.diff(adjacency.indptr) + 4
    return float(sum(counts[some].sum() for some in rows) / (len(rows) * counts.sum()))


def drawn(adjacency: Adjacency, count: int) -> Changes:
    """Draw edges to add, and edges of the graph to remove."""
    random, nodes = np.random.default_rng(count), adjacency.nodes
    source, target = random.integers(0, nodes, (2, count))
    key = np.unique(np.minimum(source, target) * nodes + np.maximum(source, target))
    starts, columns, _ = some_rows(adjacency, np.unique(key // nodes))
    there = np.repeat(np.unique(key // nodes), np.diff(starts)) * nodes + columns
    more = random.permutation(np.setdiff1d(key, there))[: max(1, count // 2)]
    places = np.unique(random.integers(0, adjacency.entries, 2 * count))
    row = np.searchsorted(adjacency.indptr, places, side="right") - 1
    column = np.asarray(adjacency.indices[places], np.int64)
    gone = random.permutation(np.unique(np.minimum(row, column) * nodes + np.maximum(row, column)))[: count - len(more)]
    return Changes(edges_added=EdgeSet(*ends(more, nodes)), edges_removed=EdgeSet(*ends(gone, nodes)))


def ends(keys: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of edges."""
    keys = keys[keys // nodes != keys % nodes]
    return keys // nodes, keys % nodes


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return what a call gives, its processor time, and its time by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    return found, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def about(options: argparse.Namespace) -> dict[str, Any]:
    """Say what was measured, and where."""
    asked = {name: getattr(options, name) for name in ("features", "inside", "hops", "r", "storage", "always")}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**asked, "machine": f"{os.cpu_count()} cores, {platform.machine()}", "peak_memory_bytes": memory}


def show(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
