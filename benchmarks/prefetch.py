"""How far ahead should a hop ask for the rows that it will add, and how wide should its blocks be, on this processor?

    python benchmarks/prefetch.py --json                                        rows at random
    python benchmarks/prefetch.py --graph DIR --columns 16 64 112 --json        the rows of a graph

The kernel that propagates is compiled with other distances (`kernels.prefetch_distances`) and for rows of 8 to 128
columns, 32 to 512 bytes, and reads rows from a state, at random from 256 MiB of it, on one thread. Nanoseconds of the
processor for an entry, the least of some turns, as others may use the machine at the same time. Tells whether the
distances, which were chosen on one processor, suit another; `gamlp doctor` measures the widths themselves.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numba
import numpy as np

from gamlp.graph.store import load_graph
from gamlp.machine.facts import processor_name
from gamlp.propagate import kernels
from gamlp.propagate.chunks import LONGEST
from gamlp.storage.huge_pages import empty

DISTANCES = ((), (8,), (16,), (32,), (64,), (128,), (64, 16), (64, 24, 8), (128, 32), (256, 64))
DEGREE, ROWS, STATE = 32, 40_000, 2**28


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="+", default=[8, 16, 32, 64, 128])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--graph", type=Path, help="a graph directory")
    options = parser.parse_args()
    found = {width: of_width(width, options.repeats, options.graph) for width in options.columns}
    used = {width: kernels.prefetch_distances(4 * width) for width in options.columns}
    result = {"processor": processor_name(), "widest": kernels.widest_block(), "used": used, "nanoseconds": found}
    print(json.dumps(result) if options.json else json.dumps(result, indent=2))


def of_width(width: int, repeats: int, graph: Path | None) -> dict[str, float]:
    """Return nanoseconds an entry for each list of distances, all of them in turn."""
    offsets, indices, nodes = at_random(width) if graph is None else of_graph(graph)
    rows = len(offsets) - 1
    x, out = empty((nodes, width), np.float32), empty((rows, width), np.float32)
    x[:] = 1
    chunk = (0, 0, offsets, indices, None, np.ones(rows, np.float32))
    loops = {distances: compiled() for distances in DISTANCES}
    seconds: dict[Any, list[float]] = {distances: [] for distances in DISTANCES}
    for turn in range(repeats + 1):  # the first compiles
        for distances, loop in loops.items():
            with compiled_with(distances):
                began = time.process_time()
                loop(chunk, x, False, out, LONGEST, 0, rows, kernels.quads(width))
                seconds[distances] += [time.process_time() - began] if turn else []
    return {str(distances): 1e9 * min(some) / len(indices) for distances, some in seconds.items()}


def at_random(width: int) -> tuple[Any, Any, int]:
    """Return offsets, ids and the number of nodes of rows with neighbours anywhere in a state of STATE bytes."""
    nodes = STATE // (4 * width)
    return np.arange(ROWS + 1) * DEGREE, np.random.default_rng(0).integers(0, nodes, ROWS * DEGREE, np.int32), nodes


def of_graph(folder: Path) -> tuple[Any, Any, int]:
    """Return those of a graph directory."""
    adjacency = load_graph(folder, verify=False).adjacency
    return np.array(adjacency.indptr), np.array(adjacency.indices), adjacency.nodes


def compiled() -> Any:
    """Return the kernel as it is compiled anew, not from the cache."""
    return numba.njit(nogil=True)(kernels.sum_rows.py_func)  # type: ignore[attr-defined]


def compiled_with(distances: tuple[int, ...]) -> Any:
    """Let the kernels ask so many entries ahead."""
    return mock.patch.object(kernels, "prefetch_distances", lambda _: distances)


if __name__ == "__main__":
    main()
