"""gamlp compare and recipes: methods beside each other, and what has been set and published before."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gamlp.cli import common, complete
from gamlp.cli.options import (
    AnySeed,
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
from gamlp.cli.train import GOES_ON, default_recipe, new_folder


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: gamlp compare cora --methods sgc,sign,gamlp-jk,gamlp-jk+rlu --seeds 10")(
        spelled_out(compare)
    )
    app.command(epilog="Example: gamlp recipes, then gamlp train cora --recipe cora --method gamlp-jk")(recipes)


def compare(
    graph: GraphOptions,
    *,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between, or all; by default the methods on hops.", autocompletion=complete.methods
        ),
    ] = None,
    recipe: Recipe = None,
    set_: Set = None,
    seeds: Annotated[int, typer.Option(help="How many seeds; all methods get the same.", min=1)] = 3,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("--out", help="The directory; by default a new one in runs/.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Take up a comparison that was interrupted.")] = None,
    compute: ComputeOptions,
    json: Json = False,
) -> None:
    """Train several methods on the same seeds and splits and show them beside what was published.

    --set KEY=VALUE holds for every method that has the setting and does not fix it itself,
    --set METHOD.KEY=VALUE for one.
    """
    from gamlp.runs import comparison as logic

    with common.shown_progress():
        if resume is not None:
            refuse_beside("resume", GOES_ON)
            spec: logic.ComparisonSpec = logic.read_comparison(resume)
            read, folder = common.read_source(spec.source), resume
        else:
            source, engine, names = graph.source(), compute.choice(), logic.methods_named(methods)
            recipe = recipe or default_recipe(source)
            logic.check_names(names, recipe)  # a wrong name is told before a large graph is read
            read = common.read_source(source)
            names, seed_list = logic.methods_named(methods, read), seeds_from(seed, seeds)
            spec = logic.comparison_for(
                read, names, recipe, overrides(set_), seed_list, engine=engine, device=compute.device, source=source
            )
            folder = out or new_folder(f"{read.name}-comparison")
    again = shlex.join(["gamlp", "compare", "--resume", str(folder)])
    with common.shown_progress(f"What is finished is kept; go on with: {again}"):
        result = logic.compare(read, spec, folder=folder)
        result["report"] = str(write_pages(read, folder, [row["method"] for row in result["rows"]]))
    if json:
        common.print_json(result)
    else:
        show(result)


def write_pages(graph: Any, folder: Path, methods: Sequence[str]) -> Path:
    """Write a page for every method, and the one that sets them side by side."""
    from gamlp.explain.comparison import write_comparison
    from gamlp.explain.report import write_report

    for name in methods:
        if not (folder / name / "report.html").exists():
            write_report(graph, folder / name)
    return write_comparison([folder])


def show(result: dict[str, Any]) -> None:
    """Print the final table, the best mean test accuracy in bold."""
    from rich.box import SIMPLE
    from rich.table import Table

    from gamlp.cli.screen import screen
    from gamlp.runs.comparison_table import HEADER, best_row, cells, footnote

    table = Table(title=f"Methods on {result['dataset']}", title_justify="left", box=SIMPLE)
    for name in HEADER:
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    best = best_row(result["rows"])
    for index, row in enumerate(result["rows"]):
        table.add_row(*cells(row), style="bold" if index == best else None)
    console = screen()
    console.print(table)
    console.print(footnote(result), highlight=False, soft_wrap=True)
    console.print(f"Everything is in {result['out']}: report.html to look at.", highlight=False, soft_wrap=True)


def recipes(*, seed: AnySeed = 0, json: Json = False) -> None:
    """List the recipes with their source, what was published with them, and the network's size."""
    from gamlp.recipes import load_recipe, recipe_names

    found = [entry(load_recipe(name)) for name in recipe_names()]
    if json:
        common.print_json({"recipes": found})
        return
    from rich.box import SIMPLE
    from rich.table import Table

    from gamlp.cli.screen import screen

    table = Table(title="Recipes", title_justify="left", box=SIMPLE)
    for name in ("name", "method", "published, %", "parameters", "source"):
        table.add_column(name, justify="right" if name == "parameters" else "left", no_wrap=name == "method")
    for row in found:
        published = row["published"].get(row["method"])
        table.add_row(
            row["name"],
            row["method"],
            "" if published is None else published_text(*published),
            "" if row["parameters"] is None else f"{row['parameters']:,}",
            row["source"],
        )
    screen().print(table)


def published_text(mean: float, std: float | None) -> str:
    """Write a published accuracy, in %, with its std where there is one."""
    return f"{mean:.2f}" + ("" if std is None else f" ± {std:.2f}")


def entry(recipe: Any) -> dict[str, Any]:
    """Return one recipe as data; the network is built to count its parameters."""
    from gamlp.methods import method_named
    from gamlp.model import build_network, count_parameters

    settings = recipe.resolve(method_named(recipe.method))
    parameters = None
    if recipe.sizes:
        parameters = count_parameters(build_network(settings, **recipe.sizes))
    return {
        "name": recipe.name,
        "title": recipe.title,
        "source": recipe.source,
        "method": recipe.method,
        "published": {name: list(value) for name, value in recipe.published.items()},
        "parameters": parameters,
        "settings": settings.model_dump(mode="json"),
    }
