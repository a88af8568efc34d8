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
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, create_model

from gamlp.errors import InputError, SettingsError, did_you_mean
from gamlp.graph.graph import Graph
from gamlp.machine.facts import reset_peak
from gamlp.methods import BASES, Method, method_named
from gamlp.pipeline import Pipeline
from gamlp.progress import log, progress
from gamlp.recipes.recipe import Published, load_recipe
from gamlp.runs.comparison_table import own_settings, write_tables
from gamlp.runs.record import FORMAT, SCORES, Count, Number, check_goes_on, check_version, read_kept
from gamlp.runs.record import USUAL as USUAL_METRIC
from gamlp.runs.run import hop_source_of, open_run, pipeline_of, train_run, unfinished
from gamlp.runs.spec import MethodName, RunSpec, Spec
from gamlp.storage.files import write_json
from gamlp.storage.locks import is_bare, locked
from gamlp.storage.validated import Validated

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
    "relations", "subsets", "subset_memory", "featureless", "embedding", "embedding_file", "structure",
)  # fmt: skip  # beside the hops


ROW_FIELDS: dict[str, Any] = {
    "method": (MethodName, ...), "metric": (str, USUAL_METRIC),
    **{name + end: (Number, None) for name in SCORES for end in ("", "_std")},
    "seconds": (float, ...), "parameters": (Count, ...), "peak_memory_bytes": (Number, ...),
    "published": (Number, ...), "published_std": (Number, ...),
    "own_settings": (str, ""),  # in which it differs from its base beside it, beyond what its name says
}  # fmt: skip  # of one method: shares from 0 to 1, the published ones too; seconds of training a seed
Row = create_model("Row", __base__=Validated, **ROW_FIELDS)


class ComparisonSpec(Spec):
    """Several methods on one graph over the same seeds."""

    command = ("compare", "methods")
    methods: Annotated[list[MethodName], Field(min_length=1)]
    settings: dict[MethodName, dict[str, Any]]  # of each method

    def run(self, name: str) -> RunSpec:
        """Return the specification of one method's run."""
        own = {"settings": self.settings[name], "overrides": overrides_for(method_named(name), self.overrides)}
        return RunSpec(**{**self.fields_of(Spec), **own, "method": name})


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


def comparison_for(
    graph: Graph,
    methods: Sequence[str],
    recipe: str = "default",
    overrides: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
    **where: Any,
) -> ComparisonSpec:
    """Resolve every setting of every method, and refuse what cannot be trained before anything is.

    An override KEY is for every method that has it and does not fix it, METHOD.KEY for one; `where`: see `RunSpec.of`.
    """
    found, values = [method_named(name) for name in methods], dict(overrides or {})
    check_overrides(found, values)
    specs = [RunSpec.of(graph, one.name, recipe, overrides_for(one, values), seeds, **where) for one in found]
    for one, other in combinations(specs, 2):
        if same_method(one, other):
            log.warning("%s and %s are the same here: every setting agrees.", one.method, other.method)
    settings = {spec.method: spec.settings for spec in specs}
    shared = {**specs[0].fields_of(Spec), "overrides": values}
    return ComparisonSpec(**shared, methods=list(settings), settings=settings)


def same_method(one: RunSpec, other: RunSpec) -> bool:
    """Say whether two names come to the same: what a network on hops does is all in its settings."""
    found = [method_named(spec.method) for spec in (one, other)]
    return one.settings == other.settings and (
        all(method.on_hops for method in found) or found[0].base == found[1].base
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
        own = {name: own_settings(name, record.settings) for name in record.methods}
        rows = [row(results[name], published.get(name, (None, None)), own[name]) for name in record.methods]
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
    taken = {}
    for wanted in ("", method.base, method.name):
        for key, value in overrides.items():
            owner, _, name = key.rpartition(".")
            if owner == wanted and (owner or method.takes(name)):
                taken[name] = value
    return taken


def check_overrides(methods: Sequence[Method], overrides: Mapping[str, Any]) -> None:
    """Refuse an override that none of the methods takes."""
    names = {name for method in methods for name in (method.base, method.name)}
    known = {name for method in methods for name in method.setting_names()}
    for key in overrides:
        owner = key.rpartition(".")[0]
        if owner and owner not in names:
            raise SettingsError(f"--set {key}: no such method is compared.\n{did_you_mean(owner, names)}")
        if not owner and key not in known:
            raise SettingsError(f"There is no setting '{key}'.\n{did_you_mean(key, known)}")
        if not owner and not any(method.takes(key) for method in methods):
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
    places = {name: (-of.get("hops", 0), of.get("combiner") != "smoothing") for name, of in spec.settings.items()}
    return [name for group in groups.values() for name in sorted(group, key=places.__getitem__)]


def prepared(graph: Graph, pipeline: Pipeline, seeds: Sequence[int], folder: Path) -> float:
    """Make the hops that a method is going to read, so that its own seconds are of training; return the seconds."""
    started = time.perf_counter()
    waiting = unfinished(seeds, folder)
    if pipeline.method.on_hops and waiting:
        pipeline.hops(graph, graph.split_for(waiting[0]))
    return time.perf_counter() - started


def open_comparison(graph: Graph, spec: ComparisonSpec, folder: Path) -> ComparisonRecord:
    """Begin comparison.json, or add to the one that is there: methods that are finished stay, and new ones follow.

    One that is neither finished nor asked for is left as it is, to be gone on with when it is named again.
    """
    fields = spec.fields_of(ComparisonSpec)
    if (folder / RECORD).exists():
        there = read_comparison(folder)
        check_version(there, folder)
        check_goes_on(there, spec, graph, folder, what="comparison", keys=("recipe", "seeds"))
        fields |= {name: getattr(there, name) | fields[name] for name in ("settings", "overrides")}
        wanted = (name for name in there.methods if name in spec.methods or not unfinished(spec.seeds, folder / name))
        fields["methods"] = list(dict.fromkeys([*wanted, *spec.methods]))
        fields["propagation_seconds"] = there.propagation_seconds
    elif folder.exists() and not is_bare(folder):
        raise InputError(f"{folder} is there and not a comparison.\nChoose a new folder with --out.")
    record = ComparisonRecord(**fields, format=FORMAT, dataset=graph.name)
    for name in record.methods:
        if (folder / name / "run.json").exists():
            open_run(graph, record.run(name), folder / name)
    write_json(folder / RECORD, record.model_dump(mode="json", exclude={"rows"}))
    return record


def read_comparison(folder: Path) -> ComparisonRecord:
    """Read comparison.json of a directory; a method's name is checked, for it is a folder's name as well."""
    missing = f"{folder} has no {RECORD}.\nName a folder that gamlp compare made."
    return read_kept(folder / RECORD, ComparisonRecord, missing)


def row(result: Mapping[str, Any], published: Published | tuple[None, None], changed: str) -> dict[str, Any]:
    """Return one method's line; what was published comes in %."""
    mean, std = (None if value is None else value / 100 for value in published)
    own = {"seconds": result["seconds_per_seed"], "published": mean, "published_std": std, "own_settings": changed}
    return {key: result.get(key) for key in Row.model_fields} | own
