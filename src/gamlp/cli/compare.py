"""gamlp compare and recipes: methods beside each other, and what has been set and published before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from gamlp.cli import complete
from gamlp.cli.begin import asked, doubt, new_folder, read_graph, taken_up
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, Metric, Recipe, Seed, Set, go_on
from gamlp.cli.screen import say, screen, table
from gamlp.errors import SettingsError


def compare(
    graph: GraphOptions,
    *,
    methods: Annotated[
        str | None,
        Option(
            help="Names with commas between, or all; by default the methods on hops.", autocompletion=complete.methods
        ),
    ] = None,
    recipe: Recipe = None,
    set_: Set = None,
    metric: Metric = None,
    seeds: Annotated[int, Option(help="How many seeds; all methods get the same.", min=1)] = 3,
    seed: Seed = 0,
    out: Annotated[Path | None, Option(help="The directory; by default a new one in runs/.")] = None,
    resume: Annotated[Path | None, Option(help="Take up a comparison that was interrupted.")] = None,
    compute: ComputeOptions,
) -> Answer:
    """Train several methods on the same seeds and splits and show them beside what was published.

    --set KEY=VALUE holds for every method that has the setting and does not fix it itself,
    --set METHOD.KEY=VALUE for one.
    """
    from gamlp.explain.comparison import write_pages
    from gamlp.runs import comparison as logic

    if resume is None:
        refuse_spaces(methods, graph.what or [])
        own = asked(set_, seed, seeds, metric)
        read, shared = read_graph(graph, compute, recipe, logic.methods_named(methods))
        spec = logic.comparison_for(read, logic.methods_named(methods, read), **own, **shared)
        doubt(read, spec.methods[0], spec.settings[spec.methods[0]], spec.seeds[0])
    else:
        read, spec = taken_up(resume, logic.read_comparison)
    folder = resume or out or new_folder(f"{read.name}-comparison")
    go_on("compare", folder)
    result = logic.compare(read, spec, folder=folder)
    result["report"] = str(write_pages(read, folder))
    return result, lambda: show(result)


def refuse_spaces(methods: str | None, words: Sequence[str]) -> None:
    """Refuse methods with spaces between: all but the first were taken for the graph."""
    from gamlp.methods import BASES

    taken = [word for word in words if re.split(r"[+,]|-labels", word)[0] in BASES and not Path(word).exists()]
    if methods is not None and taken:
        names = ",".join(name for text in (methods, *taken) for name in text.split(",") if name)
        raise SettingsError(
            f"'{taken[0]}' is a method and stands where the graph does.\n"
            f"Write methods with commas between and no spaces: --methods {names}"
        )


def show(result: dict[str, Any]) -> None:
    """Print the final table, the best mean score on test in bold."""
    from rich.box import SIMPLE

    from gamlp.runs.comparison_table import best_row, cells, footnote, header
    from gamlp.runs.record import metric_of

    metric = metric_of(result["rows"][0])
    made = table(f"Methods on {result['dataset']}", header(metric), whole=header(metric), box=SIMPLE)
    best = best_row(result["rows"], metric)
    for index, row in enumerate(result["rows"]):
        made.add_row(*cells(row, metric), style="bold" if index == best else None)
    screen().print(made)
    say(f"{footnote(result)}\nEverything is in {result['out']}: report.html to look at.")


def recipes() -> Answer:
    """List the recipes with their source, what was published with them, and the network's size."""
    from gamlp.recipes import load_recipe, recipe_names

    found = [entry(load_recipe(name)) for name in recipe_names()]
    return {"recipes": found}, lambda: show_recipes(found)


def show_recipes(found: list[dict[str, Any]]) -> None:
    """Print one line a recipe."""
    from rich.box import SIMPLE

    from gamlp.runs.comparison_table import percent

    columns = ("name", "method", "published, %", "parameters", "source")
    made = table("Recipes", columns, left={*columns} - {"parameters"}, whole=["method"], box=SIMPLE)
    for row in found:
        mean, std = row["published"].get(row["method"], (None, None))
        published = "" if mean is None else percent(mean / 100, std and std / 100)
        size = "" if row["parameters"] is None else f"{row['parameters']:,}"
        made.add_row(row["name"], row["method"], published, size, row["source"])
    screen().print(made)


def entry(recipe: Any) -> dict[str, Any]:
    """Return one recipe as data; the network is built to count its parameters."""
    from gamlp.methods import method_named
    from gamlp.model import build_network, count_parameters

    settings = recipe.resolve(method_named(recipe.method))
    return {
        **{key: getattr(recipe, key) for key in ("name", "title", "source", "method")},
        "published": {name: list(value) for name, value in recipe.published.items()},
        "parameters": count_parameters(build_network(settings, **recipe.sizes)) if recipe.sizes else None,
        "settings": settings.model_dump(mode="json"),
    }
