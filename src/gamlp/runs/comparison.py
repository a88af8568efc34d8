"""Several methods on one graph, over the same seeds and splits, in one directory.

    comparison.json             what was asked and, once all is done, one row a method
    comparison.md, .csv         the same rows as tables
    <method>/                   the run of each method (see gamlp.runs.run)

Hops are shared: methods that propagate alike run one after the other, those with most hops first, so the others read a
part of what is there. Every name, setting and optional dependency is checked before the first method trains. Finished
seeds and methods are read, not trained again, so an interrupted comparison is taken up from its directory, and a method
can be added to a finished one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gamlp.errors import InputError, MissingFileError, SettingsError, did_you_mean
from gamlp.graph.graph import Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.machine.peak_memory import reset_peak
from gamlp.methods import BASES, RELATIONAL, Method, method_named
from gamlp.progress import progress
from gamlp.recipes.recipe import Published, load_recipe
from gamlp.runs.comparison_table import write_tables
from gamlp.runs.run import Order, open_record, train_run
from gamlp.storage.files import read_json, write_json
from gamlp.train.one_seed import Task
from gamlp.train.prepare import Workshop

USUAL = (
    "mlp", "label-propagation", "sgc", "s2gc", "gbp", "sign", "sagn",
    "gamlp-smoothing", "gamlp-recursive", "gamlp-jk", "gamlp-jk+rlu",
)  # fmt: skip
USUAL_OF_TYPES = (
    "mlp", "label-propagation", "sign", "gamlp-recursive", "nars", "nars-sagn", "nars-sagn+sle",
    "nars-gamlp-smoothing", "nars-gamlp-recursive", "nars-gamlp-jk", "nars-gamlp-recursive+rlu",
)  # fmt: skip
RECORD = "comparison.json"
PROPAGATION = {
    "feature_scaling", "components", "normalization", "self_loops", "storage", "rows",
    "relations", "subsets", "subset_memory", "featureless", "embedding", "embedding_file",
}  # fmt: skip  # beside the hops


@dataclass(frozen=True)
class Comparison:
    """What is asked for; comparison.json keeps it, so that a comparison can be resumed and repeated."""

    methods: Sequence[str]
    recipe: str
    overrides: Mapping[str, Any]  # KEY: for every method that has it and does not fix it; METHOD.KEY: for one
    seeds: Sequence[int]
    device: str = "cpu"
    source: Mapping[str, Any] | None = None  # how the graph was read, for reading it again

    def order(self, name: str) -> Order:
        """Return the run of one method."""
        values = overrides_for(method_named(name), self.overrides)
        return Order(name, self.recipe, values, list(self.seeds), self.device, self.source)


def methods_named(text: str | None, graph: Graph | None = None) -> list[str]:
    """Read a list of names with commas; "all" is every method whose dependencies are there, None the usual ones.

    A heterogeneous graph has usual methods of its own.
    """
    of_types = isinstance(graph, HeteroGraph)
    usual = USUAL_OF_TYPES if of_types else USUAL
    if text is None:
        return list(usual)
    if text.strip() == "all":
        passing = [name for name in BASES if method_named(name).extra]
        others = [name for name in passing if (name in RELATIONAL) == of_types]
        return [*usual, *(others if find_spec("torch_geometric") else [])]
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise SettingsError("No method was named.\nWrite names with commas between, as gamlp-jk,sgc, or all.")
    return names


def compare(graph: Graph, comparison: Comparison, *, folder: Path, cache: Path | None = None) -> dict[str, Any]:
    """Train every method and return the rows, in the order of `comparison.methods`."""
    tasks = checked(graph, comparison, folder)
    record = open_comparison(graph, comparison, folder)
    workshop = Workshop(graph, cache=cache, device=comparison.device)
    workshop.keep = folder
    results = {}
    with progress("methods", total=len(tasks)) as advance:
        for name in running_order(tasks):
            advance(0, note=name)
            reset_peak()
            record["propagation_seconds"] += prepared(workshop, tasks[name], comparison.seeds, folder / name)
            results[name] = train_run(graph, comparison.order(name), folder=folder / name, workshop=workshop)
            write_json(folder / RECORD, record)
            advance(1)
    published = load_recipe(comparison.recipe).published
    record["rows"] = [row(results[name], published.get(name, (None, None))) for name in comparison.methods]
    write_tables(record, folder)
    write_json(folder / RECORD, record)
    keys = ("dataset", "seeds", "recipe", "propagation_seconds", "rows")
    return {**{key: record[key] for key in keys}, "out": str(folder)}


def checked(graph: Graph, comparison: Comparison, folder: Path) -> dict[str, Task]:
    """Settle every setting of every method, and refuse what cannot be trained before anything is."""
    methods = [method_named(name) for name in comparison.methods]
    check_overrides(methods, comparison.overrides)
    tasks = {}
    for method in methods:
        order = comparison.order(method.name)
        tasks[method.name] = task = order.task(graph)
        if (folder / method.name / "run.json").exists():
            open_record(graph, order, task, folder / method.name)
    return tasks


def overrides_for(method: Method, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides that one method takes: those for all, then those for its base, then for its own name."""
    common = {key: value for key, value in overrides.items() if "." not in key and takes(method, key)}
    for prefix in (method.base, method.name):
        common |= {key.removeprefix(f"{prefix}."): value for key, value in overrides.items() if owner(key) == prefix}
    return common


