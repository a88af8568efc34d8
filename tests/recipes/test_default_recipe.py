"""The default recipe where it could fail: features that say nothing, or that are scaled for another graph."""

from dataclasses import replace

import numpy as np
import pytest

from gamlp.methods import method_named
from gamlp.recipes.recipe import load_recipe
from gamlp.runs.run import train_run
from gamlp.runs.spec import RunSpec


def test_edges_alone_are_enough(make_planted):
    graph = make_planted(nodes=200, classes=3, features=8, degree=4, noise=1000.0, labelled=10)
    spec = RunSpec.of(graph, overrides={"epochs": [10, 5]})
    assert spec.method == "gamlp-recursive+rlu+scr+cs"
    found = train_run(graph, spec, folder=None)
    spread = train_run(graph, RunSpec.of(graph, "label-propagation"), folder=None)
    assert found["test_accuracy"] >= spread["test_accuracy"] - 0.05  # which finds 99 %, and the network alone a third


def test_rows_that_are_not_all_go_without_smoothing(make_planted):
    assert RunSpec.of(make_planted(), overrides={"rows": "labelled"}).method == "gamlp-recursive+rlu+scr"


@pytest.mark.parametrize("method", ["gcn", "appnp", "gamlp-jk"])
def test_features_are_scaled_as_suits_the_graph(make_planted, method):
    """Rows of bags of words by their length, numbers by columns; a recipe of a data set has its own."""
    numbers = make_planted(features=8)
    words = replace(numbers, features=(numbers.features > 1).astype(np.float32))
    for graph, kind in ((numbers, "standard"), (words, "unit")):
        assert RunSpec.of(graph, method).settings["feature_scaling"] == kind
    assert RunSpec.of(words, method, overrides={"feature_scaling": "row"}).settings["feature_scaling"] == "row"
    assert load_recipe("pubmed").resolve(method_named("gcn")).feature_scaling == "row"
