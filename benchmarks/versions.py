"""The default recipe of this version beside that of an earlier one: accuracy, and the processor's seconds.

    python benchmarks/versions.py --root DATA [--earlier c8bbda9] [--graphs cora,…] [--seeds 5] [--threads 1]

Each is the command `gamlp train GRAPH --root DATA --recipe default --seed S --seeds 1`, in a process of its own, with
the sources of the working tree and those of a commit (c8bbda9 is 0.1.0 as it stood before the pipeline was made one).
Both have the libraries of this environment. Seconds are those of the process and what it started, imports included.

Rows go to benchmarks/recorded/versions.json as they are finished: what is there is not run again.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from finished_rows import FinishedRows

HERE = Path(__file__).parent
RECORD = HERE / "recorded" / "versions.json"
GRAPHS = ("cora", "citeseer", "photo", "computers", "pubmed", "cs", "debian", "physics")
EARLIER = "c8bbda9"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--earlier", default=EARLIER, help="a commit")
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    with TemporaryDirectory() as place:
        packed = subprocess.run(
            ["git", "archive", asked.earlier, "src"], cwd=HERE.parent, capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(place, filter="data")
        sources = {"now": HERE.parent / "src", asked.earlier: Path(place) / "src"}
        finished = FinishedRows(RECORD, asked.threads)
        for graph, seed, version in product(asked.graphs.split(","), range(asked.seeds), sources):
            row = {"graph": graph, "seed": seed, "version": version}
            if not finished.known(row):
                finished.add(row | trained(graph, seed, sources[version], asked.root, asked.threads))


def trained(graph: str, seed: int, source: Path, root: Path, threads: int) -> dict[str, Any]:
    """Run the command on one version's sources; return scores in per cent and seconds."""
    number = str(threads)
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": number, "NUMBA_NUM_THREADS": number}
    with TemporaryDirectory() as place:
        command = [
            *(sys.executable, "-m", "gamlp", "train", graph, "--recipe", "default"),
            *(() if graph == "debian" else ("--root", str(root.resolve()))),  # which is in the package
            *("--seed", str(seed), "--seeds", "1", "--out", str(Path(place) / "run"), "--json"),
        ]
        before = spent()
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, cwd=place)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
        said = json.loads(done.stdout)
    scores = {part: 100 * said[f"{part}_accuracy"] for part in ("valid", "test")}
    return {**scores, "seconds": spent() - before}


def spent() -> float:
    """Return the processor's seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
