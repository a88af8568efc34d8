"""Trees that are read off scikit-learn's booster say what it says; rounds are chosen on validation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from gamlp.errors import SettingsError
from gamlp.graph.build.new_nodes import NewNodes
from gamlp.graph.graph import Graph
from gamlp.methods import boosting, method_named
from gamlp.methods.base import labels_of
from gamlp.model_file import load_fitted
from gamlp.pipeline import Pipeline
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import load_recipe


def fit(graph, **settings):
    method = method_named("boosting")
    return Pipeline(method, method.settings_from({"epochs": 6, "evaluate_every": 2, **settings})).fit(
        graph, graph.split, 0
    )


@pytest.mark.parametrize("classes", [2, 4])
def test_tensors_say_what_the_booster_says(classes):
    random = np.random.default_rng(classes)
    rows = random.normal(size=(600, 3, 4)).astype(np.float32)
    labels = np.digitize(rows[:, 0, 0] + rows[:, 2, 1] ** 2, np.linspace(0.3, 1.5, classes - 1))
    booster = HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=7, random_state=0)
    booster.fit(rows[:500].reshape(500, -1), labels[:500])
    trees = boosting.trees_of(booster, 3, 4, classes)
    assert trees.leaves == sum(tree.get_n_leaf_nodes() for each in booster._predictors for tree in each)
    said = trees(torch.from_numpy(rows)).logits
    np.testing.assert_allclose(said.softmax(dim=1), booster.predict_proba(rows.reshape(600, -1)), rtol=1e-4, atol=1e-5)


def test_a_threshold_in_single_precision_parts_the_same_rows():
    """0.1 in double precision lies below its neighbour in single precision, which is then on the right of it."""
    thresholds = np.array([0.1, 0.5, np.float64(np.float32(0.3)), -0.1])
    values = np.array([np.float32(0.1), np.nextafter(np.float32(0.1), np.float32(0))])
    assert float(values[0]) > 0.1 > float(values[1])
    single = boosting.at_most(thresholds)
    assert single.dtype == np.float32
    assert (values[0] <= single[0], values[1] <= single[0]) == (False, True)
    assert (single.astype(np.float64) <= thresholds).all()
    np.testing.assert_array_equal(single[1:3], thresholds[1:3])


def test_a_class_that_no_node_trains_is_never_said(planted):
    """Class 0 keeps its place, with a probability of nearly nothing."""
    split = planted.split
    without = replace(split, train=split.train[planted.labels[split.train] != 0])
    said = fit(replace(planted, split=without)).uncalibrated
    assert said.shape[1] == len(planted.classes)
    assert said[:, 0].max() < 1e-6


def test_what_was_fitted_is_what_is_loaded(planted, tmp_path):
    fitted = fit(planted)
    fitted.save(tmp_path / "model")
    split = planted.split
    known = labels_of(planted.labels, split.train)
    said = load_fitted(tmp_path / "model").learned.predict(planted, known)
    np.testing.assert_array_equal(said.probabilities, fitted.uncalibrated)


def test_another_layout_of_the_trees_is_an_error_not_a_prediction(planted, monkeypatch):
    read = boosting.trees_of

    def turned(*words):
        trees = read(*words)
        trees.left, trees.right = trees.right, trees.left
        return trees

    monkeypatch.setattr(boosting, "trees_of", turned)
    with pytest.raises(SettingsError, match="could not be read"):
        fit(planted)


def test_rounds_that_make_validation_worse_are_left_out(planted):
    """With a rate of 1 the first rounds learn all that there is; what is kept is the best of what was looked at."""
    fitted = fit(planted, epochs=40, learning_rate=1.0, patience=8)
    history = fitted.learned.history
    best = max(history, key=lambda row: (row["valid_accuracy"], -row["valid_loss"]))
    trees = fitted.learned.networks[-1]
    assert len(trees.target) == best["epoch"] * (1 if len(planted.classes) == 2 else len(planted.classes))


def test_a_recipe_gives_it_what_it_reads_and_no_more(planted):
    settings = load_recipe("default").resolve(method_named("boosting"), {}, Outline.of(planted, planted.split))
    assert (settings.hops, settings.learning_rate, settings.epochs) == (3, 0.1, (100,))
    with pytest.raises(SettingsError, match="boosting has no setting 'hidden'"):
        method_named("boosting").settings_from({"hidden": 3})


def test_a_new_node_without_edges_is_told_by_its_own_features(planted):
    """By hand: its hops are its features and then zeros, as no neighbour sends anything."""
    fitted = fit(planted)
    adjacency = replace(planted.adjacency, indptr=np.zeros(2, np.int64), indices=np.zeros(0, np.int32))
    features = np.linspace(-1, 1, planted.features.shape[1], dtype=np.float32)[None]
    nodes = Graph(adjacency=adjacency, features=features, labels=np.full(1, -1), classes=planted.classes,
                  split=planted.split)  # fmt: skip
    nobody = np.zeros(0, np.int64)
    living = replace(fitted.living(planted, split=planted.split), trust=None)
    said = living.predict(NewNodes(nodes, nobody, nobody)).probabilities
    hops = torch.zeros(1, 4, features.shape[1])
    hops[0, 0] = torch.from_numpy(features[0])
    expected = fitted.learned.networks[-1](hops).logits.softmax(dim=1)
    np.testing.assert_allclose(said, expected, rtol=1e-6)
