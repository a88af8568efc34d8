"""gamlp recipes: what has been set before, with its source and its result."""

from __future__ import annotations

from typing import Any

import typer

from gamlp.cli import common
from gamlp.cli.common import AnySeed, Json


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(recipes)


def recipes(*, seed: AnySeed = 0, json: Json = False) -> None:
    """List the recipes with their source, what was published with them, and the network's size."""
    from gamlp.recipes import load_recipe, recipe_names

    found = [entry(load_recipe(name)) for name in recipe_names()]
    if json:
        common.print_json({"recipes": found})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Recipes", title_justify="left")
    for name in ("name", "method", "published test accuracy, %", "parameters", "source"):
        table.add_column(name, justify="right" if name == "parameters" else "left")
    for row in found:
        published = row["published"].get(row["method"])
        table.add_row(
            row["name"],
            row["method"],
            "" if published is None else f"{published[0]:.2f} ± {published[1]:.2f}",
            "" if row["parameters"] is None else f"{row['parameters']:,}",
            row["source"],
        )
    Console().print(table)


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
