"""From options to work: the graph is read, and a specification made for it or taken up again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gamlp.cli.options import LARGEST_SEED, ComputeOptions, GraphOptions, overrides, refuse
from gamlp.cli.screen import duration, note
from gamlp.errors import FormatError, SettingsError
from gamlp.progress import NOTICE, log, progress

if TYPE_CHECKING:
    from gamlp.graph.encode import Columns
    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.source import GraphSource
    from gamlp.runs.spec import RunSpec, Spec

TOLD = ("json", "quiet", "verbose", "log")  # options of what is told, which change no result
Kept = TypeVar("Kept", bound="Spec")


def new_spec(
    graph: GraphOptions, compute: ComputeOptions, recipe: str | None, method: str | None, **asked: Any
) -> tuple[Graph, RunSpec]:
    """Read the graph and resolve every setting for it; impossible ones are refused before anything is written."""
    from gamlp.runs.spec import RunSpec

    read, shared = read_graph(graph, compute, recipe, [method] if method else [])
    spec = RunSpec.of(read, method, **asked, **shared)
    doubt(read, spec.method, spec.settings, spec.seeds[0])
    return read, spec


def doubt(graph: Graph, method: str, settings: dict[str, Any], seed: int) -> None:
    """Tell where the accuracy is to choose, and nearly all of the training labels are alike."""
    from gamlp.methods import method_named
    from gamlp.targets.registry import kind_of

    labels, chosen = graph.labels[graph.split_for(seed).train], method_named(method).settings_from(settings)
    if words := kind_of(labels).doubt(labels, graph.classes, chosen):
        note(words)


def read_graph(
    graph: GraphOptions, compute: ComputeOptions, recipe: str | None, methods: Sequence[str]
) -> tuple[Graph, dict[str, Any]]:
    """Read a graph, and return what a specification has from options; a wrong name is told before a large one is read.

    Without a recipe, it is that of a known data set, else the one that adapts itself.
    """
    from gamlp.methods import method_named
    from gamlp.recipes.recipe import load_recipe, usual_recipe

    source, engine = graph.source(), compute.choice()
    recipe = recipe or usual_recipe(source.what)
    own = load_recipe(recipe).method
    for name in methods or [own]:
        method_named(name)
    shared = {"recipe": recipe, "engine": engine, "device": compute.device, "source": source}
    return read_source(source, engine.memory), shared


def taken_up(
    place: Path, read: Callable[[Path], Kept], *, what: str = "A run goes on as it was begun", but: Sequence[str] = ()
) -> tuple[Graph, Kept]:
    """Return the graph and the specification of --resume, beside which nothing else is said."""
    refuse(f"{{option}} was given beside --resume.\n{what}: leave it out.", but=("resume", *TOLD, *but))
    spec = read(place)
    return as_begun(read_source(spec.source, spec.engine.memory), spec), spec


def as_begun(graph: Graph, spec: Spec) -> Graph:
    """Return the graph as a run that began with another knows it, where columns or classes had another order."""
    start = getattr(spec, "start", None)
    if start is None or dict(graph.fingerprints) == spec.fingerprints:
        return graph
    from gamlp.runs.start import as_known, start_of

    return as_known(graph, start_of(start, spec.seeds[0]))


def begun_with(
    run: Path, graph: GraphOptions, compute: ComputeOptions, set_: list[str] | None
) -> tuple[Graph, RunSpec]:
    """Return the graph and the specification of --from: those of a run, on its graph as it is now or on another."""
    from gamlp.cli.new_nodes import another_source, finished_model
    from gamlp.runs.start import spec_from

    own = ("method", "recipe", "seed", "seeds", "minutes")
    refuse("{option} was given beside --from.\nThe run says it: leave it out, or train anew, without --from.", only=own)
    record, engine = finished_model(run, None)[0], compute.choice()
    source = another_source(graph, record) if graph.what else record.source
    read = read_source(source, engine.memory)
    where: dict[str, Any] = {"engine": engine, "device": compute.device, "source": source}
    return spec_from(run, record, read, overrides=overrides(set_), **where)


def read_source(
    source: GraphSource | None, memory: int | None = None, encoding: Mapping[str, Columns] | None = None
) -> Graph:
    """Read the graph that a source names, perhaps within so much memory, and tell what its reader has to say.

    Its columns become features as a model's `encoding` says, or as they teach themselves.
    """
    if source is None:
        raise FormatError("The run does not say how its graph is read: it came from Python.\nName the graph as well.")
    with progress(f"read {source.title}"):
        graph = source.read(encoding, memory=memory)
    for text in getattr(graph, "notes", ()):
        note(text)
    return graph


def announce(graph: Graph, spec: RunSpec, *, named: bool) -> None:
    """Tell in one line what was read, which method was chosen and why, and about how long it will take."""
    from gamlp.machine.training import training_bytes, training_seconds
    from gamlp.storage.sizes import format_size

    limit, needed = spec.engine.memory, training_bytes(graph, spec)
    if limit is not None and needed is not None and needed > limit:
        log.warning(
            "--memory %s: batches, network and predictions alone need about %s, so the limit will not be kept. Give "
            "more, a smaller batch_size, hidden%s.",
            *(format_size(limit), format_size(needed)),
            "" if spec.settings.get("rows") == "labelled" else ", or rows=labelled: predict --rows all writes the rest",
        )
    split = graph.split_for(spec.seeds[0])
    sets = ", ".join(f"{len(ids):,} {name}" for name, ids in split.sets.items())
    why = "as asked for" if named else f"by the recipe {Path(spec.recipe).stem}"
    if not named and spec.recipe == "default":
        why = f"for {len(split.train):,} labels of {len(graph.classes):,} classes"
    count = len(spec.seeds)
    work = f"{spec.method}, {why}; {count} seed{'s' if count > 1 else ''}"
    seconds = training_seconds(graph, spec)
    log.log(
        NOTICE,
        "%s: %s (%s). %s%s.",
        graph.name,
        graph.counts,
        sets,
        work,
        "" if seconds is None else f", up to about {duration(seconds)}",
    )


def read_own_graph(spec: Spec, root: Path | None = None) -> Graph:
    """Read the graph of a run again, its data set below `root` where one is given; a changed one is refused."""
    from gamlp.runs.spec import check_same_graph

    source = spec.source
    if root is not None and source is not None:
        if source.root is None:
            raise SettingsError(f"--root {root} was given, and the run's graph is not below a root.\nLeave it out.")
        source = source.model_copy(update={"root": root.resolve()})
    graph = as_begun(read_source(source, spec.engine.memory), spec)
    check_same_graph(spec, graph)
    return graph


def asked(
    set_: list[str] | None, first: int, seeds: int, metric: str | None = None, minutes: float | None = None
) -> dict[str, Any]:
    """Return --set, --metric and each seed's share of --minutes as overrides, and so many seeds."""
    if first + seeds - 1 > LARGEST_SEED:
        raise SettingsError(f"--seed {first} --seeds {seeds}: the last seed is too large.\nUse seeds below 2^63.")
    return {
        "overrides": overrides([*(set_ or []), *([f"metric={metric}"] if metric else [])])
        | ({"minutes": minutes / seeds} if minutes else {}),
        "seeds": list(range(first, first + seeds)),
    }


def new_folder(name: str) -> Path:
    """Return a run directory that is not there yet."""
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return next(folder for name in names if not (folder := Path("runs") / name).exists())
