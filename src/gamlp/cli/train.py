"""gamlp train: from a graph to a run directory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamlp.cli import common, complete
from gamlp.cli.options import (
    ComputeOptions,
    GraphOptions,
    Json,
    Recipe,
    Seed,
    Set,
    overrides,
    refuse_beside,
    seeds_from,
    spelled_out,
)

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.source import GraphSource
    from gamlp.runs.spec import RunSpec

GOES_ON = "A run goes on as it was begun: leave it out."


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Examples: gamlp train debian · gamlp train edges.parquet nodes.parquet --column label=topic")(
        spelled_out(train)
    )


def train(
    graph: GraphOptions,
    *,
    method: Annotated[
        str | None,
        typer.Option(
            help="A method's name, as gamlp-jk+rlu; by default the recipe's.", autocompletion=complete.methods
        ),
    ] = None,
    recipe: Recipe = None,
    set_: Set = None,
    seeds: Annotated[
        int, typer.Option(help="How many seeds; a graph without a fixed split draws one for each.", min=1)
    ] = 3,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("--out", help="The run directory; by default a new one in runs/.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Take up a run that was interrupted.")] = None,
    compute: ComputeOptions,
    json: Json = False,
) -> None:
    """Train a method on a graph and keep everything in a run directory."""
    from gamlp.runs.run import begun

    with common.shown_progress():
        if resume is not None:
            refuse_beside("resume", GOES_ON)
            spec: RunSpec = begun(resume)
            read, folder = common.read_source(spec.source), resume
        else:
            read, spec = new_spec(graph, compute, method, recipe, set_, seeds_from(seed, seeds))
            folder = out or new_folder(f"{read.name}-{spec.method}")
    result = trained(read, spec, folder)
    if result is None:  # another process of torchrun's tells
        return
    if json:
        common.print_json(result)
    else:
        show(result)


def new_spec(
    graph: GraphOptions,
    compute: ComputeOptions,
    method: str | None,
    recipe: str | None,
    set_: list[str] | None,
    seeds: list[int],
    *,
    to_train: bool = True,
) -> tuple[Graph, RunSpec]:
    """Read the graph and resolve every setting for it; impossible ones are refused before anything is written."""
    from gamlp.methods import method_named
    from gamlp.recipes import load_recipe
    from gamlp.runs.spec import RunSpec

    source, engine, changes = graph.source(), compute.choice(), overrides(set_)
    recipe = recipe or default_recipe(source)
    method_named(method or load_recipe(recipe).method)  # a wrong name is told before a large graph is read
    read = common.read_source(source)
    where: dict[str, Any] = {"engine": engine, "device": compute.device, "source": source}
    return read, RunSpec.of(read, method, recipe, changes, seeds, **where, to_train=to_train)


def trained(graph: Graph, spec: RunSpec, folder: Path) -> dict[str, Any] | None:
    """Train in one process or several, and write the report; None in all but the first process."""
    import shlex

    from gamlp.explain.report import write_report
    from gamlp.runs.distributed_run import train_together
    from gamlp.train.distributed import joined

    again = f"What is finished is kept; go on with: {shlex.join(['gamlp', 'train', '--resume', str(folder)])}"
    with common.shown_progress(again), joined(spec.device) as together:
        folder = together.from_first(folder)
        result = train_together(graph, spec, folder=folder, together=together)
        if result is not None:
            if not (folder / "report.html").exists():
                write_report(graph, folder)
            result["report"] = str(folder / "report.html")
    return result


def default_recipe(source: GraphSource) -> str:
    """Return the recipe of a known data set, else the one that adapts itself."""
    from gamlp.recipes import recipe_names

    return source.what[0] if len(source.what) == 1 and source.what[0] in recipe_names() else "default"


def new_folder(name: str) -> Path:
    """Return a run directory that is not there yet."""
    stem = Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, count = stem, 1
    while folder.exists():
        count += 1
        folder = stem.with_name(f"{stem.name}-{count}")
    return folder


def show(result: dict[str, Any]) -> None:
    """Print the final table."""
    from rich.table import Table

    from gamlp.cli.screen import screen

    table = Table(title=f"{result['method']} on {result['dataset']}", title_justify="left")
    table.add_column("")
    table.add_column("valid", justify="right")
    table.add_column("test", justify="right")
    for name, words in (("accuracy", "accuracy, %"), ("macro_f1", "macro-F1, %")):
        cells = [common.percent(result[f"{part}_{name}"], result[f"{part}_{name}_std"]) for part in ("valid", "test")]
        table.add_row(words, *cells)
    losses = [result[f"{part}_log_loss"] for part in ("valid", "test")]
    table.add_row("log loss", *("–" if loss is None else f"{loss:.3f}" for loss in losses))
    out = screen()
    out.print(table)
    count = len(result["seeds"])
    spread = f"Mean ± std over {count} seeds" if count > 1 else "1 seed"
    out.print(f"{spread}, {result['seconds_per_seed']:.1f} s each, {result['parameters']:,} parameters.")
    out.print(f"Everything is in {result['run']}: report.html to look at, predictions.parquet to use.", soft_wrap=True)
