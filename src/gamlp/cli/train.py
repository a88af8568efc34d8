"""gamlp train, config and tune: from a graph to a run directory, a run as a file, settings that suit a graph."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from gamlp.cli import complete
from gamlp.cli.begin import announce, asked, begun_with, new_folder, new_spec, taken_up
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, Metric, Recipe, Seed, Set, go_on
from gamlp.cli.screen import say, screen, table
from gamlp.errors import SettingsError


def train(
    graph: GraphOptions,
    *,
    method: Annotated[
        str | None,
        Option(help="A method's name, as gamlp-jk+rlu; by default the recipe's.", autocompletion=complete.methods),
    ] = None,
    recipe: Recipe = None,
    set_: Set = None,
    metric: Metric = None,
    minutes: Annotated[
        float | None,
        Option(help="Time to try methods in, all seeds together; 3 for each unless told; of a portfolio.", min=0.01),
    ] = None,
    seeds: Annotated[int, Option(help="How many seeds; a graph without a fixed split draws one for each.", min=1)] = 3,
    seed: Seed = 0,
    out: Annotated[Path | None, Option(help="The run directory; by default a new one in runs/.")] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace a run that is in --out.")] = False,
    resume: Annotated[Path | None, Option(help="Take up a run that was interrupted.")] = None,
    start: Annotated[
        Path | None,
        Option("--from", metavar="RUN", help="Begin with a run's weights; by default on its own graph as it is now."),
    ] = None,
    compute: ComputeOptions,
) -> Answer:
    """Train a method on a graph and keep everything in a run directory."""
    from gamlp.explain.report import own_page
    from gamlp.runs.run import begun, remove_run, train_together
    from gamlp.train.distributed import joined, launched

    if start is not None and resume is None:
        read, spec = begun_with(start, graph, compute, set_)
    elif resume is None:
        method = method or ("portfolio" if minutes is not None else None)
        own = {**asked(set_, seed, seeds, metric, minutes), "network": launched()}  # whose work several ranks share
        read, spec = new_spec(graph, compute, recipe, method, **own)
    else:
        read, spec = taken_up(resume, begun)
    folder = resume or out or new_folder(f"{read.name}-{spec.method}")
    announce(read, spec, named=any(given is not None for given in (method, resume, start)))
    go_on("train", folder)
    if overwrite and out is None:
        raise SettingsError("--overwrite was given without --out.\nSay which run is to be replaced.")
    with joined(spec.device) as together:
        folder = together.from_first(folder)
        if overwrite and together.rank == 0:
            remove_run(folder)
        result = train_together(read, spec, folder=folder, together=together)
        if result is None:
            return None
        result["report"] = str(own_page(read, folder))
    return result, partial(show, result)


def show(result: dict[str, Any]) -> None:
    """Print the final table."""
    from gamlp.runs.record import baseline_of, metric_of
    from gamlp.targets.metrics import METRICS

    made = table(f"{result['method']} on {result['dataset']}", ("", "valid", "test"))
    for metric in (*METRICS.values(), baseline_of(result)):
        keys = [f"{part}_{metric.name}" for part in ("valid", "test")]
        made.add_row(metric.heading, *(metric.text(result.get(key), result.get(f"{key}_std")) for key in keys))
    screen().print(made)
    if tried := best_run(result).get("tried"):
        screen().print(tried_table(tried, metric_of(result)))
    if warning := shift_warning(result):
        say(warning)
    count = len(result["seeds"])
    spread = f"Mean ± std over {count} seeds" if count > 1 else "1 seed"
    size = f"{result['seconds_per_seed']:.1f} s each, {result['parameters']:,} parameters"
    say(f"{spread}, {size}; chosen by validation {metric_of(result).title}.")
    if "from" in result:
        say(became(result))
    say(f"Everything is in {result['run']}: report.html to look at, predictions.parquet to use.")


def shift_warning(result: dict[str, Any]) -> str | None:
    """Say whether test nodes are unlike the validation nodes of the best seed, seen without labels."""
    from gamlp.trust.shift import warning_of

    return warning_of(best_run(result).get("trust", {}).get("shift", {}), "test nodes")


def best_run(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of the best seed."""
    found: dict[str, Any] = next(run for run in result["runs"] if run["seed"] == result["best_seed"])
    return found


