"""The options that commands share, each spelled once, and how a command takes them: as one object.

    @spelled_out
    def train(graph: GraphOptions, *, compute: ComputeOptions, seeds: int = 3) -> None: …

typer makes options of a function's parameters. `spelled_out` shows it a signature in which the fields of the objects
stand in their place (what, root, column, …), and makes the objects of what was given:

    def train(what, root, column, features, directed, engine, memory, address, cache, device, seeds=3)
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from gamlp.cli import complete
from gamlp.errors import SettingsError

if TYPE_CHECKING:
    from gamlp.graph.readers.source import GraphSource
    from gamlp.propagate.engines.registry import EngineChoice

LARGEST_SEED = 2**63 - 1
_running: ContextVar[typer.Context] = ContextVar("the command that is running")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Seed = Annotated[int, typer.Option("--seed", help="The first random seed.", min=0, max=LARGEST_SEED)]
AnySeed = Annotated[int, typer.Option("--seed", help="Taken by every command; this one has nothing random.", min=0)]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe", help="A recipe by name, or a .toml file; see gamlp recipes.", autocompletion=complete.recipes
    ),
]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting; repeatable.")]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Stay within so much memory, as 8GiB, by way of disk.")
]


@dataclass(frozen=True)
class GraphOptions:
    """Which graph, and how it is read."""

    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GRAPH",
            help="A data set's name, a graph directory, or EDGES [NODES] files.",
            autocompletion=complete.graphs,
        ),
    ] = None
    root: Annotated[
        Path | None, typer.Option("--root", help="The folder with data sets, laid out as PyG and OGB do; usually data.")
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="ROLE=NAME", help="Which column is source, target, weight, id, label or split."
        ),
    ] = None
    features: Annotated[
        Path | None, typer.Option("--features", help="A .npy file with one row of features per node.")
    ] = None
    directed: Annotated[
        bool | None, typer.Option("--directed/--undirected", help="Keep the direction of edges from files.")
    ] = None

    def source(self, usual: GraphSource | None = None) -> GraphSource:
        """Return the source that the options name; what they leave open is as in `usual`, the graph of a run."""
        from gamlp.graph.readers.source import GraphSource

        columns = dict(pair(text, "--column") for text in self.column or [])
        columns = {**(usual.columns if usual else {}), **columns}  # type: ignore[dict-item]
        directed = (usual.directed if usual else False) if self.directed is None else self.directed
        source = GraphSource.named(
            self.what, root=self.root, columns=columns, features=self.features, directed=directed
        )
        if self.root is not None and source.root is None:
            raise SettingsError(
                f"--root {self.root} was given for '{source.title}', which is not looked for below a root.\n"
                "Leave it out."
            )
        return source


@dataclass(frozen=True)
class ComputeOptions:
    """Where hops are propagated and kept, and where networks are trained."""

    engine: Annotated[
        str | None, typer.Option("--engine", help="local, cuda or ray; by default local, or cuda with that device.")
    ] = None
    memory: Memory = None
    address: Annotated[
        str | None,
        typer.Option("--address", help="The Ray cluster, as HOST:6379; by default one on this machine."),
    ] = None
    cache: Annotated[
        Path | None, typer.Option("--cache", help="Keep propagated features here, and find them again.")
    ] = None
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu"

    def choice(self) -> EngineChoice:
        """Return the choice of an engine; options that do not go together are refused here, before anything is read."""
        from gamlp.propagate.engines.registry import EngineChoice
        from gamlp.runs.spec import usual_engine
        from gamlp.storage.sizes import parse_size
        from gamlp.train.hop_source import check_device

        memory = None if self.memory is None else parse_size(self.memory)
        choice = EngineChoice(
            name=self.engine or usual_engine(self.device, memory),
            memory=memory,
            address=self.address,
            cache=None if self.cache is None else self.cache.resolve(),
        )
        check_device(self.device)
        choice.open(device=self.device)
        return choice


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its objects of options taken apart into their fields, as typer needs to see them."""
    parameters, groups = [], {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if not dataclasses.is_dataclass(kind):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind, [field.name for field in dataclasses.fields(kind)]
        hints = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in dataclasses.fields(kind)
        ]

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        _running.set(given.pop("context"))
        for name, (kind, fields) in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in fields})  # type: ignore[operator]
        command(**given)

    run.__signature__ = inspect.Signature([*parameters, context])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*parameters, context]}
    return run


def given_options() -> dict[str, str]:
    """Return the options of the running command that stand on its command line: parameter → as it is spelled."""
    context = _running.get()
    return {
        str(parameter.name): parameter.opts[0] if parameter.opts[0].startswith("-") else str(parameter.metavar)
        for parameter in context.command.params
        if getattr(context.get_parameter_source(str(parameter.name)), "name", "") == "COMMANDLINE"
    }


def refuse_beside(option: str, reason: str, *, but: tuple[str, ...] = ()) -> None:
    """Refuse whatever stands on the command line beside `option`, --json and `but`, by its name."""
    for name, spelled in given_options().items():
        if name not in (option, "json", *but):
            raise SettingsError(f"{spelled} was given beside --{option}.\n{reason}")


def seeds_from(first: int, count: int) -> list[int]:
    """Return so many seeds."""
    if first + count - 1 > LARGEST_SEED:
        raise SettingsError(f"--seed {first} --seeds {count}: the last seed is too large.\nUse seeds below 2^63.")
    return list(range(first, first + count))


def pair(text: str, option: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise SettingsError(f"{option} {text}: no '=' was found.\nWrite {option} NAME=VALUE.")
    return key.strip(), value.strip()


def overrides(texts: list[str] | None) -> dict[str, Any]:
    """Read every --set KEY=VALUE."""
    from gamlp.runs.command import parse_value

    pairs = [pair(text, "--set") for text in texts or []]
    return {key: parse_value(value, f"--set {key}") for key, value in pairs}
