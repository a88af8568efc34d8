"""Search for the settings of a method that classify the validation nodes best.

A trial is the mean validation accuracy over the seeds. After each seed but the last, a trial whose mean so far is below
the median of the others at that point is given up. The first trial is the recipe as it is, so the result is never worse
on validation than what it began with. Labels outside train and valid are taken out of the graph before anything runs.

The suggestions of trial t are a function of (seed, t, the trials before), so a search that was interrupted goes on as
if it had not been.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gamlp.errors import InputError, SettingsError, SplitError
from gamlp.graph.graph import Graph
from gamlp.methods import Method, method_named
from gamlp.pipeline import hide_labels as hide
from gamlp.progress import progress
from gamlp.recipes.recipe import load_recipe
from gamlp.recipes.writer import write_recipe
from gamlp.runs.run import Order
from gamlp.runs.search_space import suggested
from gamlp.runs.study import optuna_or_error, study_in
from gamlp.settings import Settings, settings_from
from gamlp.train.batches import seed_of
from gamlp.train.one_seed import Task, train_seed
from gamlp.train.prepare import Workshop

if TYPE_CHECKING:
    import optuna


def tune(
    graph: Graph, order: Order, *, trials: int, study_file: Path, out: Path, cache: Path | None = None
) -> dict[str, Any]:
    """Run trials until the study holds `trials` of them, and write the best settings as a recipe."""
    start = checked(graph, order, out)
    workshop = Workshop(graph, cache=cache, device=order.device)
    with study_in(study_file) as study:
        check_graph(study, graph, study_file)
        give_up_running(study)
        with progress("trials", total=trials) as advance:
            advance(len(finished(study)))
            while len(finished(study)) < trials:
                run_trial(study, workshop, graph, order, start)
                advance(1, note=f"best valid {100 * study.best_value:.2f} %")
        return written(study, graph, order, start, out) | {"study": str(study_file)}


def checked(graph: Graph, order: Order, out: Path) -> Settings:
    """Return the settings that the search starts from; refuse what cannot be searched."""
    if out.suffix != ".toml":
        raise InputError(f"A recipe cannot be written as '{out.name}'.\nUse a name that ends in .toml.")
    task = order.task(graph)
    if task.method.kind != "network" or task.settings is None:
        raise SettingsError(f"{order.method} has nothing to search for.\nName a method on hops, as gamlp-jk.")
    if not len(graph.split_for(order.seeds[0]).valid):
        raise SplitError("The split has no validation nodes.\nSettings are chosen on these; mark some as valid.")
    settings: Settings = task.settings
    return settings


def check_graph(study: optuna.Study, graph: Graph, file: Path) -> None:
    """Refuse to go on with a study of another graph."""
    if study.user_attrs.setdefault("fingerprint", graph.fingerprint) != graph.fingerprint:
        raise InputError(
            f"{file} is a study of another graph.\nThe files have changed; begin anew with another --study."
        )
    study.set_user_attr("fingerprint", graph.fingerprint)


def give_up_running(study: optuna.Study) -> None:
    """Close the trial that a kill has left open."""
    states = optuna_or_error().trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=[states.RUNNING]):
        study.tell(trial.number, state=states.FAIL)


def finished(study: optuna.Study) -> list[Any]:
    """Return the trials that ran to their end or were pruned."""
    states = optuna_or_error().trial.TrialState
    return list(study.get_trials(deepcopy=False, states=[states.COMPLETE, states.PRUNED]))


def run_trial(study: optuna.Study, workshop: Workshop, graph: Graph, order: Order, start: Settings) -> None:
    """Suggest settings, train the seeds, and tell the study what came of it."""
    optuna = optuna_or_error()
    method, count = method_named(order.method), len(finished(study))
    study.sampler = optuna.samplers.TPESampler(
        seed=seed_of(order.seeds[0], count) % 2**32, multivariate=False, constant_liar=False
    )
    trial = study.ask()
    changes, settings = suggested(trial, method, start, order.overrides) if count else ({}, start)
    trial.set_user_attr("changes", changes)
    scores: list[float] = []
    try:
        for step, seed in enumerate(order.seeds):
            scores.append(valid_accuracy(workshop, graph, Task(method, settings, {}, order.device), seed))
            trial.report(fmean(scores), step)
            if step + 1 < len(order.seeds) and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                return
        study.tell(trial, fmean(scores))
    except BaseException:
        if not study.trials[trial.number].state.is_finished():
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        raise


def valid_accuracy(workshop: Workshop, graph: Graph, task: Task, seed: int) -> float:
    """Train one seed on a graph without test labels."""
    split = graph.split_for(seed)
    workshop.graph = replace(hide(graph, split), split=split)  # the same adjacency and features: hops stay valid
    return float(train_seed(workshop, task, seed=seed, folder=None)["valid_accuracy"])


def written(study: optuna.Study, graph: Graph, order: Order, start: Settings, out: Path) -> dict[str, Any]:
    """Write the recipe of the best trial and return the result."""
    best = study.best_trial
    settings = settings_from({**start.model_dump(), **best.user_attrs["changes"]})
    trials = finished(study)
    source = (
        f"tuned by gamlp tune on {graph.name}: {len(trials)} trials, validation accuracy {100 * study.best_value:.2f} %"
        f" over {len(order.seeds)} seeds, from recipe {order.recipe}"
    )
    write_recipe(out, content(method_named(order.method), settings, order, title=f"{graph.name}, tuned", source=source))
    return {
        "dataset": graph.name,
        "method": order.method,
        "best_valid_accuracy": study.best_value,
        "start_valid_accuracy": trials[0].value,
        "trials": len(trials),
        "pruned": sum(trial.state.name == "PRUNED" for trial in trials),
        "changes": best.user_attrs["changes"],
        "settings": settings.model_dump(mode="json"),
        "out": str(out),
    }


def content(method: Method, settings: Settings, order: Order, *, title: str, source: str) -> dict[str, Any]:
    """Return a recipe that resolves to exactly `settings` for this method."""
    values: Mapping[str, Any] = settings.model_dump(mode="json")
    own = {key: values[key] for key, fixed in method.fixed.items() if values[key] != fixed}
    published = load_recipe(order.recipe).published
    tables = {
        "published": {name: [mean] if std is None else [mean, std] for name, (mean, std) in published.items()},
        "settings": {key: value for key, value in values.items() if key not in method.fixed},
        "methods": {method.name: own} if own else {},
    }
    words = {"title": title, "source": source, "method": method.name}
    return words | {name: table for name, table in tables.items() if table}
