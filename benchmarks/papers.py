"""One run of the command line at the shape of papers100M, or as much of it as the disk holds, beside its prediction.

    python benchmarks/papers.py --scale 0.7 --memory 12GiB --folder /somewhere/with/space --json > run.json 2> run.log

Generates the graph (unless it is there), asks `gamlp doctor` what propagation will cost, and runs `gamlp propagate`
with the recipe of ogbn-papers100M. The log has a line every ten seconds: resident memory of the process, in all and
without what is mapped, and the blocks that are finished. The whole shape needs about 100 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from scale import resident, show

EVERY = 10  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="times papers100M's nodes and edges")
    parser.add_argument("--memory", default="12GiB", help="of propagation")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    graph, hops = options.folder / f"papers-{options.scale}", options.folder / "hops"
    made = {}
    if not graph.exists():
        made = gamlp("synth", "papers100M", "--scale", options.scale, "--out", graph, "--memory", "8GiB")
    indptr = np.load(graph / "indptr.npy", mmap_mode="r")
    nodes, entries = len(indptr) - 1, int(indptr[-1])
    rows = sum(len(np.load(graph / f"{name}.npy", mmap_mode="r")) for name in ("train", "valid", "test"))
    shape = ["--nodes", nodes, "--entries", entries, "--features", 128, "--hops", 6, "--rows", rows]
    expected = gamlp("doctor", *shape, "--memory", options.memory)
    found = gamlp(
        *["propagate", graph, "--out", hops, "--recipe", "ogbn-papers100M", "--rows", "labelled"],
        *["--memory", options.memory],
        blocks=hops.with_name("hops.partial"),
    )
    shutil.rmtree(hops)
    result = {
        "scale": options.scale,
        "memory": options.memory,
        "nodes": nodes,
        "entries": entries,
        "rows": rows,
        "synth": made,
        "doctor": expected,
        "propagate": found,
        "machine": platform.platform(),
    }
    show(json.dumps(result, indent=2))
    if options.json:
        print(json.dumps(result))


def gamlp(*words: Any, blocks: Path | None = None) -> dict[str, Any]:
    """Run a command; return its result with the seconds and the largest memory that the process had."""
    command = [sys.executable, "-m", "gamlp", *map(str, words), "--json"]
    show("gamlp " + " ".join(command[3:]))
    start = time.perf_counter()
    most, shown = 0, 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            seconds, most = time.perf_counter() - start, max(most, resident("VmHWM:", process.pid))
            if seconds - shown >= EVERY:
                shown = seconds
                done = len(list(blocks.glob("block-*.npy"))) if blocks else 0
                memory, own = (resident(what, process.pid) for what in ("VmRSS:", "RssAnon:"))
                show(f"{seconds:8.0f} s  resident {memory:,}  own {own:,}  blocks {done}")
            time.sleep(0.2)
        output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        sys.exit(process.returncode)
    return {"seconds": time.perf_counter() - start, "peak_bytes": most, "result": json.loads(output)}


if __name__ == "__main__":
    main()
