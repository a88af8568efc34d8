"""gamlp train: from a graph to a run directory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamlp.cli import common, complete
from gamlp.cli.common import Cache, Column, Device, Directed, Features, Json, Memory, Root, Seed, Set, What
from gamlp.cli.engines import Address, Choice, Engine, chosen

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.runs.run import Order
    from gamlp.train.prepare import Workshop


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Examples: gamlp train debian · gamlp train edges.parquet nodes.parquet --column label=topic")(
        train
    )


def train(
    what: What = None,
    *,
    method: Annotated[
        str | None,
        typer.Option(
            help="A method's name, as gamlp-jk+rlu; by default the recipe's.", autocompletion=complete.methods
        ),
    ] = None,
    recipe: common.Recipe = None,
    set_: Set = None,
    seeds: Annotated[
        int, typer.Option(help="How many seeds; a graph without a fixed split draws one for each.", min=1)
    ] = 3,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("--out", help="The run directory; by default a new one in runs/.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Take up a run that was interrupted.")] = None,
    root: Root = Path("data"),
    column: Column = None,
    features: Features = None,
    directed: Directed = False,
    device: Device = "cpu",
    cache: Cache = None,
    memory: Memory = None,
    engine: Engine = None,
    address: Address = None,
    json: Json = False,
) -> None:
    """Train a method on a graph and keep everything in a run directory."""
    from gamlp.explain.report import write_report
    from gamlp.runs.distributed_run import train_together
    from gamlp.runs.run import Order, order_of
    from gamlp.train.distributed import joined

    if resume is not None:
        refuse_beside_resume(what=what, method=method, recipe=recipe, set_=set_, out=out)
        order = order_of(record_of(resume))
        folder = resume
    else:
        source = common.graph_source(what, root, column, features, directed)
        recipe = recipe or default_recipe(source["what"])
        order = Order(
            method=method or method_of(recipe),
            recipe=recipe,
            overrides=common.overrides(set_),
            seeds=list(range(seed, seed + seeds)),
            device=device,
            source=source,
        )
        folder = Path()
    choice = chosen(engine, memory, address, order.device)
    with common.shown_progress():
        graph = common.read_source(dict(order.source or {}))
        if resume is None and method is None:
            order = order.with_usual_method(graph)
        order.task(graph)  # refuses impossible settings before anything is written
        if resume is None:
            folder = out or new_folder(f"{graph.name}-{order.method}")
    with (
        common.shown_progress(f"What is finished is kept; go on with: gamlp train --resume {folder}"),
        joined(order.device) as together,
    ):
        folder = together.from_first(folder)
        result = train_together(
            graph, order, folder=folder, workshop=workshop(graph, order, folder, cache, choice), together=together
        )
        if result is None:  # another process of torchrun's tells
            return
        if not (folder / "report.html").exists():
            write_report(graph, folder)
        result["report"] = str(folder / "report.html")
    if json:
        common.print_json(result)
    else:
        show(result)


def workshop(graph: Graph, order: Order, folder: Path, cache: Path | None, choice: Choice) -> Workshop:
    """Return what makes the hops: engines that write do so in the run's own folder where no cache is named."""
    from gamlp.train.prepare import Workshop

    place = cache or (folder / "hops" if choice.memory else None)
    return Workshop(graph, cache=place, device=order.device, memory=choice.memory, write=choice.write)


def refuse_beside_resume(**given: Any) -> None:
    """A run goes on as it was begun: what it is cannot be said anew."""
    from gamlp.errors import SettingsError

    names = {"what": "GRAPH", "set_": "--set"}
    for name, value in given.items():
        if value:
            option = names.get(name, f"--{name}")
            raise SettingsError(f"{option} was given beside --resume.\nA run goes on as it was begun: leave it out.")


def default_recipe(what: list[str]) -> str:
    """Return the recipe of a known data set, else the one that adapts itself."""
    from gamlp.recipes import recipe_names

    return what[0] if len(what) == 1 and what[0] in recipe_names() else "default"


def method_of(recipe: str) -> str:
    """Return the method a recipe was made for."""
    from gamlp.recipes import load_recipe

    return load_recipe(recipe).method


def record_of(run: Path) -> dict[str, Any]:
    """Read run.json of a run directory."""
    from gamlp.errors import MissingFileError
    from gamlp.runs.record import read_record

    if not (run / "run.json").is_file():
        raise MissingFileError(
            f"{run} is not a run directory: it has no run.json.\nName a folder that gamlp train made."
        )
    return read_record(run)


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
