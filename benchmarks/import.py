"""How fast do edges become an adjacency on disk, beside scipy's build of the same edges in memory?

    python benchmarks/import.py --json                        100M edges from Parquet, within 2GiB and within 12GiB
    python benchmarks/import.py --edges 2000000 --nodes 60000     a quick look

Both sides read the same Parquet file; scipy ends with a symmetric CSR matrix in memory, gamlp with files on the disk
and their checksums. Every contender runs in a process of its own, so that its peak memory is its own; they take turns.
Ratios above 1 mean that gamlp is faster. The first run compiles, and is not counted.
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
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=100_000_000)
    parser.add_argument("--nodes", type=int, default=2_450_000)
    parser.add_argument("--limited", default="2GiB")
    parser.add_argument("--ample", default="12GiB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files go; by default a temporary folder")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        print(json.dumps(run_here(options.contender, options.folder, options.nodes)))
        return
    folder = Path(tempfile.mkdtemp(prefix="gamlp-import-", dir=options.folder))
    try:
        result = measure(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(json.dumps(result, indent=2))
    if options.json:
        print(json.dumps(result))


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    write_edges(folder / "edges.parquet", options.nodes, options.edges)
    contenders = {"scipy": "scipy", "limited": options.limited, "ample": options.ample}
    run_apart("1GiB", write_warm_up(folder / "warm"), 1000)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
    for turn in range(options.repeats):
        for name, contender in contenders.items():
            found[name].append(run_apart(contender, folder, options.nodes))
            show(f"round {turn + 1} of {options.repeats}: {name} {found[name][-1]}")
    if len({run["entries"] for runs in found.values() for run in runs}) != 1:
        raise SystemExit("gamlp and scipy disagree about the entries")
    if len({run["check"] for runs in found.values() for run in runs}) != 1:
        raise SystemExit("gamlp and scipy disagree about the adjacency")
    seconds = {name: statistics.median(run["seconds"] for run in runs) for name, runs in found.items()}
    return {
        "ratios": {f"scipy_{name}": seconds["scipy"] / seconds[name] for name in ("limited", "ample")},
        "seconds": seconds,
        "peak_bytes": {name: max(run["peak_bytes"] for run in runs) for name, runs in found.items()},
        "memory": {"limited": options.limited, "ample": options.ample},
        "sizes": {"nodes": options.nodes, "edges": options.edges, "entries": found["scipy"][0]["entries"]},
        "machine": {"threads": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0], "kind": platform.platform()},
    }


def write_edges(path: Path, nodes: int, edges: int, batch: int = 2**20) -> None:
    """Draw both ends with probability ∝ 1/√rank, shuffled over the ids, as in benchmarks/propagate.py."""
    import pyarrow as pa
    from pyarrow import parquet

    show(f"writing {edges:,} edges between {nodes:,} nodes")
    ids = np.random.default_rng(0).permutation(nodes)
    schema = pa.schema([("source", pa.int64()), ("target", pa.int64())])
    with parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, edges, batch):
            random = np.random.default_rng([1, first])
            count = min(batch, edges - first)
            ends = [ids[(nodes * random.random(count) ** 2).astype(np.int64)] for _ in range(2)]
            writer.write_table(pa.table(dict(zip(schema.names, ends, strict=True))), row_group_size=batch)


def write_warm_up(folder: Path) -> Path:
    folder.mkdir()
    write_edges(folder / "edges.parquet", 1000, 2**20 + 1)
    return folder


def run_apart(contender: str, folder: Path, nodes: int) -> dict[str, float]:
    """Run one contender in a process of its own."""
    command = [sys.executable, __file__, "--contender", contender, "--folder", str(folder), "--nodes", str(nodes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def run_here(contender: str, folder: Path, nodes: int) -> dict[str, Any]:
    edges = folder / "edges.parquet"
    if contender == "scipy":
        return by_scipy(edges, nodes)
    return by_gamlp(edges, nodes, folder / "adjacency", contender)


def by_scipy(edges: Path, nodes: int) -> dict[str, Any]:
    from pyarrow import parquet
    from scipy import sparse

    start = time.perf_counter()
    table = parquet.read_table(edges)
    source, target = (table.column(name).to_numpy().astype(np.int32) for name in ("source", "target"))
    del table
    keep = source != target
    if not keep.all():
        source, target = source[keep], target[keep]
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    matrix = sparse.coo_array((np.ones(len(ends[0]), np.float32), ends), shape=(nodes, nodes)).tocsr()
    matrix.sum_duplicates()
    matrix.sort_indices()
    seconds = time.perf_counter() - start
    return summary(seconds, matrix.indptr, matrix.indices)


def by_gamlp(edges: Path, nodes: int, out: Path, memory: str) -> dict[str, Any]:
    from gamlp.graph.build.external_csr import build_adjacency
    from gamlp.graph.build.ids import NodeIds
    from gamlp.graph.readers.edges import open_edges
    from gamlp.storage.files import digest
    from gamlp.storage.sizes import parse_size

    shutil.rmtree(out, ignore_errors=True)
    start = time.perf_counter()
    source = open_edges(edges).between(NodeIds(nodes), NodeIds(nodes))
    build_adjacency(out, source, nodes=nodes, memory=parse_size(memory))
    arrays = [np.load(out / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")]
    for array in arrays:
        digest(array)
    seconds = time.perf_counter() - start
    result = summary(seconds, *arrays)
    shutil.rmtree(out)
    return result


def summary(seconds: float, indptr: np.ndarray, indices: np.ndarray) -> dict[str, Any]:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    middle = len(indices) // 2
    check = int(np.asarray(indptr, dtype=np.int64).sum()) ^ int(indices[: 2**20].sum()) ^ int(indices[middle:].sum())
    return {"seconds": seconds, "entries": len(indices), "peak_bytes": peak, "check": check}


def show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