def tried_table(tried: list[dict[str, Any]], metric: Any) -> Any:
    """Return what a portfolio tried in its best seed, and what each weighs in the mixture."""
    made = table("Tried", ("method", f"valid {metric.title}", "weight", "s"))
    for line in tried:
        done = line["seconds"] is not None
        share = f"{line['weight']:.2f}" if line["weight"] else "–"
        took = f"{line['seconds']:.1f}" if done else line.get("why", "no time")
        made.add_row(line["method"], metric.text(line["valid"]) if done else "–", share, took)
    return made


def became(result: dict[str, Any]) -> str:
    """Say whether a run became better than the one that it began with."""
    from gamlp.runs.record import metric_of
    from gamlp.runs.start import START

    metric = metric_of(result)
    before, after = result[START.format(metric.name)], result[f"valid_{metric.name}"]
    if before is None or after is None:
        return f"Begun with {result['from']}; without validation nodes, nobody can say whether it became better."
    gain = metric.better(after) - metric.better(before)
    words = "better" if gain > 0 else "no better" if gain == 0 else "worse"
    return (
        f"Begun with {result['from']}, which has {metric.said(before)} on validation here ({metric.title}); "
        f"trained again {metric.said(after)}: {words}."
    )


def config(
    run: Annotated[Path, Argument(help="A run directory made by gamlp train.")],
    *,
    out: Annotated[
        Path | None, Option("--out", "-o", help="The .toml file to write; by default it is printed.")
    ] = None,
) -> Answer:
    """Write what a run is as a configuration file, which gamlp train takes."""
    import tomllib

    from gamlp.cli.config import config_of
    from gamlp.runs.record import read_run
    from gamlp.storage.files import replacing

    text = config_of(read_run(run))
    if out is not None:
        with replacing(out) as file:
            file.write(text.encode())
    words = text.rstrip() if out is None else f"{out}: repeat the run with gamlp train {out}"
    return {"run": str(run), "out": None if out is None else str(out), "config": tomllib.loads(text)}, words


def tune(
    graph: GraphOptions,
    *,
    method: Annotated[str | None, Option(help="A method on hops; by default the recipe's.")] = None,
    recipe: Recipe = None,
    set_: Set = None,
    metric: Metric = None,
    trials: Annotated[int | None, Option(help="How many settings to try in all; 30 unless told.", min=1)] = None,
    seeds: Annotated[int, Option(help="How many seeds each trial trains.", min=1)] = 3,
    seed: Seed = 0,
    out: Annotated[Path, Option(help="The recipe to write.")] = Path("tuned.toml"),
    study: Annotated[Path | None, Option(help="Where the trials are kept; by default beside the recipe.")] = None,
    resume: Annotated[Path | None, Option(help="Take up the search of this study file.")] = None,
    compute: ComputeOptions,
) -> Answer:
    """Search for settings by the metric on validation, usually accuracy, and write them as a recipe.

    A setting given with --set stays as it is. Test labels are not read.
    """
    from gamlp.runs import study as studies
    from gamlp.runs import tuning

    studies.optuna_or_error()
    if resume is None:
        read, start = new_spec(graph, compute, recipe, method, **asked(set_, seed, seeds, metric), network=True)
        spec = studies.SearchSpec(**dict(start), trials=trials or 30, out=out.resolve())
    else:
        words = "A search goes on as it was begun, for more --trials perhaps"
        read, spec = taken_up(resume, studies.asked, what=words, but=["trials"])
        spec = spec.model_copy(update={"trials": trials or spec.trials})
    tuning.checked(read, spec)  # refuses before anything is written
    file = resume or study or out.with_suffix(".study.sqlite")
    if resume is None:
        studies.begin(file, spec)
    go_on("tune", file, "The trials so far are kept")
    result = tuning.tune(read, spec, study_file=file)
    return result, found(result)


def found(result: dict[str, Any]) -> str:
    """Say what was found and how to use it."""
    from gamlp.runs.record import metric_of

    metric = metric_of(result)
    best, start = (metric.said(result[f"{which}_valid_{metric.name}"]) for which in ("best", "start"))
    words = (
        f"Best of {result['trials']} trials ({result['pruned']} given up early): "
        f"{best} on validation ({metric.title}); the recipe as it was: {start}."
    )
    changes = [f"  {key} = {value}" for key, value in result["changes"].items()]
    return "\n".join([words, *changes, f"Use it with: gamlp train … --recipe {result['out']}"])
