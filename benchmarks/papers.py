"""The whole recipe of ogbn-papers100M by the command line, within a memory limit, beside what the cost model says.

    python benchmarks/papers.py --scale 0.005 --memory 1GiB --folder DIR --json                   a quick look
    python benchmarks/papers.py --scale 0.4 --memory 12GiB --storage float16 --folder DIR --json > run.json 2> run.log

A graph in the shape of papers100M, as much of it as `--scale` says, is written as OGB lays out the raw files
(`ogb_raw.py`), and then

    import → feature hops → train (four stages, label hops in each) → report → predict labelled → predict all

run as a user runs them. Of each step: seconds, processor seconds (others may use the machine at the same time), the
largest resident memory of the process, and the model's prediction. The log has a line every ten seconds. Epochs and the
width of the network are cut down by default, and are in the record: of these only the training and the passes of the
network depend, not the hops. All files are removed at the end, unless --keep.

What does not grow with the graph (starting Python, loading kernels) is measured: all steps run on a graph of SMALL
times papers100M first, and the model's prediction of a step is added to what it took there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from datetime import datetime
from math import ceil
from pathlib import Path
from typing import Any, Literal

from gamlp.errors import SettingsError
from gamlp.machine.cost import Constants, Gather, Work, check_seconds, limited
from gamlp.machine.training import LARGE_PASS, LARGE_STEP
from gamlp.storage.memory import FLOOR
from gamlp.storage.sizes import parse_size
from ogb_raw import write_raw
from scale import resident, show

EVERY = 10  # seconds
RECIPE = ("--recipe", "ogbn-papers100M")
FEATURES, CLASSES, HOPS, LABEL_HOPS = 128, 172, 6, 9
SMALL = 0.0001
TRAIN, CANDIDATES = 0.78, 0.22  # of the labelled rows, in the shape


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="times papers100M's nodes and edges")
    parser.add_argument("--memory", default="12GiB", help="of every step")
    parser.add_argument("--epochs", default="1,1,1,1", help="of the four stages; the recipe has 100,150,150,150")
    parser.add_argument("--hidden", type=int, default=256, help="the recipe has 1024")
    parser.add_argument("--storage", choices=("float32", "float16"), default="float32", help="of hops and states")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    folder = options.folder / f"papers-{options.scale}"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(folder)
    result = run(options, folder)
    show(json.dumps(result, indent=2))
    if not options.keep:
        shutil.rmtree(folder)
    if options.json:
        print(json.dumps(result))


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run all steps, on a small graph first, and put what the model says beside them."""
    _, small = measured(options, folder / "small", SMALL)
    fixed = {name: step["seconds"] for name, step in small.items()}
    doctor = gamlp("doctor", "--folder", folder)["result"]
    size, steps = measured(options, folder, options.scale)
    facts = steps["import"]["result"]
    predicted = predictions({**facts, **size}, doctor, steps["train"]["result"]["parameters"], fixed, options)
    for name, step in steps.items():
        step["fixed_seconds"], step["predicted_seconds"] = fixed[name], predicted.get(name)
        told = step.pop("result").items()
        step["command_result"] = {key: value for key, value in told if isinstance(value, int | float)}  # no paths
    asked = {name: getattr(options, name) for name in ("scale", "memory", "epochs", "hidden", "storage")}
    return {
        **asked, **size, "entries": facts["entries"], "limit_bytes": parse_size(options.memory), "steps": steps,
        "machine": {key: value for key, value in doctor["machine"].items() if key != "folder"},
        "constants": doctor["constants"],
    }  # fmt: skip


def measured(options: argparse.Namespace, folder: Path, scale: float) -> tuple[dict[str, int], dict[str, Any]]:
    """Run all steps on so much of papers100M; return the size of the graph, and what each step took and gave."""
    limit = ("--memory", options.memory)
    graph, hops, trained, log = (folder / name for name in ("graph", "hops", "run", "train.log"))
    size = write_raw(folder / "raw", scale)
    steps = {"import": gamlp("import", "ogbn-papers100M", "--root", folder / "raw", *limit, "--out", graph)}
    shutil.rmtree(folder / "raw")
    shape = (*RECIPE, *limit, "--cache", hops, "--set", f"storage={options.storage}")
    steps["feature hops"] = gamlp("propagate", graph, *shape)
    words = ("--seeds", 1, "--out", trained, "--verbose", "--log", log, "--set", f"epochs={options.epochs}")
    steps["train"] = gamlp("train", graph, *shape, *words, "--set", f"hidden={options.hidden}")
    steps["train"]["stage_ends"] = stage_ends(log)
    steps["report"] = gamlp("report", trained)
    out = ("--out", folder / "predictions.parquet")
    steps["predict labelled"] = gamlp("predict", trained, graph, *limit, "--cache", hops, *out)
    steps["predict all"] = gamlp("predict", trained, graph, "--rows", "all", *limit, *out, may_fail=True)
    return size, steps


