"""What all commands share: options, progress on standard error, results on standard output."""

from __future__ import annotations

import json
import math
import os
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from gamlp.cli import complete
from gamlp.errors import FormatError, Interrupted, SettingsError, did_you_mean
from gamlp.progress import progress, report_to

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph

console = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Seed = Annotated[int, typer.Option("--seed", help="The first random seed.", min=0)]
AnySeed = Annotated[int, typer.Option("--seed", help="Taken by every command; this one has nothing random.", min=0)]
Root = Annotated[Path, typer.Option("--root", help="The folder with data sets, laid out as PyG and OGB do.")]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe", help="A recipe by name, or a .toml file; see gamlp recipes.", autocompletion=complete.recipes
    ),
]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting; repeatable.")]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
Cache = Annotated[Path | None, typer.Option("--cache", help="Keep propagated features here, and find them again.")]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Do it on disk within so much memory, as 8GiB.")
]
What = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="GRAPH",
        help="A data set's name, a graph directory, or EDGES [NODES] files.",
        autocompletion=complete.graphs,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="ROLE=NAME", help="Which column is source, target, weight, id, label or split."),
]
Features = Annotated[Path | None, typer.Option("--features", help="A .npy file with one row of features per node.")]
Directed = Annotated[bool, typer.Option("--directed", help="Keep the direction of edges from files.")]

ROLES = ("source", "target", "weight", "id", "label", "split")


def graph_source(
    what: Sequence[str] | None, root: Path, column: list[str] | None, features: Path | None, directed: bool
) -> dict[str, Any]:
    """Return how to read the graph, in a form that run.json can keep."""
    if not what:
        raise SettingsError("No graph was named.\nGive a data set's name, a graph directory, or EDGES [NODES] files.")
    columns = dict(pair(text, "--column") for text in column or [])
    for role in columns:
        if role not in ROLES:
            raise SettingsError(f"--column {role}=…: there is no such role.\n{did_you_mean(role, ROLES)}")
    files = [str(Path(word).resolve()) if Path(word).exists() else word for word in what]
    options: dict[str, Any] = {**columns}
    if features is not None:
        options["features"] = str(features.resolve())
    if directed:
        options["directed"] = True
    return {"what": files, "root": str(root.resolve()), "options": options}


def read_source(source: dict[str, Any]) -> Graph:
    """Read the graph that a source names."""
    from gamlp.graph.readers.datasets import read_graph

    if not {"what", "root", "options"} <= source.keys():
        raise FormatError("The run does not say how its graph is read.\nName the graph as well.")
    options = dict(source["options"])
    if "features" in options:
        options["features"] = Path(options["features"])
    with progress(f"read {' '.join(Path(word).name for word in source['what'])}"):
        graph = read_graph(source["what"], root=Path(source["root"]), **options)
    for note in getattr(graph, "notes", ()):
        console.print(f"Note: {note}", markup=False, highlight=False, soft_wrap=True)
    return graph


def pair(text: str, option: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise SettingsError(f"{option} {text}: no '=' was found.\nWrite {option} NAME=VALUE.")
    return key.strip(), value.strip()


def overrides(texts: list[str] | None) -> dict[str, Any]:
    """Read --set KEY=VALUE: numbers, true/false and lists as TOML writes them, anything else as text."""
    values: dict[str, Any] = {}
    for text in texts or []:
        key, value = pair(text, "--set")
        try:
            values[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            values[key] = {"True": True, "False": False}.get(value, value)
    return values


def print_json(content: Any) -> None:
    """Write the one result; numbers that are not finite become null, as JSON has no word for them."""
    sys.stdout.write(json.dumps(finite(content), indent=2, ensure_ascii=False) + "\n")


def finite(content: Any) -> Any:
    """Replace NaN and infinities by None, however deep."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


@contextmanager
def shown_progress(if_interrupted: str = "Nothing was changed.") -> Iterator[None]:
    """Show progress bars with the time left while the block runs; nothing where standard error is no terminal.

    Ctrl-C in the block ends the command with the words `if_interrupted`.
    """
    try:
        if not console.file.isatty() or os.environ.get("RANK", "0") != "0":  # FORCE_COLOR asks for colours, not bars
            yield
            return
        from gamlp.cli.bars import Bars

        with Bars(console) as bars:
            report_to(bars)
            yield
    except KeyboardInterrupt:
        raise Interrupted(if_interrupted) from None
    finally:
        report_to(None)


def percent(mean: float | None, std: float | None = None) -> str:
    """Write an accuracy as 84.31 ± 0.52."""
    if mean is None:
        return "–"
    return f"{100 * mean:.2f}" + (f" ± {100 * std:.2f}" if std is not None else "")
