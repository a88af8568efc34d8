"""What a run is: one frozen specification, kept in run.json, from which it is resumed, repeated and compared.

    RunSpec = graph source, method, recipe and --set, the settings they gave, seeds, engine, device, fingerprints

The settings are resolved once, when the run begins: going on reads no recipe. Fingerprints are of everything that a
result depends on, so whoever opens a run can say what of its graph has changed (`check_same_graph`). The command that
repeats it (`command_of`) can be pasted anywhere.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gamlp.errors import GamlpError, SettingsError, StorageError
from gamlp.graph.graph import Graph, check_trainable
from gamlp.graph.readers.source import GraphSource
from gamlp.methods import Method, method_named
from gamlp.progress import log
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import literal, load_recipe
from gamlp.train.hop_source import check_device

SMOOTHING_BYTES = 24  # of correct and smooth, a node and class: probabilities six times over
WHOLE_GRAPH = "adjacency or features"  # the one fingerprint that runs of 0.1.0 have: of both together


def _known_method(name: str) -> str:
    try:
        return method_named(name).name
    except GamlpError as error:
        raise ValueError(str(error).splitlines()[0]) from None


MethodName = Annotated[str, AfterValidator(_known_method)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]


class Spec(BaseModel):
    """What runs and comparisons have in common."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    command: ClassVar[tuple[str, ...]]  # which `gamlp` repeats it with, and the fields that are its own options

    source: GraphSource | None = None  # None where the graph came from Python
    recipe: str
    overrides: dict[str, Any] = {}
    seeds: Annotated[list[Seed], Field(min_length=1)]
    engine: EngineChoice = EngineChoice()
    device: str = "cpu"
    fingerprints: dict[str, str]

    def fields_of(self, kind: type[Spec]) -> dict[str, Any]:
        """Return what this specification has of such a one."""
        return {name: getattr(self, name) for name in kind.model_fields}


class RunSpec(Spec):
    """One method on one graph over several seeds."""

    command: ClassVar[tuple[str, ...]] = ("train", "method")
    method: str
    settings: dict[str, Any]  # resolved: what is trained with
    start: Path | None = None  # the run whose weights it begins with

    @classmethod
    def of(
        cls,
        graph: Graph,
        method: str | None = None,
        recipe: str = "default",
        overrides: Mapping[str, Any] | None = None,
        seeds: Sequence[int] = (0,),
        *,
        engine: EngineChoice = EngineChoice(),  # noqa: B008 — frozen
        device: str = "cpu",
        source: GraphSource | None = None,
        to_train: bool = True,
        network: bool = False,
    ) -> RunSpec:
        """Resolve every setting for this graph, and refuse what cannot be trained; the method may be the recipe's.

        What is only propagated needs no labels: `to_train` is False there. Where the recipe has the choice, the method
        is one `network` on hops if that is asked for, or if a setting of one is given.
        """
        found, values = load_recipe(recipe), dict(overrides or {})
        split = graph.split_for(seeds[0])
        if to_train:
            check_trainable(graph, split)
        outline = Outline.of(graph, split)
        if method is None:
            method = found.method_for(outline, values, network=network)
            smoothing = SMOOTHING_BYTES * outline.nodes * outline.classes
            if values.get("rows", "all") != "all" or smoothing > (engine.memory or smoothing):
                method = method.removesuffix("+cs")  # it needs all nodes, and holds what it says of them
        chosen = method_named(method)
        check_device(device)
        check_engine(chosen, engine, device)
        settings = found.resolve(chosen, values, outline)
        chosen.check(graph, settings)
        for sentence in chosen.idle_among(values, graph, settings):
            log.warning(sentence)
        where: dict[str, Any] = {"source": source, "engine": engine, "device": device}
        asked: dict[str, Any] = {"method": chosen.name, "overrides": values, "seeds": list(seeds)}
        recipe = str(Path(recipe).resolve()) if recipe.endswith(".toml") else recipe
        data, fingerprints = chosen.settings_data(settings), dict(graph.fingerprints)
        return cls(**where, **asked, recipe=recipe, settings=data, fingerprints=fingerprints)


def check_engine(method: Method, engine: EngineChoice, device: str) -> None:
    """Refuse the options of an engine for a method that has nothing to propagate; embeddings may need a cache."""
    ignored = {"cache": None} if method.needs_relations else {}
    usual = EngineChoice(name=usual_engine(device, engine.memory))
    if not method.uses_engine and engine.model_copy(update=ignored) != usual:
        raise SettingsError(
            f"{method.name} passes its messages in memory: no engine propagates for it.\n"
            "Leave out --engine, --memory, --address and --cache, or name a method on hops, as gamlp-jk."
        )


def usual_engine(device: str, memory: int | None) -> str:
    """Return the engine that is taken where none is named."""
    return "cuda" if device != "cpu" and memory is None else "local"


def check_same_graph(spec: Spec, graph: Graph) -> None:
    """Refuse a graph that is not the one the specification was made for, and name what differs."""
    found: Mapping[str, str] = graph.fingerprints
    if WHOLE_GRAPH in spec.fingerprints:
        found = {**found, WHOLE_GRAPH: graph.fingerprint}
    differing = [name.replace("_", " ") for name, value in spec.fingerprints.items() if found.get(name) != value]
    if differing:
        raise StorageError(
            f"The graph has changed since the run: {', '.join(differing)}.\n"
            "Restore its files, or train again. Predictions for the changed graph: gamlp predict RUN GRAPH."
        )


def command_of(spec: Spec) -> str:
    """Return a line for a shell; empty where the graph came from Python."""
    if spec.source is None:
        return ""
    command, *own = spec.command
    options = [(name, getattr(spec, name)) for name in own]
    options += [("recipe", spec.recipe), ("seeds", len(spec.seeds)), ("seed", spec.seeds[0])]
    if start := getattr(spec, "start", None):
        options = [("from", start)]  # whose method, recipe and seeds it has
    options += [("set", f"{key}={written_value(value)}") for key, value in spec.overrides.items()]
    return shell_line([command, *spec.source.words()], [*options, *engine_options(spec.engine, spec.device)])


def shell_line(words: Sequence[str], options: Iterable[tuple[str, Any]]) -> str:
    """Return a command of gamlp with options, to be pasted; lists have commas between."""
    line = ["gamlp", *words]
    for name, value in options:
        line += [f"--{name}", ",".join(value) if isinstance(value, list) else str(value)]
    return shlex.join(line)


def engine_options(engine: EngineChoice, device: str) -> list[tuple[str, Any]]:
    """Return the options of engine and device that differ from the usual ones."""
    found = dict(engine) | {"engine": engine.name, "device": device}
    usual = {"engine": usual_engine(device, engine.memory), "device": "cpu"}
    names = ("engine", "memory", "address", "cache", "device")
    return [(name, found[name]) for name in names if found[name] != usual.get(name)]


def parse_value(text: str, what: str) -> Any:
    """Read a value of --set as TOML writes it: number, true/false, "text", [list], {table}; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return {"True": True, "False": False}.get(text, text)
    except (RecursionError, ValueError) as error:  # brackets in brackets, or a number of thousands of digits
        raise SettingsError(f"{what}: the value cannot be read ({error}).\nWrite a number, text or a list.") from None


def written_value(value: Any) -> str:
    """Write a value so that `parse_value` reads the same."""
    if isinstance(value, str) and value == value.strip() and parse_value(value, "") == value:
        return value
    return literal(value)
