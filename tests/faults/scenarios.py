"""The commands that are disturbed, what each must give in the end, and what it may not do twice."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TIMES = {"seconds", "seconds_per_seed", "peak_memory_bytes", "run", "report", "machine", "checksum"}
SETTINGS = ("hidden=8", "hops=2", "head_layers=2", "label_layers=2", "learning_rate=0.01", "batch_size=64")


@dataclass(frozen=True)
class Scenario:
    """`words` are run in a folder that `before` filled; after a fault `again` is run, until the outcome stands."""

    name: str
    words: Callable[[Path], list[str]]
    outcome: str  # the folder or file that must be as if nothing had happened
    again: Callable[[Path], list[str]] | None = None
    before: str | None = None  # a folder of inputs to be copied beside, see `Inputs`
    work: str = ""  # the function whose calls are work that should not be lost: module:name
    every: int = 1  # of a slow command every so manieth fault is tried, in turns
    through_power: bool = True  # whether that holds for a power cut too; temporary files are not waited for


def write_inputs(folder: Path) -> None:
    """Write edge lists and node tables: 60 nodes with planted classes, words as ids; and 2,600 edges with weights."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True)
    labels = np.arange(60) % 3
    split = np.array(["train"] * 18 + ["valid"] * 18 + ["test"] * 24, dtype=object)[random.permutation(60)]
    values = np.eye(3)[labels] @ random.normal(size=(3, 20)) + random.normal(size=(60, 20))
    lines = ["id,label,split," + ",".join(f"x{at}" for at in range(20))]
    for node in range(60):
        words = ",".join(f"{value:.4f}" for value in values[node])
        lines.append(f"n{node},{'abc'[labels[node]]},{split[node]},{words}")
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    for name, count in (("edges", 150), ("many", 2600)):
        ends = random.integers(0, 60, (count, 2))
        same = random.random(count) < 0.8
        ends[same, 1] = ends[same, 1] // 3 * 3 + labels[ends[same, 0]]
        rows = [f"n{source},n{target},{1 + at % 7}" for at, (source, target) in enumerate(ends)]
        head = "source,target,weight" if name == "many" else "source,target"
        if name == "edges":
            rows = [row.rpartition(",")[0] for row in rows]
        (folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")


def settings(*more: str) -> list[str]:
    """Return --set for settings with which training takes no time."""
    return [word for one in (*SETTINGS, *more) for word in ("--set", one)]


def files(inputs: Path) -> list[str]:
    return [str(inputs / "edges.csv"), str(inputs / "nodes.csv")]


def train(place: Path) -> list[str]:
    graph = str(place.parent / "prepared" / "graph")
    words = ["train", graph, "--method", "gamlp-jk+rlu", "--seeds", "1", "--out", str(place / "out"), "--json"]
    return [*words, *settings("epochs=3,2", "threshold=0.4")]


def predict(place: Path) -> list[str]:
    return ["predict", str(place.parent / "prepared" / "run"), *files(place.parent / "inputs"),
            "--out", str(place / "out.parquet"), "--json"]  # fmt: skip


def propagate(*more: str) -> Callable[[Path], list[str]]:
    def words(place: Path) -> list[str]:
        wanted = [word.replace("OUT", str(place / "out")) for word in more]
        graph = str(place.parent / "prepared" / "graph")
        return ["propagate", graph, "--method", "gamlp-jk", *settings("hops=2"), "--json", *wanted]

    return words


def importing(*more: str, edges: str = "edges.csv") -> Callable[[Path], list[str]]:
    def words(place: Path) -> list[str]:
        inputs = place.parent / "inputs"
        return ["import", str(inputs / edges), str(inputs / "nodes.csv"), "--out", str(place / "out"), "--json", *more]

    return words


OLD_HOPS = ("--out", "OUT", "--overwrite")
SCENARIOS = [
    Scenario("import", importing(), "out"),
    Scenario("import over a graph", importing("--overwrite"), "out", before="old graph"),
    Scenario(
        "import within 64 KiB", importing("--memory", "64KiB", edges="many.csv"), "out",
        work="gamlp.graph.build.edge_chunks:ChunkWriter.write", through_power=False,
    ),
    Scenario("propagate in memory", propagate("--cache", "OUT"), "out"),
    Scenario("propagate over hops", propagate(*OLD_HOPS), "out", before="old hops"),
    Scenario(
        "propagate on disk", propagate("--out", "OUT", "--memory", "2.25MiB"), "out",
        work="gamlp.propagate.block:Block.compute", through_power=False,
    ),
    Scenario(
        "train", train, "out", again=lambda place: ["train", "--resume", str(place / "out"), "--json"],
        work="gamlp.train.stage:run_epoch", every=2,
    ),
    Scenario("predict", predict, "out.parquet"),
]  # fmt: skip


def prepare(base: Path, run: Callable[[list[str]], None]) -> None:
    """Make what scenarios start from: a graph, a trained run, an older graph and older hops."""
    write_inputs(base / "inputs")
    ready = base / "prepared"
    ready.mkdir()
    run(["import", *files(base / "inputs"), "--out", str(ready / "graph")])
    run(["train", str(ready / "graph"), "--method", "gamlp-jk", "--seeds", "1", "--out", str(ready / "run"),
         *settings("epochs=2")])  # fmt: skip
    run(["import", str(base / "inputs" / "many.csv"), str(base / "inputs" / "nodes.csv"),
         "--out", str(ready / "old graph")])  # fmt: skip
    run(["propagate", str(ready / "graph"), "--method", "gamlp-jk", *settings("hops=1"),
         "--out", str(ready / "old hops")])  # fmt: skip


def begin(scenario: Scenario, place: Path) -> None:
    """Empty the place and put there what the scenario begins with."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if scenario.before:
        shutil.copytree(place.parent / "prepared" / scenario.before, place / "out")


def digest(path: Path) -> str:
    """Return a hash of a file or of everything in a folder, but for times and the page made of them."""
    total = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        total.update(f"{file.relative_to(path.parent)}\0".encode())
        if file.is_file() and file.suffix == ".json":
            content = _timeless(json.loads(file.read_text()))
            if file.name == "checksums.json":  # a hash of the result, and so of the time it took
                content.pop("result")
            total.update(json.dumps(content).encode())
        elif file.name == "report.html":
            total.update(str(file.read_text().rstrip().endswith("</html>")).encode())
        elif file.is_file():
            total.update(file.read_bytes())
    return total.hexdigest()


def _timeless(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _timeless(value) for key, value in content.items() if key not in TIMES}
    return [_timeless(value) for value in content] if isinstance(content, list) else content


def watch(work: str, log: Path) -> None:
    """Add a line to `log` for every call of the function that does a scenario's work: what it worked on."""
    import importlib

    module_name, _, path = work.partition(":")
    owner: Any = importlib.import_module(module_name)
    *above, name = path.split(".")
    for part in above:
        owner = getattr(owner, part)
    plain, sink = getattr(owner, name), os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    write = os.write

    def watched(*words: Any, **options: Any) -> Any:
        done = plain(*words, **options)
        what = options.get("key") or next(word for word in words if isinstance(word, int | slice))
        write(sink, f"{what}\n".encode())
        return done

    setattr(owner, name, watched)


def restart() -> None:
    """Let this process find that the machine was started anew."""
    import sys

    for name, module in list(sys.modules.items()):
        if name.startswith("gamlp.") and hasattr(module, "boot"):
            module.boot = lambda: "another time"
