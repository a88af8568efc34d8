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
from gamlp.pipeline import Pipeline, hide_labels
from gamlp.progress import progress
from gamlp.recipes.recipe import write_recipe
from gamlp.runs.comparison import published_in
from gamlp.runs.run import hop_source_of
from gamlp.runs.search_space import suggested
from gamlp.runs.seed import train_seed
from gamlp.runs.spec import check_same_graph
from gamlp.runs.study import SearchSpec, optuna_or_error, study_in
from gamlp.settings import Settings, settings_from
from gamlp.storage.locks import locked
from gamlp.train.batches import seed_of
from gamlp.train.hop_source import HopSource

if TYPE_CHECKING:
    import optuna


def tune(graph: Graph, spec: SearchSpec, *, study_file: Path) -> dict[str, Any]:
    """Run trials until the study holds as many as asked for, and write the best settings as a recipe."""
    start = checked(graph, spec)
    check_same_graph(spec, graph)
    source = hop_source_of(spec, None)
    with locked(study_file), locked(spec.out), study_in(study_file) as study:
        give_up_running(study)
        with progress("trials", total=spec.trials) as advance:
            advance(len(finished(study)))
            while len(finished(study)) < spec.trials:
                run_trial(study, source, graph, spec, start)
                advance(1, note=f"best valid {100 * study.best_value:.2f} %")
        return written(study, graph, spec, start) | {"study": str(study_file)}


def checked(graph: Graph, spec: SearchSpec) -> Settings:
    """Return the settings that the search starts from; refuse what cannot be searched."""
    if spec.out.suffix != ".toml":
        raise InputError(f"A recipe cannot be written as '{spec.out.name}'.\nUse a name that ends in .toml.")
    method = method_named(spec.method)
    if not method.on_hops:
        raise SettingsError(f"{spec.method} has nothing to search for.\nName a method on hops, as gamlp-jk.")
    if not len(graph.split_for(spec.seeds[0]).valid):
        raise SplitError("The split has no validation nodes.\nSettings are chosen on these; mark some as valid.")
    return settings_from(spec.settings)


def give_up_running(study: optuna.Study) -> None:
    """Close the trial that a kill has left open."""
    states = optuna_or_error().trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=[states.RUNNING]):
        study.tell(trial.number, state=states.FAIL)


def finished(study: optuna.Study) -> list[Any]:
    """Return the trials that ran to their end or were pruned."""
    states = optuna_or_error().trial.TrialState
    return list(study.get_trials(deepcopy=False, states=[states.COMPLETE, states.PRUNED]))


def run_trial(study: optuna.Study, source: HopSource, graph: Graph, spec: SearchSpec, start: Settings) -> None:
    """Suggest settings, train the seeds, and tell the study what came of it."""
    optuna = optuna_or_error()
    method, count = method_named(spec.method), len(finished(study))
    study.sampler = optuna.samplers.TPESampler(
        seed=seed_of(spec.seeds[0], count) % 2**32, multivariate=False, constant_liar=False
    )
    trial = study.ask()
    changes, settings = suggested(trial, method, start, spec.overrides) if count else ({}, start)
    trial.set_user_attr("changes", changes)
    pipeline = Pipeline(method, settings, device=spec.device, hop_source=source)
    scores: list[float] = []
    try:
        for step, seed in enumerate(spec.seeds):
            scores.append(valid_accuracy(pipeline, graph, seed))
            trial.report(fmean(scores), step)
            if step + 1 < len(spec.seeds) and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                return
        study.tell(trial, fmean(scores))
    except BaseException:
        if not study.trials[trial.number].state.is_finished():
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        raise


def valid_accuracy(pipeline: Pipeline, graph: Graph, seed: int) -> float:
    """Train one seed on a graph without test labels."""
    split = graph.split_for(seed)
    hidden = replace(hide_labels(graph, split), split=split)  # the same adjacency and features: hops stay valid
    return float(train_seed(pipeline, hidden, seed=seed, folder=None)["valid_accuracy"])


def written(study: optuna.Study, graph: Graph, spec: SearchSpec, start: Settings) -> dict[str, Any]:
    """Write the recipe of the best trial and return the result."""
    best = study.best_trial
    settings = settings_from({**start.model_dump(), **best.user_attrs["changes"]})
    trials = finished(study)
    source = (
        f"tuned by gamlp tune on {graph.name}: {len(trials)} trials, validation accuracy {100 * study.best_value:.2f} %"
        f" over {len(spec.seeds)} seeds, from recipe {spec.recipe}"
    )
    write_recipe(
        spec.out, content(method_named(spec.method), settings, spec, title=f"{graph.name}, tuned", source=source)
    )
    return {
        "dataset": graph.name,
        "method": spec.method,
        "best_valid_accuracy": study.best_value,
        "start_valid_accuracy": trials[0].value,
        "trials": len(trials),
        "pruned": sum(trial.state.name == "PRUNED" for trial in trials),
        "changes": best.user_attrs["changes"],
        "settings": settings.model_dump(mode="json"),
        "out": str(spec.out),
    }


def content(method: Method, settings: Settings, spec: SearchSpec, *, title: str, source: str) -> dict[str, Any]:
    """Return a recipe that resolves to exactly `settings` for this method."""
    values: Mapping[str, Any] = settings.model_dump(mode="json")
    own = {key: values[key] for key, fixed in method.fixed.items() if values[key] != fixed}
    published = published_in(spec.recipe)
    tables = {
        "published": {name: [mean] if std is None else [mean, std] for name, (mean, std) in published.items()},
        "settings": {key: value for key, value in values.items() if key not in method.fixed},
        "methods": {method.name: own} if own else {},
    }
    words = {"title": title, "source": source, "method": method.name}
    return words | {name: table for name, table in tables.items() if table}
