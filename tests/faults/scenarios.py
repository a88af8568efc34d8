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
    kept: str | None = None  # a cache to be copied beside, as place/cache
    work: str = ""  # the function whose calls are work that should not be lost: module:name
    every: int = 1  # of a slow command every so manieth fault is tried, in turns
    served: bool = False  # words are a batch of changes for a server that is started for it, not for the command line
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
    more = ",".join(["0.5"] * 20)
    (folder / "changed nodes.csv").write_text(f"op,{lines[0]}\nadd,new,a,train,{more}\nremove,n59,,,{',' * 19}\n")
    (folder / "changed edges.csv").write_text("source,target\nnew,n3\nnew,n7\nn1,n2\n")


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


def updating(graph: str | None = None) -> Callable[[Path], list[str]]:
    """Change a graph in its place, or a prepared one to another; what is kept of it comes along."""

    def words(place: Path) -> list[str]:
        inputs = place.parent / "inputs"
        where = [str(place / "out")] if graph is None else [str(place.parent / "prepared" / graph)]
        more = [] if graph is None else ["--out", str(place / "out")]
        tables = ["--edges", str(inputs / "changed edges.csv"), "--nodes", str(inputs / "changed nodes.csv")]
        return ["update", *where, *tables, "--cache", str(place / "cache"), *more, "--json"]

    return words


def batch(place: Path) -> list[str]:
    """Return what a server is started with, and the body of POST /changes."""
    nodes = [{"op": "add", "id": "new", **{f"x{at}": 0.5 for at in range(20)}}, {"op": "add", "id": "alone"}]
    nodes[1] |= {f"x{at}": -0.5 for at in range(20)}
    edges = [{"source": "new", "target": "n3"}, {"source": "n1", "target": "n2"}]
    run = str(place.parent / "prepared" / "run")
    return [run, str(place / "out"), str(place / "cache"), json.dumps({"nodes": nodes, "edges": edges})]


def serve(words: list[str]) -> dict[str, Any]:
    """Start a server without a socket, send it the batch, and ask for the node that it adds; ends as a command does."""
    import asyncio
    import io
    import traceback
    from contextlib import redirect_stderr

    import httpx

    from gamlp.cli.options import ComputeOptions
    from gamlp.cli.serve import opened
    from gamlp.errors import GamlpError
    from gamlp.serve.app import make_app
    from gamlp.serve.limits import Limits

    run, graph, cache, body = words

    async def asked() -> httpx.Response:
        app = make_app(opened(Path(run), None, None, ComputeOptions(cache=Path(cache)), Limits(), Path(graph)))
        async with app.router.lifespan_context(app):  # its threads end with it
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
            answer = await client.post("/changes", content=body, headers={"Content-Type": "application/json"})
            there = await client.get("/nodes/n3")
            assert there.status_code == 200, there.text  # whatever became of the batch, it answers
            if answer.status_code == 200:
                assert (await client.get("/nodes/new")).status_code == 200
            return answer

    err = io.StringIO()
    with redirect_stderr(err):
        try:
            answer = asyncio.run(asked())
            if answer.status_code == 200:
                return {"code": 0, "err": err.getvalue()}
            found = answer.json()
            return {"code": 3, "err": f"Error: {found['message']} {found['remedy']}"}
        except GamlpError as error:  # at the start
            return {"code": 3, "err": f"Error: {error}"}
        except BaseException:
            traceback.print_exc()
    return {"code": 1, "err": err.getvalue()}


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
    Scenario("update a graph in its place", updating(), "out", before="graph", kept="kept"),
    Scenario("update what is kept", updating("graph"), "cache", kept="kept"),
    Scenario("serve a batch of changes", batch, "out", before="graph", kept="kept", served=True, every=3),
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
    run(["propagate", str(ready / "graph"), "--method", "gamlp-jk", *settings("hops=2"),
         "--states", "--cache", str(ready / "kept")])  # fmt: skip


def begin(scenario: Scenario, place: Path) -> None:
    """Empty the place and put there what the scenario begins with."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if scenario.before:
        shutil.copytree(place.parent / "prepared" / scenario.before, place / "out")
    if scenario.kept:
        shutil.copytree(place.parent / "prepared" / scenario.kept, place / "cache")


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
