"""Batches from hops that lie on disk: how fast they are read in runs of rows, and what that does to accuracy.

    python benchmarks/mmap_batches.py --json

Speed: the first batches of an epoch from a file that the system was asked to forget, through the map and by reads, for
runs of 1, 4, 16 and 64 rows. Few batches of a large file: what is read is not asked for again, as with a file that is
far larger than memory. Accuracy: gamlp-jk on the built-in graph with each, over some seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.train.batches import batches
from gamlp.train.inputs import MappedRows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the file; 0 leaves the speed out")
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--hops", type=int, default=6)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--batches", type=int, default=3, help="of 5,000 rows")
    parser.add_argument("--seeds", type=int, default=3, help="of the accuracy; 0 leaves it out")
    parser.add_argument("--folder", type=Path, help="which disk")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    result: dict[str, Any] = {}
    if options.rows:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            result["speed"] = speeds(options, Path(folder))
    if options.seeds:
        result["accuracy"] = {str(run): accuracy(run, options.seeds) for run in options.runs}
    print(json.dumps(result, indent=None if options.json else 2))


def speeds(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    path = folder / "values.npy"
    shape = (options.rows, options.hops + 1, options.features)
    values = np.lib.format.open_memmap(path, "w+", np.float16, shape)
    random = np.random.default_rng(0)
    for first in range(0, options.rows, 10_000):
        part = values[first : first + 10_000]
        part[...] = random.standard_normal(part.shape, dtype=np.float32)
    values.flush()
    del values, part  # what is mapped cannot be forgotten
    ids = np.arange(options.rows)
    found = []
    for run in options.runs:
        for how in ("map", "reads"):
            forget(path)
            mapped = np.load(path, mmap_mode="r")
            take = (
                MappedRows(mapped, shape[1]).take if how == "reads" else lambda rows, m=mapped: np.take(m, rows, axis=0)
            )
            wanted = [parts[0] for parts in islice(batches([ids], 5000, key=[0, 0, 0], run=run), options.batches)]
            started, before = time.perf_counter(), bytes_read()
            count = sum(len(take(rows)) for rows in wanted)
            seconds, read = time.perf_counter() - started, bytes_read() - before
            del mapped, take
            found.append({"run": run, "how": how, "rows_a_second": count / seconds, "bytes_a_row": read / count})
            print(f"runs of {run:3} by {how:6} {count / seconds:10,.0f} rows/s {read / count:10,.0f} bytes a row",
                  file=sys.stderr)  # fmt: skip
    return found


def bytes_read() -> int:
    """Return what this process has had read from the disk."""
    found = Path("/proc/self/io")
    return int(found.read_text().split("read_bytes:")[1].split()[0]) if found.exists() else 0


def forget(path: Path) -> None:
    """Ask the system to drop the file from its cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def accuracy(run: int, seeds: int) -> dict[str, Any]:
    from gamlp.graph.readers.datasets import read_graph
    from gamlp.runs.run import train_run
    from gamlp.runs.spec import RunSpec

    graph = read_graph(["debian"], root=Path("data"))
    changes = {
        "shuffle_runs": run,
        "batch_size": 1000,
        "epochs": [20],
        "hidden": 64,
        "evaluate_every": 4,
        "labels": False,
    }
    result = train_run(graph, RunSpec.of(graph, "gamlp-jk", "debian", changes, range(seeds)), folder=None)
    print(
        f"runs of {run:3}: test {result['test_accuracy']:.4f} ± {result['test_accuracy_std'] or 0:.4f}", file=sys.stderr
    )
    return {key: result[key] for key in ("valid_accuracy", "test_accuracy", "test_accuracy_std")}


if __name__ == "__main__":
    main()
