"""Search for the settings of a method that classify the validation nodes best.

A trial is the mean over the seeds of the metric on validation (`metric`: the accuracy unless told). After each seed but
the last, a trial whose mean so far is below the median of the others at that point is given up. The first trial is the
recipe as it is, so the result is never worse on validation than what it began with. Labels outside train and valid are
taken out of the graph before anything runs.

SPACE says which settings a search tries, and which values of each. A setting is left alone where the method fixes it,
where the user has set it, and where it would change nothing: label hops without labels, a threshold without stages. The
order matters: a setting stands below what it depends on.

The suggestions of trial t are a function of (seed, t, the trials before), so a search that was interrupted goes on as
if it had not been.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gamlp.errors import InputError, SettingsError, SplitError
from gamlp.graph.graph import Graph
from gamlp.methods import Method, method_named
from gamlp.pipeline import Pipeline, hide_labels
from gamlp.progress import progress
from gamlp.recipes.recipe import Published, write_recipe
from gamlp.runs.comparison import published_in
from gamlp.runs.run import chosen_by, hop_source_of
from gamlp.runs.seed import train_seed
from gamlp.runs.spec import check_same_graph
from gamlp.runs.study import SearchSpec, optuna_or_error, study_in
from gamlp.settings import Settings, settings_from
from gamlp.storage.locks import locked
from gamlp.targets.objective import Objective
from gamlp.targets.registry import kind_of
from gamlp.train.batches import seed_of
from gamlp.train.hop_source import HopSource

if TYPE_CHECKING:
    import optuna

Suggest = Callable[["optuna.Trial", str], Any]


def choice(*values: Any) -> Suggest:
    """One of a few values."""
    return lambda trial, key: trial.suggest_categorical(key, list(values))


def whole(low: int, high: int) -> Suggest:
    """A whole number, both ends included."""
    return lambda trial, key: trial.suggest_int(key, low, high)


def steps(low: float, high: float, step: float) -> Suggest:
    """A number by steps, both ends included."""
    return lambda trial, key: round(trial.suggest_float(key, low, high, step=step), 10)


def logarithmic(low: float, high: float) -> Suggest:
    """A number on a logarithmic scale, to three digits."""
    return lambda trial, key: float(f"{trial.suggest_float(key, low, high, log=True):.3g}")


SPACE = {
    "feature_scaling": choice("none", "row", "unit", "standard"),
    "normalization": choice(0.0, 0.5, 1.0),
    "self_loops": choice(True, False),
    "hops": whole(2, 12),
    "hop_layers": choice(0, 1, 2),
    "hidden": choice(64, 128, 256, 512),
    "head_layers": whole(1, 4),
    "residual": choice(True, False),
    "batch_norm": choice(True, False),
    "jk_layers": whole(1, 4),
    "decay": steps(0.05, 0.5, 0.05),
    "input_dropout": steps(0.0, 0.8, 0.1),
    "dropout": steps(0.0, 0.8, 0.1),
    "labels": choice(True, False),
    "label_hops": whole(1, 10),
    "learning_rate": logarithmic(1e-4, 1e-1),
    "weight_decay": choice(0.0, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3),
    "threshold": steps(0.5, 0.95, 0.05),
    "temperature": choice(1.0, 0.5, 0.1),
    "gamma": logarithmic(0.03, 10.0),
}


def tune(graph: Graph, spec: SearchSpec, *, study_file: Path) -> dict[str, Any]:
    """Run trials until the study holds as many as asked for, and write the best settings as a recipe."""
    start = checked(graph, spec)
    check_same_graph(spec, graph)
    source, kind = hop_source_of(spec, None), kind_of(graph.labels)
    with locked(study_file), locked(spec.out), study_in(study_file) as study:
        give_up_running(study)
        with progress("trials", total=spec.trials) as advance:
            advance(len(finished(study)))
            while len(finished(study)) < spec.trials:
                run_trial(study, source, graph, spec, start)
                advance(1, note=f"best {Objective(kind, kind.metric(start)).note(study.best_value)}")
        return written(study, graph, spec, start) | {"study": str(study_file)}


def checked(graph: Graph, spec: SearchSpec) -> Settings:
    """Return the settings that the search starts from; refuse what cannot be searched."""
    if spec.out.suffix != ".toml":
        raise InputError(f"A recipe cannot be written as '{spec.out.name}'.\nUse a name that ends in .toml.")
    if not method_named(spec.method).on_hops:
        raise SettingsError(f"{spec.method} has nothing to search for.\nName a method on hops, as gamlp-jk.")
    if not len(graph.split_for(spec.seeds[0]).valid):
        raise SplitError("The split has no validation nodes.\nSettings are chosen on these; mark some as valid.")
    return settings_from(spec.settings)


def give_up_running(study: optuna.Study) -> None:
    """Close the trial that a kill has left open."""
    failed = optuna_or_error().trial.TrialState.FAIL
    for trial in study.get_trials(deepcopy=False):
        if trial.state.name == "RUNNING":
            study.tell(trial.number, state=failed)


def finished(study: optuna.Study) -> list[Any]:
    """Return the trials that ran to their end or were pruned."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name in ("COMPLETE", "PRUNED")]


