"""The options that commands share, each spelled once, and how a command takes them: as one object.

    def train(graph: GraphOptions, *, compute: ComputeOptions, seeds: int = 3) -> Answer: …

typer makes options of a function's parameters. `spelled_out` shows it a signature in which the fields of the objects
stand in their place (what, root, column, …), and makes the objects of what was given:

    def train(what, root, column, ignore, features, directed, engine, …, seeds=3, json=False)

Every command takes --json, --seed, --quiet, --verbose and --log, and runs below progress bars. It returns its result
and the words that people read instead of it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import shlex
from collections.abc import Callable, Collection
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from gamlp.cli import complete
from gamlp.cli.interrupts import interrupts
from gamlp.cli.screen import print_json, say, talking
from gamlp.errors import Interrupted, SettingsError
from gamlp.propagate.engines import ENGINES

if TYPE_CHECKING:
    from gamlp.graph.readers.source import GraphSource
    from gamlp.propagate.engines.registry import EngineChoice

KEPT = "what is kept of interrupted work"
LARGEST_SEED = 2**63 - 1
_running: ContextVar[Context] = ContextVar("the command that is running")

Answer = tuple[dict[str, Any], str | Callable[[], None]] | None  # what --json prints, and what is printed else
Quiet = Annotated[bool, Option("--quiet", help="Tell nothing but the result and errors.")]
Verbose = Annotated[bool, Option("--verbose", help="Tell more on the way.")]
Log = Annotated[Path | None, Option("--log", metavar="FILE", help="Write all that is told to a file too, with times.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object on standard output.")]
Seed = Annotated[int, Option(help="The first random seed.", min=0, max=LARGEST_SEED)]
AnySeed = Annotated[int, Option(help="Taken by every command; this one has nothing random.", min=0)]
Recipe = Annotated[
    str | None, Option(help="A recipe by name, or a .toml file; see gamlp recipes.", autocompletion=complete.recipes)
]
Set = Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="Change one setting; repeatable.")]
Metric = Annotated[
    str | None,
    Option(
        help="What chooses epochs, stages, settings and the best seed: accuracy, roc_auc, …; --set metric=.",
        autocompletion=complete.metrics,
    ),
]
Memory = Annotated[str | None, Option(metavar="SIZE", help="Stay within so much memory, as 8GiB, by way of disk.")]


@dataclass(frozen=True)
class GraphOptions:
    """Which graph, and how it is read."""

    what: Annotated[
        list[str] | None,
        Argument(
            metavar="GRAPH",
            help="A data set's name, a graph directory, EDGES [NODES] tables, or a folder or database that holds them.",
            autocompletion=complete.graphs,
        ),
    ] = None
    root: Annotated[
        Path | None, Option(help="The folder with data sets, laid out as PyG and OGB do; usually data.")
    ] = None
    column: Annotated[
        list[str] | None,
        Option(metavar="ROLE=NAME", help="Which column is source, target, weight, id, label (or a,b,c) or split."),
    ] = None
    ignore: Annotated[
        list[str] | None, Option(metavar="COLUMN", help="A column of the node table that is no feature; repeatable.")
    ] = None
    features: Annotated[
        Path | None, Option(help="Features apart: .npy or scipy's .npz (N, F), a table, or triples.")
    ] = None
    directed: Annotated[
        bool | None, Option("--directed/--undirected", help="Keep the direction of edges from files.")
    ] = None

    def source(self, usual: GraphSource | None = None) -> GraphSource:
        """Return the source that the options name; what they leave open is as in `usual`, the graph of a run."""
        from gamlp.graph.readers.source import GraphSource

        columns = dict(pair(text, "--column") for text in self.column or [])
        columns = {**(usual.columns if usual else {}), **columns}  # type: ignore[dict-item]
        directed = (usual.directed if usual else False) if self.directed is None else self.directed
        ignore = (usual.ignore if usual else ()) if self.ignore is None else tuple(self.ignore)
        more: dict[str, Any] = {"columns": columns, "ignore": ignore, "features": self.features, "directed": directed}
        source = GraphSource.named(self.what, root=self.root, **more)
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
        str | None,
        Option(
            help=f"{', '.join(ENGINES)}; by default local, or cuda with that device.", autocompletion=complete.engines
        ),
    ] = None
    memory: Memory = None
    address: Annotated[str | None, Option(help="The Ray cluster, as HOST:6379; by default one on this machine.")] = None
    cache: Annotated[Path | None, Option(help="Keep propagated features here, and find them again.")] = None
    device: Annotated[str, Option(help="cpu or cuda.")] = "cpu"

    def choice(self) -> EngineChoice:
        """Return the choice of an engine; options that do not go together are refused here, before anything is read."""
        from gamlp.propagate.engines.registry import EngineChoice
        from gamlp.runs.spec import usual_engine
        from gamlp.storage.memory import check_limit
        from gamlp.storage.sizes import parse_size
        from gamlp.train.hop_source import check_device

        memory = None if self.memory is None else parse_size(self.memory)
        cache = None if self.cache is None else self.cache.resolve()
        name = self.engine or usual_engine(self.device, memory)
        choice = EngineChoice(name=name, memory=memory, address=self.address, cache=cache)
        check_device(self.device)
        if choice.open(device=self.device).whole and memory is not None:
            check_limit(memory)
        return choice


def spelled_out(command: Callable[..., Answer]) -> Callable[..., None]:
    """Return the command with its objects of options taken apart into their fields, as typer needs to see them."""
    parameters: dict[str, inspect.Parameter] = {}
    groups: dict[str, Any] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if dataclasses.is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parameters |= inspect.signature(groups[name], eval_str=True).parameters
        else:
            parameters[name] = parameter
    keyword, takes_seed = inspect.Parameter.KEYWORD_ONLY, "seed" in parameters
    if not takes_seed:
        parameters["seed"] = inspect.Parameter("seed", keyword, default=0, annotation=AnySeed)
    common: dict[str, Any] = {"quiet": (False, Quiet), "verbose": (False, Verbose), "log": (None, Log)}
    for name, (default, kind) in {**common, "json": (False, Json)}.items():
        parameters[name] = inspect.Parameter(name, keyword, default=default, annotation=kind)
    parameters["context"] = inspect.Parameter("context", keyword, annotation=Context)

    @functools.wraps(command)
    def run(context: Context, json: bool, quiet: bool, verbose: bool, log: Path | None, **given: Any) -> None:
        _running.set(context)
        if quiet and verbose:
            raise SettingsError("--quiet and --verbose were given.\nLeave one out.")
        if not takes_seed:
            del given["seed"]
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in dataclasses.fields(kind)})
        try:
            with talking(quiet=quiet, verbose=verbose, file=log):
                answer = command(**given)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or interrupts.asked:  # or what a library made of it
                raise Interrupted(context.meta.get(KEPT, "Nothing was changed.")) from None
            raise
        if answer is not None:  # else another process tells
            tell(*answer, json=json)

    shown = [parameter.replace(kind=keyword) for parameter in parameters.values()]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def wants_json() -> bool:
    """Say whether the command that is running was given --json, where it tells its result itself."""
    return bool(_running.get().params.get("json"))


def if_interrupted(words: str) -> None:
    """Say what Ctrl-C leaves from here on; until then, nothing was changed."""
    _running.get().meta[KEPT] = words


def go_on(command: str, place: Path, kept: str = "What is finished is kept") -> None:
    """Say how the command is taken up again after Ctrl-C."""
    if_interrupted(f"{kept}; go on with: {shlex.join(['gamlp', command, '--resume', str(place)])}")


def tell(result: dict[str, Any], words: str | Callable[[], None], *, json: bool) -> None:
    """Print what a command answers."""
    if json:
        print_json(result)
    elif isinstance(words, str):
        say(words)
    else:
        words()


def refuse(reason: str, *, only: Collection[str] | None = None, but: Collection[str] = ()) -> None:
    """Refuse options of the command line, those of `only` or all but `but`; the reason has {option} for the first."""
    context = _running.get()
    for parameter in context.command.params:
        name = str(parameter.name)
        given = getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
        if given and name not in but and (only is None or name in only):
            spelled = parameter.opts[0] if parameter.opts[0].startswith("-") else str(parameter.metavar)
            raise SettingsError(reason.format(option=spelled))


def pair(text: str, option: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise SettingsError(f"{option} {text}: no '=' was found.\nWrite {option} NAME=VALUE.")
    return key.strip(), value.strip()


def overrides(texts: list[str] | None) -> dict[str, Any]:
    """Read every --set KEY=VALUE."""
    from gamlp.runs.spec import parse_value

    pairs = [pair(text, "--set") for text in texts or []]
    return {key: parse_value(value, f"--set {key}") for key, value in pairs}