def owner(key: str) -> str:
    """Return METHOD of METHOD.KEY."""
    return key.rpartition(".")[0]


def takes(method: Method, key: str) -> bool:
    """Tell whether an override for all is one for this method: not where the method fixes the setting.

    An MLP stays without hops, SGC stays linear. What nobody knows is left for the settings to refuse.
    """
    return method.takes(key)


def check_overrides(methods: Sequence[Method], overrides: Mapping[str, Any]) -> None:
    """Refuse an override that none of the methods takes."""
    names = {name for method in methods for name in (method.base, method.name)}
    for key in overrides:
        if owner(key) and owner(key) not in names:
            raise SettingsError(f"--set {key}: no such method is compared.\n{did_you_mean(owner(key), names)}")
        known = {name for method in methods for name in method.setting_names()}
        if not owner(key) and key not in known:
            raise SettingsError(f"There is no setting '{key}'.\n{did_you_mean(key, known)}")
        if not owner(key) and not any(takes(method, key) for method in methods):
            raise SettingsError(
                f"None of the methods leaves '{key}' to be set.\n"
                "Their names fix it: leave it out, or name other methods."
            )


def running_order(tasks: Mapping[str, Task]) -> list[str]:
    """Return the names so that methods that propagate alike follow each other, those with most hops first."""
    groups: dict[object, list[str]] = {}
    for name, task in tasks.items():
        wanted = task.settings if task.method.kind == "network" else None
        alike = wanted and repr(wanted.model_dump(include=PROPAGATION))
        groups.setdefault(alike, []).append(name)

    def most_first(name: str) -> tuple[int, bool]:
        settings = tasks[name].settings
        return (-settings.hops, settings.combiner != "smoothing") if tasks[name].method.on_hops else (0, False)

    return [name for group in groups.values() for name in sorted(group, key=most_first)]


def prepared(workshop: Workshop, task: Task, seeds: Sequence[int], folder: Path) -> float:
    """Make the hops that a method is going to read, so that its own seconds are of training; return the seconds."""
    started = time.perf_counter()
    waiting = [seed for seed in seeds if not (folder / f"seed-{seed}" / "result.json").exists()]
    if task.method.kind == "network" and task.settings is not None and waiting:
        workshop.hops(task.settings, workshop.graph.split_for(waiting[0]))
    return time.perf_counter() - started


def open_comparison(graph: Graph, comparison: Comparison, folder: Path) -> dict[str, Any]:
    """Begin comparison.json; what an earlier one says of the propagation is kept."""
    record: dict[str, Any] = {
        "format": 1,
        "dataset": graph.name,
        **asdict(comparison),
        "propagation_seconds": 0.0,
    }
    if (folder / RECORD).exists():
        record["propagation_seconds"] = comparison_record(folder).get("propagation_seconds", 0.0)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there and not a comparison.\nChoose a new folder with --out.")
    write_json(folder / RECORD, record)
    return record


def comparison_record(folder: Path) -> dict[str, Any]:
    """Read comparison.json of a directory."""
    if not (folder / RECORD).exists():
        raise MissingFileError(f"{folder} has no {RECORD}.\nName a folder that gamlp compare made.")
    return dict(read_json(folder / RECORD))


def comparison_of(record: Mapping[str, Any]) -> Comparison:
    """Return what a comparison.json asked for."""
    names = ("methods", "recipe", "overrides", "seeds", "device", "source")
    return Comparison(**{name: record[name] for name in names})


def row(result: Mapping[str, Any], published: Published | tuple[None, None]) -> dict[str, Any]:
    """Return one method's line: shares from 0 to 1, the published ones too; seconds of training a seed."""
    keys = ("method", "valid_accuracy", "valid_accuracy_std", "test_accuracy", "test_accuracy_std")
    return {
        **{key: result[key] for key in keys},
        "seconds": result["seconds_per_seed"],
        "parameters": result["parameters"],
        "peak_memory_bytes": result["peak_memory_bytes"],
        "published": None if published[0] is None else published[0] / 100,
        "published_std": None if published[1] is None else published[1] / 100,
    }
