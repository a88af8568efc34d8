"""gamlp tune: search for settings on the validation nodes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from gamlp.cli import common
from gamlp.cli.options import (
    ComputeOptions,
    GraphOptions,
    Json,
    Recipe,
    Seed,
    Set,
    refuse_beside,
    seeds_from,
    spelled_out,
)
from gamlp.cli.screen import say
from gamlp.cli.train import new_spec


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: gamlp tune cora --trials 50 --out cora-tuned.toml, then --recipe cora-tuned.toml")(
        spelled_out(tune)
    )


def tune(
    graph: GraphOptions,
    *,
    method: Annotated[str | None, typer.Option(help="A method on hops; by default the recipe's.")] = None,
    recipe: Recipe = None,
    set_: Set = None,
    trials: Annotated[int | None, typer.Option(help="How many settings to try in all; 30 unless told.", min=1)] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds each trial trains.", min=1)] = 3,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", help="The recipe to write.")] = Path("tuned.toml"),
    study: Annotated[
        Path | None, typer.Option("--study", help="Where the trials are kept; by default beside the recipe.")
    ] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Take up the search of this study file.")] = None,
    compute: ComputeOptions,
    json: Json = False,
) -> None:
    """Search for settings by validation accuracy and write them as a recipe.

    A setting given with --set stays as it is. Test labels are not read.
    """
    from gamlp.runs import study as studies
    from gamlp.runs import tuning

    studies.optuna_or_error()
    with common.shown_progress():
        if resume is not None:
            refuse_beside(
                "resume", "A search goes on as it was begun, for more --trials perhaps: leave it out.", but=("trials",)
            )
            spec = studies.asked(resume)
            spec = spec.model_copy(update={"trials": trials or spec.trials})
            read, file = common.read_source(spec.source), resume
        else:
            file = study or out.with_suffix(".study.sqlite")
            read, start = new_spec(graph, compute, method, recipe, set_, seeds_from(seed, seeds))
            spec = studies.SearchSpec(**dict(start), trials=trials or 30, out=out.resolve())
        tuning.checked(read, spec)  # refuses before anything is written
        if resume is None:
            studies.begin(file, spec)
    again = shlex.join(["gamlp", "tune", "--resume", str(file)])
    with common.shown_progress(f"The trials so far are kept; go on with: {again}"):
        result = tuning.tune(read, spec, study_file=file)
    if json:
        common.print_json(result)
    else:
        show(result)


def show(result: dict[str, Any]) -> None:
    """Say what was found and how to use it."""
    say(
        f"Best of {result['trials']} trials ({result['pruned']} given up early): "
        f"{100 * result['best_valid_accuracy']:.2f} % on validation; "
        f"the recipe as it was: {100 * result['start_valid_accuracy']:.2f} %."
    )
    for key, value in result["changes"].items():
        say(f"  {key} = {value}")
    say(f"Use it with: gamlp train … --recipe {result['out']}")
