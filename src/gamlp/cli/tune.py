"""gamlp tune: search for settings on the validation nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gamlp.cli import common
from gamlp.cli.common import Cache, Column, Device, Directed, Features, Json, Root, Seed, Set, What


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: gamlp tune cora --trials 50 --out cora-tuned.toml, then --recipe cora-tuned.toml")(
        tune
    )


def tune(
    what: What = None,
    *,
    method: Annotated[str | None, typer.Option(help="A method on hops; by default the recipe's.")] = None,
    recipe: common.Recipe = None,
    set_: Set = None,
    trials: Annotated[int | None, typer.Option(help="How many settings to try in all; 30 unless told.", min=1)] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds each trial trains.", min=1)] = 3,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", help="The recipe to write.")] = Path("tuned.toml"),
    study: Annotated[
        Path | None, typer.Option("--study", help="Where the trials are kept; by default beside the recipe.")
    ] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Take up the search of this study file.")] = None,
    root: Root = Path("data"),
    column: Column = None,
    features: Features = None,
    directed: Directed = False,
    device: Device = "cpu",
    cache: Cache = None,
    json: Json = False,
) -> None:
    """Search for settings by validation accuracy and write them as a recipe.

    A setting given with --set stays as it is. Test labels are not read.
    """
    from gamlp.cli.train import refuse_beside_resume
    from gamlp.runs import study as studies
    from gamlp.runs import tuning

    studies.optuna_or_error()
    if resume is not None:
        refuse_beside_resume(what=what, method=method, recipe=recipe, set_=set_, study=study)
        asked = studies.asked(resume)
        order, out, file, count = asked["order"], Path(asked["out"]), resume, trials or asked["trials"]
    else:
        place = (root, column, features, directed)
        order = new_order(what, method, recipe, set_, range(seed, seed + seeds), device, place)
        file, count = study or out.with_suffix(".study.sqlite"), trials or 30
    with common.shown_progress():
        graph = common.read_source(dict(order.source or {}))
        tuning.checked(graph, order, out)  # refuses before anything is written
        if resume is None:
            studies.begin(file, order, trials=count, out=out)
    with common.shown_progress(f"The trials so far are kept; go on with: gamlp tune --resume {file}"):
        result = tuning.tune(graph, order, trials=count, study_file=file, out=out, cache=cache)
    if json:
        common.print_json(result)
    else:
        show(result)


def new_order(
    what: list[str] | None,
    method: str | None,
    recipe: str | None,
    set_: list[str] | None,
    seeds: range,
    device: str,
    place: tuple[Path, list[str] | None, Path | None, bool],
) -> Any:
    """Return what each trial starts from."""
    from gamlp.cli.train import default_recipe, method_of
    from gamlp.runs.run import Order

    source = common.graph_source(what, *place)
    recipe = recipe or default_recipe(source["what"])
    return Order(method or method_of(recipe), recipe, common.overrides(set_), list(seeds), device, source)


def show(result: dict[str, Any]) -> None:
    """Say what was found and how to use it."""
    typer.echo(
        f"Best of {result['trials']} trials ({result['pruned']} given up early): "
        f"{100 * result['best_valid_accuracy']:.2f} % on validation; "
        f"the recipe as it was: {100 * result['start_valid_accuracy']:.2f} %."
    )
    for key, value in result["changes"].items():
        typer.echo(f"  {key} = {value}")
    typer.echo(f"Use it with: gamlp train … --recipe {result['out']}")
