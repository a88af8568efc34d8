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
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from gamlp.errors import InputError, MissingFileError, SettingsError, StorageError, did_you_mean
from gamlp.graph.graph import Graph
from gamlp.graph.readers.source import GraphSource
from gamlp.machine.facts import reset_peak
from gamlp.methods import BASES, Method, method_named
from gamlp.pipeline import Pipeline
from gamlp.progress import progress
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.recipes.recipe import Published, load_recipe
from gamlp.runs.comparison_table import write_tables
from gamlp.runs.record import FORMAT, Described, Number, check_can_go_on, in_this_format, parsed
from gamlp.runs.run import hop_source_of, open_run, pipeline_of, train_run
from gamlp.runs.spec import MethodName, RunSpec, Spec, check_same_graph
from gamlp.storage.files import read_json, write_json
from gamlp.storage.locks import is_bare, locked

USUAL = (
    "mlp", "label-propagation", "sgc", "s2gc", "gbp", "sign", "sagn",
    "gamlp-smoothing", "gamlp-recursive", "gamlp-jk", "gamlp-jk+rlu",
)  # fmt: skip
USUAL_OF_TYPES = (
    "mlp", "label-propagation", "sign", "gamlp-recursive", "nars", "nars-sagn", "nars-sagn+sle",
    "nars-gamlp-smoothing", "nars-gamlp-recursive", "nars-gamlp-jk", "nars-gamlp-recursive+rlu",
)  # fmt: skip
RECORD = "comparison.json"
PROPAGATION = (
    "feature_scaling", "components", "normalization", "self_loops", "storage", "rows",
    "relations", "subsets", "subset_memory", "featureless", "embedding", "embedding_file",
)  # fmt: skip  # beside the hops


class Row(Described):
    """One method's line: shares from 0 to 1, the published ones too; seconds of training a seed."""

    method: MethodName
    valid_accuracy: Number
    valid_accuracy_std: Number
    test_accuracy: Number
    test_accuracy_std: Number
    seconds: float
    parameters: Annotated[int, Field(ge=0)]
    peak_memory_bytes: Number
    published: Number
    published_std: Number


class ComparisonSpec(Spec):
    """Several methods on one graph over the same seeds."""

    methods: Annotated[list[MethodName], Field(min_length=1)]
    settings: dict[MethodName, dict[str, Any]]  # of each method

    def run(self, name: str) -> RunSpec:
        """Return the specification of one method's run."""
        shared = {field: getattr(self, field) for field in Spec.model_fields}
        overrides = overrides_for(method_named(name), self.overrides)
        return RunSpec(**{**shared, "method": name, "settings": self.settings[name], "overrides": overrides})

    def own_words(self) -> list[str]:
        """Return the words of the command that only comparisons have."""
        return ["compare", "--methods", ",".join(self.methods)]


class ComparisonRecord(ComparisonSpec):
    """comparison.json."""

    format: int
    dataset: str
    propagation_seconds: float = 0.0
    rows: list[Row] | None = None  # None until all is done


def methods_named(text: str | None, graph: Graph | None = None) -> list[str]:
    """Read a list of names with commas; "all" is every method whose dependencies are there, None the usual ones.

    A heterogeneous graph has usual methods of its own.
    """
    of_types = graph is not None and graph.targets is not None
    usual = USUAL_OF_TYPES if of_types else USUAL
    if text is None:
        return list(usual)
    if text.strip() == "all":
        passing = [method for method in map(method_named, BASES) if method.extra]
        others = [method.name for method in passing if method.needs_relations == of_types]
        return [*usual, *(others if find_spec("torch_geometric") else [])]
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise SettingsError("No method was named.\nWrite names with commas between, as gamlp-jk,sgc, or all.")
    return names


def check_names(methods: Sequence[str], recipe: str) -> None:
    """Refuse names that nobody has."""
    load_recipe(recipe)
    for name in methods:
        method_named(name)


def comparison_for(
    graph: Graph,
    methods: Sequence[str],
    recipe: str = "default",
    overrides: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
    *,
    engine: EngineChoice = EngineChoice(),  # noqa: B008 — frozen
    device: str = "cpu",
    source: GraphSource | None = None,
) -> ComparisonSpec:
    """Resolve every setting of every method, and refuse what cannot be trained before anything is.

    An override KEY is for every method that has it and does not fix it, METHOD.KEY for one.
    """
    found, values = [method_named(name) for name in methods], dict(overrides or {})
    check_overrides(found, values)
    shared: dict[str, Any] = {"seeds": seeds, "engine": engine, "device": device, "source": source}
    specs = {one.name: RunSpec.of(graph, one.name, recipe, overrides_for(one, values), **shared) for one in found}
    first = next(iter(specs.values()))
    return ComparisonSpec(
        **{name: getattr(first, name) for name in Spec.model_fields if name != "overrides"},
        overrides=values,
        methods=list(specs),
        settings={name: spec.settings for name, spec in specs.items()},
    )