def predictions(
    facts: dict[str, Any], doctor: dict[str, Any], parameters: int, fixed: dict[str, float], options: argparse.Namespace
) -> dict[str, float]:
    """Return what the cost model says of the steps that it knows; nothing where a block is less than a cache line."""
    constants = doctor["constants"]
    known = Constants(**{**constants, "gathers": tuple(Gather(**one) for one in constants["gathers"])})
    nodes, rows, ram = facts["nodes"], facts["rows"], doctor["machine"]["memory_free_bytes"]
    epochs, stages = sum(map(int, options.epochs.split(","))), options.epochs.count(",") + 1
    held = FLOOR * 2 // 3 + 24 * nodes + (20 * parameters + 16 * rows * CLASSES)

    def hops(features: int, count: int, wanted: int, keep: Literal["all", "last"] = "all") -> float:
        work = Work(nodes, facts["entries"], features, count, wanted, storage=options.storage, keep=keep)
        room = parse_size(options.memory) - held  # of the limit, what is left for a block
        return limited(work, known, memory=room, ram=ram).seconds

    graph = Work(nodes, facts["entries"], FEATURES, HOPS, rows, storage=options.storage)
    check = check_seconds(graph, known)
    operations = 6 * parameters * rows * (epochs * TRAIN + (epochs - int(options.epochs.split(",")[0])) * CANDIDATES)
    passes = 2 * parameters * rows * (stages + epochs * CANDIDATES / 2)  # all rows once a stage, valid once an epoch
    learning = operations / (LARGE_STEP * known.sgemm) + passes / (LARGE_PASS * known.sgemm)
    row = graph.item * ((HOPS + 1) * FEATURES + 2 * CLASSES)  # bytes on the disk (`methods.row_groups`)
    groups = ceil(nodes / ((doctor["machine"]["disk_free_bytes"] - graph.graph) // 2 // row))  # half of it is used
    with suppress(SettingsError):
        labels, some = hops(CLASSES, LABEL_HOPS, rows, "last"), ceil(nodes / groups)
        reliable = hops(FEATURES, HOPS, int(CANDIDATES * rows)) + (stages - 1) * labels
        group = hops(FEATURES, HOPS, some) + hops(CLASSES, LABEL_HOPS, some, "last")
        grows = {
            "feature hops": hops(FEATURES, HOPS, rows),
            "train": stages * labels + learning,
            "predict labelled": 0.0,  # the run has them
            "predict all": reliable + groups * group + 2 * nodes * parameters / (LARGE_PASS * known.sgemm),
        }
        return {name: fixed[name] + check + seconds for name, seconds in grows.items()}
    return {}


def stage_ends(log: Path) -> dict[str, str]:
    """Return when each stage ended, from the log of the training."""
    lines = log.read_text(encoding="utf-8").splitlines()
    times = [datetime.fromisoformat(line[:19]) for line in lines if re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line)]
    found = re.findall(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\S* \S+ (stage \d+): valid", "\n".join(lines), re.MULTILINE)
    return {name: str(datetime.fromisoformat(when) - times[0]) for when, name in found}


def gamlp(*words: Any, may_fail: bool = False) -> dict[str, Any]:
    """Run a command; return its result, seconds, processor seconds and the largest memory that the process had.

    One that may fail leaves its exit code in the record.
    """
    command = [sys.executable, "-m", "gamlp", *map(str, words), "--json"]
    show("gamlp " + " ".join(command[3:]))
    start, before = time.perf_counter(), os.times()
    most, shown = 0, 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            seconds, most = time.perf_counter() - start, max(most, resident("VmHWM:", process.pid))
            if seconds - shown >= EVERY:
                shown = seconds
                memory, own = (resident(what, process.pid) for what in ("VmRSS:", "RssAnon:"))
                show(f"{seconds:8.0f} s  resident {memory:,}  own {own:,}")
            time.sleep(0.1)
        output = process.stdout.read() if process.stdout else ""
    if process.returncode and not may_fail:
        sys.exit(process.returncode)
    after, taken = os.times(), time.perf_counter() - start
    used = after.children_user + after.children_system - before.children_user - before.children_system
    result = {"exit": process.returncode} if process.returncode else json.loads(output)
    step = {"seconds": taken, "cpu_seconds": used, "peak_bytes": most, "result": result}
    show(json.dumps({name: step[name] for name in ("seconds", "cpu_seconds", "peak_bytes")}))
    return step


if __name__ == "__main__":
    main()