def run_trial(study: optuna.Study, source: HopSource, graph: Graph, spec: SearchSpec, start: Settings) -> None:
    """Suggest settings, train the seeds, and tell the study what came of it."""
    optuna = optuna_or_error()
    method, count = method_named(spec.method), len(finished(study))
    drawn = seed_of(spec.seeds[0], count) % 2**32
    study.sampler = optuna.samplers.TPESampler(seed=drawn, multivariate=False, constant_liar=False)
    trial = study.ask()
    changes, settings = suggested(trial, graph, method, start, spec.overrides) if count else ({}, start)
    trial.set_user_attr("changes", changes)
    pipeline = Pipeline(method, settings, device=spec.device, hop_source=source)
    scores: list[float] = []
    try:
        for step, seed in enumerate(spec.seeds):
            scores.append(valid_score(pipeline, graph, seed))
            trial.report(fmean(scores), step)
            if step + 1 < len(spec.seeds) and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                return
        study.tell(trial, fmean(scores))
    except BaseException:
        give_up_running(study)
        raise


def valid_score(pipeline: Pipeline, graph: Graph, seed: int) -> float:
    """Train one seed on a graph without test labels; return what is better the larger."""
    split = graph.split_for(seed)
    hidden = replace(hide_labels(graph, split), split=split)  # the same adjacency and features: hops stay valid
    metric = kind_of(graph.labels).metric(pipeline.settings)
    return chosen_by(train_seed(pipeline, hidden, seed=seed, folder=None), metric)


def written(study: optuna.Study, graph: Graph, spec: SearchSpec, start: Settings) -> dict[str, Any]:
    """Write the recipe of the best trial and return the result."""
    changes, trials = study.best_trial.user_attrs["changes"], finished(study)
    metric = kind_of(graph.labels).metric(start)
    best, first = metric.better(study.best_value), metric.better(trials[0].value)
    settings = settings_from({**start.model_dump(), **changes})
    source = (
        f"tuned by gamlp tune on {graph.name}: {len(trials)} trials, validation {metric.title} {metric.said(best)}"
        f" over {len(spec.seeds)} seeds, from recipe {spec.recipe}"
    )
    words = {"title": f"{graph.name}, tuned", "source": source, "method": spec.method}
    write_recipe(spec.out, words | recipe_tables(method_named(spec.method), settings, published_in(spec.recipe)))
    pruned = sum(trial.state.name == "PRUNED" for trial in trials)
    return {
        "dataset": graph.name, "method": spec.method, "metric": metric.name, f"best_valid_{metric.name}": best,
        f"start_valid_{metric.name}": first, "trials": len(trials), "pruned": pruned, "changes": changes,
        "settings": settings.model_dump(mode="json"), "out": str(spec.out),
    }  # fmt: skip


def recipe_tables(method: Method, settings: Settings, published: Mapping[str, Published]) -> dict[str, Any]:
    """Return the tables of a recipe that resolves to exactly `settings` for this method."""
    values = settings.model_dump(mode="json")
    own = {key: values[key] for key, fixed in method.fixed.items() if values[key] != fixed}
    tables = {
        "published": {name: [mean] if std is None else [mean, std] for name, (mean, std) in published.items()},
        "settings": {key: value for key, value in values.items() if key not in method.fixed},
        "methods": {method.name: own} if own else {},
    }
    return {name: table for name, table in tables.items() if table}


def suggested(
    trial: optuna.Trial, graph: Graph, method: Method, start: Settings, pinned: Collection[str]
) -> tuple[dict[str, Any], Settings]:
    """Return what the search changes in `start`, and the settings that this gives."""
    changes: dict[str, Any] = {}
    settings = start
    for key, suggest in SPACE.items():
        if key not in pinned and key not in method.fixed and key not in method.idle(graph, settings):
            changes[key] = suggest(trial, key)
            settings = settings.model_copy(update={key: changes[key]})
    return changes, settings_from(settings.model_dump())