def compare(graph: Graph, spec: ComparisonSpec, *, folder: Path) -> dict[str, Any]:
    """Train every method and return the rows; methods that an earlier comparison left in the folder keep theirs."""
    with locked(folder):
        record = open_comparison(graph, spec, folder)
        source = hop_source_of(spec, folder)
        results = {}
        with progress("methods", total=len(record.methods)) as advance:
            for name in running_order(record):
                advance(0, note=name)
                reset_peak()
                seconds = prepared(graph, pipeline_of(record.run(name), source), record.seeds, folder / name)
                record = record.model_copy(update={"propagation_seconds": record.propagation_seconds + seconds})
                results[name] = train_run(graph, record.run(name), folder=folder / name, source=source)
                advance(1)
        published = published_in(record.recipe)
        rows = [row(results[name], published.get(name, (None, None))) for name in record.methods]
        whole = record.model_dump(mode="json") | {"rows": rows}
        write_tables(whole, folder)
        write_json(folder / RECORD, whole)
    keys = ("dataset", "seeds", "recipe", "propagation_seconds", "rows")
    return {**{key: whole[key] for key in keys}, "out": str(folder)}


def published_in(recipe: str) -> Mapping[str, Published]:
    """Return what was published with a recipe; nothing where its file has gone since."""
    try:
        return load_recipe(recipe).published
    except InputError:
        return {}


def overrides_for(method: Method, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides that one method takes: those for all, then those for its base, then for its own name."""
    common = {key: value for key, value in overrides.items() if "." not in key and method.takes(key)}
    for prefix in (method.base, method.name):
        common |= {key.removeprefix(f"{prefix}."): value for key, value in overrides.items() if owner(key) == prefix}
    return common


def owner(key: str) -> str:
    """Return METHOD of METHOD.KEY."""
    return key.rpartition(".")[0]


def check_overrides(methods: Sequence[Method], overrides: Mapping[str, Any]) -> None:
    """Refuse an override that none of the methods takes."""
    names = {name for method in methods for name in (method.base, method.name)}
    for key in overrides:
        if owner(key) and owner(key) not in names:
            raise SettingsError(f"--set {key}: no such method is compared.\n{did_you_mean(owner(key), names)}")
        known = {name for method in methods for name in method.setting_names()}
        if not owner(key) and key not in known:
            raise SettingsError(f"There is no setting '{key}'.\n{did_you_mean(key, known)}")
        if not owner(key) and not any(method.takes(key) for method in methods):
            raise SettingsError(
                f"None of the methods leaves '{key}' to be set.\n"
                "Their names fix it: leave it out, or name other methods."
            )


def running_order(spec: ComparisonSpec) -> list[str]:
    """Return the names so that methods that propagate alike follow each other, those with most hops first."""
    groups: dict[str, list[str]] = {}
    for name in spec.methods:
        wanted = spec.settings[name] if method_named(name).on_hops else {}
        groups.setdefault(repr({key: wanted.get(key) for key in PROPAGATION}), []).append(name)

    def most_first(name: str) -> tuple[int, bool]:
        settings = spec.settings[name]
        return -settings.get("hops", 0), settings.get("combiner") != "smoothing"

    return [name for group in groups.values() for name in sorted(group, key=most_first)]


def prepared(graph: Graph, pipeline: Pipeline, seeds: Sequence[int], folder: Path) -> float:
    """Make the hops that a method is going to read, so that its own seconds are of training; return the seconds."""
    started = time.perf_counter()
    waiting = [seed for seed in seeds if not (folder / f"seed-{seed}" / "result.json").exists()]
    if pipeline.method.on_hops and waiting:
        pipeline.hops(graph, graph.split_for(waiting[0]))
    return time.perf_counter() - started


def open_comparison(graph: Graph, spec: ComparisonSpec, folder: Path) -> ComparisonRecord:
    """Begin comparison.json, or add to the one that is there: its methods stay, and those that are new follow."""
    asked = {name: getattr(spec, name) for name in ComparisonSpec.model_fields}
    record = ComparisonRecord(**asked, format=FORMAT, dataset=graph.name)
    if (folder / RECORD).exists():
        there = read_comparison(folder)
        check_can_go_on(there, folder)
        differing = [key for key in ("recipe", "seeds") if getattr(there, key) != getattr(spec, key)]
        if differing:
            raise StorageError(
                f"{folder} holds another comparison, of other {', '.join(differing)}.\n"
                f"Go on with it by --resume {folder}, or choose another --out."
            )
        check_same_graph(there, graph)
        record = record.model_copy(
            update={
                "methods": list(dict.fromkeys([*there.methods, *spec.methods])),
                "settings": {**there.settings, **spec.settings},
                "overrides": {**there.overrides, **spec.overrides},
                "propagation_seconds": there.propagation_seconds,
            }
        )
    elif folder.exists() and not is_bare(folder):
        raise InputError(f"{folder} is there and not a comparison.\nChoose a new folder with --out.")
    for name in record.methods:
        if (folder / name / "run.json").exists():
            open_run(graph, record.run(name), folder / name)
    write_json(folder / RECORD, record.model_dump(mode="json", exclude={"rows"}))
    return record


def read_comparison(folder: Path) -> ComparisonRecord:
    """Read comparison.json of a directory; a method's name is checked, for it is a folder's name as well."""
    path = folder / RECORD
    if not path.is_file():
        raise MissingFileError(f"{folder} has no {RECORD}.\nName a folder that gamlp compare made.")
    return parsed(in_this_format(read_json(path), path), ComparisonRecord, path)


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
