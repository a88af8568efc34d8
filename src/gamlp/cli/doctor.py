"""gamlp doctor: what this machine can do, which extras are missing, and what a propagation would cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Option

from gamlp.cli.options import Answer
from gamlp.cli.screen import say, screen, table
from gamlp.errors import SettingsError

if TYPE_CHECKING:
    from gamlp.machine.cost import Cost


def doctor(
    *,
    nodes: Annotated[str | None, Option(help="Predict the cost of a graph with so many nodes.")] = None,
    entries: Annotated[str | None, Option(help="Its adjacency entries: twice its edges.")] = None,
    features: Annotated[str | None, Option(help="Its features.")] = None,
    hops: Annotated[str, Option(help="How many hops.")] = "6",
    rows: Annotated[str | None, Option(help="How many rows are kept; by default all.")] = None,
    storage: Annotated[str, Option(help="float32 or float16.")] = "float32",
    memory: Annotated[str, Option(help="What a block may use, as 8GiB.")] = "8GiB",
    machines: Annotated[int, Option(help="Machines like this one in a Ray cluster.", min=1)] = 1,
    folder: Annotated[Path, Option(help="Which disk to measure.")] = Path(),
) -> Answer:
    """Tell what this machine has and how fast it is, which extras are missing, and what a propagation would cost."""
    from gamlp.machine.cost import Work, predict
    from gamlp.machine.facts import extras, machine_facts
    from gamlp.machine.measure import measure
    from gamlp.storage.sizes import parse_size

    work = None
    limit = parse_size(memory)
    if storage not in ("float32", "float16"):
        raise SettingsError(f"--storage {storage}: there is no such storage.\nUse float32 or float16.")
    if nodes or entries or features:
        given = {"nodes": nodes, "entries": entries, "features": features, "hops": hops, "rows": rows or nodes}
        sizes: dict[str, Any] = {name: whole(name, value) for name, value in given.items()}
        work = Work(**sizes, storage=cast(Any, storage))
    if not folder.is_dir():
        raise SettingsError(f"--folder {folder}: there is no such folder.\nName one on the disk that will be used.")
    facts = machine_facts(folder.resolve())
    constants = measure(folder)
    ram = facts["memory_free_bytes"] or facts["memory_bytes"]
    costs = {} if work is None else predict(work, constants, memory=limit, machines=machines, ram=ram)
    found = {"machine": facts, "constants": asdict(constants), "extras": extras()}
    if work is not None:
        found |= {"work": asdict(work), "costs": {name: asdict(cost) for name, cost in costs.items()}}
    return found, lambda: show(found, costs)


def whole(name: str, text: str | None) -> int:
    """Read a size: 1000, 1_000 or 1e9."""
    try:
        value = int(float(str(text).replace("_", "").replace(",", "")))
    except (ValueError, OverflowError):
        value = -1
    if value < (0 if name == "hops" else 1):
        raise SettingsError(
            f"--{name} {text}: a whole number is missing.\nGive --nodes, --entries and --features together, as 1e9."
        )
    return value


def show(found: dict[str, Any], costs: dict[str, Cost]) -> None:
    """Print it for people."""
    from gamlp.storage.sizes import format_size

    machine, constants = found["machine"], found["constants"]
    gathers = (
        f"{1e-6 / one['seconds']:,.0f} M rows/s of {64 * one['lines']} bytes in {format_size(one['bytes'])}"
        for one in constants["gathers"]
    )
    lines = {
        "processor": f"{machine['processor']}, {machine['processors']} processors, {machine['threads']} threads",
        "vectors": f"{' '.join(machine['vectors']) or 'none'}; blocks of up to "
        f"{max(one['lines'] for one in constants['gathers'])} cache lines of float32",
        "memory": f"{format_size(machine['memory_bytes'] or 0)}, {format_size(machine['memory_free_bytes'] or 0)} free"
        f"; huge pages: {machine['huge_pages'] or 'unknown'}",
        "disk": f"{format_size(machine['disk_free_bytes'])} free below {machine['folder']}, "
        f"reads {constants['disk_read'] / 1e6:,.0f} MB/s, writes {constants['disk_write'] / 1e6:,.0f} MB/s",
        "gpus": ", ".join(machine["gpus"]) or "none",
        "gathers": "; ".join(gathers),
        "stream": f"{constants['stream'] / 1e9:,.1f} GB/s",
        "sgemm": f"{constants['sgemm'] / 1e9:,.0f} GFLOP/s",
        "checksum": f"{constants['checksum'] / 1e9:,.1f} GB/s",
    }
    for name, words in lines.items():
        say(f"{name:<10} {words}")
    for extra in found["extras"]:
        words = extra["installed"] or f"missing; for {extra['for']}: {extra['install']}"
        say(f"{'extra':<10} {extra['extra']}: {words}")
    if costs:
        made = table(
            f"Predicted for {constants['processor'] or 'this processor'}",
            ("engine", "time", "memory", "disk", "blocks", "at once"),
        )
        for cost in costs.values():
            sizes = format_size(cost.memory), format_size(cost.disk)
            made.add_row(cost.engine, duration(cost.seconds), *sizes, str(cost.blocks), str(cost.at_once))
        screen().print(made)


def duration(seconds: float) -> str:
    """Write seconds as people say them."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"
