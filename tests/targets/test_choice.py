"""One setting, `metric`, chooses epochs, stages, α, correct-and-smooth, tuned settings and the best seed."""

import logging
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from gamlp.cli.begin import asked
from gamlp.errors import SettingsError
from gamlp.methods import method_named
from gamlp.methods.label_propagation import FittedLabelPropagation
from gamlp.pipeline import Pipeline
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import Recipe
from gamlp.runs.run import chosen_by
from gamlp.targets.metrics import METRICS
from gamlp.targets.objective import Objective
from gamlp.targets.registry import SINGLE

ONES = np.ones(3, np.int64)
SHORT = {"epochs": [8, 4], "hidden": 8, "hops": 2, "learning_rate": 0.05, "keep_stage": "best", "threshold": 0.4}


def fitted(graph, name, **settings):
    method = method_named(name)
    return Pipeline(method, method.settings_from({**method.fixed, **settings})).fit(graph, graph.split, 0)


@pytest.mark.parametrize("metric", ["default", *METRICS])
def test_the_best_epoch_and_stage_are_those_of_the_metric(planted, metric):
    found = fitted(planted, "gamlp-jk+rlu", **SHORT, metric=metric)
    chosen = METRICS["accuracy" if metric == "default" else metric]
    key = f"valid_{chosen.name}"
    for number, stage in enumerate(found.facts["stages"], start=1):
        entries = [entry for entry in found.facts["history"] if entry["stage"] == number]
        best = max(entries, key=lambda entry: (chosen.better(entry[key]), -entry["valid_log_loss"]))
        assert (stage["best_epoch"], stage[key]) == (best["epoch"], best[key])
    kept = max(found.facts["stages"], key=lambda stage: chosen.better(stage[key]))[key]
    said = found.uncalibrated[planted.split.valid]
    assert SINGLE.scores(said, planted.labels[planted.split.valid])[chosen.name] == pytest.approx(kept, abs=1e-6)


def test_message_passing_keeps_the_epoch_of_the_metric(planted):
    found = fitted(planted, "gcn", epochs=8, hidden=8, metric="average_precision")
    best = max(entry["valid_average_precision"] for entry in found.facts["history"])
    valid = planted.split.valid
    said = SINGLE.scores(found.uncalibrated[valid], planted.labels[valid])
    assert said["average_precision"] == pytest.approx(best, abs=1e-9)


def test_label_propagation_chooses_alpha_by_the_metric(planted, monkeypatch):
    scores = {0.1: [[0.9, 0.1, 0], [0.4, 0.6, 0]], 0.2: [[0.6, 0.4, 0], [0.1, 0.2, 0.7]]}
    labels = np.array([0, 1])  # 0.1 is right twice; made worse below, for the loss
    places = np.zeros(240, np.int64)
    places[planted.split.valid] = ([0, 1] * 23)[:45]

    def spread(self, graph, known, rows):
        return np.array(scores[self.alpha])[places if rows is None else places[rows]]

    monkeypatch.setattr(FittedLabelPropagation, "spread", spread)
    graph = planted.with_labels(np.where(np.isin(np.arange(240), planted.split.valid), 0, planted.labels))
    graph.labels[planted.split.valid] = labels[[0, 1] * 23][:45]
    assert fitted(graph, "label-propagation", alphas=[0.2, 0.1]).learned.alpha == 0.1
    scores[0.1][1] = [1 - 1e-9, 1e-9, 0]  # as often right as the other, and sure of a mistake
    assert fitted(graph, "label-propagation", alphas=[0.1, 0.2], metric="log_loss").learned.alpha == 0.2
    assert fitted(graph, "label-propagation", alphas=[0.1, 0.2]).learned.alpha == 0.1


def test_correct_and_smooth_is_chosen_by_the_metric(planted):
    plain = fitted(planted, "sgc", epochs=1, hops=1, metric="log_loss")
    better = fitted(planted, "sgc+cs", epochs=1, hops=1, metric="log_loss")
    valid = planted.split.valid
    losses = [
        SINGLE.scores(one.prediction.probabilities[valid], planted.labels[valid])["log_loss"] for one in (plain, better)
    ]
    assert losses[1] <= losses[0]


def test_the_best_seed_by_hand():
    seeds = [
        {"valid_accuracy": 0.9, "valid_roc_auc": 0.6, "valid_log_loss": 0.5},
        {"valid_accuracy": 0.8, "valid_roc_auc": 0.7, "valid_log_loss": 0.4},
        {"valid_accuracy": 0.7, "valid_roc_auc": None, "valid_log_loss": 0.3},
    ]

    def best(name, of=seeds):
        return of.index(max(of, key=lambda seed: chosen_by(seed, METRICS[name])))

    assert (best("accuracy"), best("log_loss"), best("roc_auc", seeds[:2])) == (0, 2, 1)
    assert best("roc_auc", [dict(seed, valid_roc_auc=None) for seed in seeds]) == 2  # the loss, where it is undefined


def test_where_validation_has_one_class_the_loss_chooses_and_says_so(caplog):
    with caplog.at_level(logging.WARNING):
        objective = Objective.of(SINGLE, Settings("roc_auc"), ONES, np.zeros(5, np.int64), classes=2)
    assert objective.metric.name == "log_loss"
    assert "ROC-AUC of the validation nodes is not defined" in caplog.text
    assert Objective.of(SINGLE, Settings("accuracy"), ONES, ONES, classes=2).metric.name == "accuracy"


class Settings:
    def __init__(self, metric):
        self.metric = metric


def test_the_option_and_the_setting_are_one():
    assert asked(None, 0, 1, "roc_auc") == asked(["metric=roc_auc"], 0, 1)
    assert asked(["metric=accuracy", "hops=2"], 0, 1, "roc_auc")["overrides"] == {"metric": "roc_auc", "hops": 2}


@pytest.mark.parametrize("name", ["gamlp-jk", "gcn", "label-propagation"])
def test_a_recipe_names_it_for_every_family(planted, name):
    recipe = Recipe("own", "own", settings={"metric": "macro_f1"})
    assert recipe.resolve(method_named(name), {}, Outline.of(planted, planted.split)).metric == "macro_f1"


def test_an_unknown_metric_is_refused_with_those_that_there_are():
    with pytest.raises(SettingsError, match=r"there is no such metric. Did you mean 'roc_auc'"):
        method_named("gcn").settings_from({"metric": "rocauc"})


def test_an_objective_cannot_be_changed_and_is_equal_to_itself_alone():
    """Its weights are an array, which says neither yes nor no to ==."""
    one, other = Objective(weights=np.ones(2)), Objective(weights=np.ones(2))
    assert {one} == {one} != {other}
    with pytest.raises(FrozenInstanceError):
        one.weights = None
