"""From options to work: the graph is read, and a specification made for it or taken up again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gamlp.cli.options import LARGEST_SEED, ComputeOptions, GraphOptions, overrides, refuse
from gamlp.cli.screen import duration, note
from gamlp.errors import FormatError, SettingsError
from gamlp.progress import NOTICE, log, progress

if TYPE_CHECKING:
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
    return read, RunSpec.of(read, method, **asked, **shared)


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
    return read_source(source), {"recipe": recipe, "engine": engine, "device": compute.device, "source": source}


def taken_up(
    place: Path, read: Callable[[Path], Kept], *, what: str = "A run goes on as it was begun", but: Sequence[str] = ()
) -> tuple[Graph, Kept]:
    """Return the graph and the specification of --resume, beside which nothing else is said."""
    refuse(f"{{option}} was given beside --resume.\n{what}: leave it out.", but=("resume", *TOLD, *but))
    spec = read(place)
    return read_source(spec.source), spec


def read_source(source: GraphSource | None) -> Graph:
    """Read the graph that a source names, and tell what its reader has to say."""
    if source is None:
        raise FormatError("The run does not say how its graph is read: it came from Python.\nName the graph as well.")
    with progress(f"read {source.title}"):
        graph = source.read()
    for text in getattr(graph, "notes", ()):
        note(text)
    return graph


def announce(graph: Graph, spec: RunSpec, *, named: bool) -> None:
    """Tell in one line what was read, which method was chosen and why, and about how long it will take."""
    from gamlp.machine.training import training_seconds

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
    graph = read_source(source)
    check_same_graph(spec, graph)
    return graph


def asked(set_: list[str] | None, first: int, seeds: int) -> dict[str, Any]:
    """Return --set as overrides, and so many seeds."""
    if first + seeds - 1 > LARGEST_SEED:
        raise SettingsError(f"--seed {first} --seeds {seeds}: the last seed is too large.\nUse seeds below 2^63.")
    return {"overrides": overrides(set_), "seeds": list(range(first, first + seeds))}


def new_folder(name: str) -> Path:
    """Return a run directory that is not there yet."""
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return next(folder for name in names if not (folder := Path("runs") / name).exists())
