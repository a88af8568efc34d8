"""Class weights: as scikit-learn's, in the loss of both families, and nowhere else."""

import math

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight

from gamlp.errors import SettingsError
from gamlp.graph.splits import Split
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.settings import Settings
from gamlp.targets.objective import Objective
from gamlp.targets.registry import SINGLE
from gamlp.train.stage import StageData, stage_loss

LABELS = np.array([0, 0, 0, 1, 2, 2])


def balanced(train, classes=3):
    return Objective.of(SINGLE, Settings(class_weight="balanced"), train, train, classes=classes)


def test_weights_equal_those_of_scikit_learn():
    expected = compute_class_weight("balanced", classes=np.arange(3), y=LABELS)
    np.testing.assert_allclose(balanced(LABELS).weights, expected, rtol=1e-6)
    assert balanced(LABELS).weights[LABELS].mean() == pytest.approx(1)


def test_a_class_without_a_training_node_changes_nothing():
    np.testing.assert_allclose(balanced(LABELS, 4).weights, [*balanced(LABELS).weights, 1])


def test_the_loss_of_a_stage_by_hand():
    data = StageData(np.arange(4), np.array([0, 0, 0, 1]), objective=balanced(np.array([0, 0, 0, 1]), 2))
    logits = torch.tensor([[0.0, 0.0], [math.log(3), 0.0], [0.0, 0.0], [0.0, 0.0]])
    loss = stage_loss(logits, [np.arange(4), np.zeros(0, np.int64)], data, Settings())
    common, rare = 4 / (2 * 3), 4 / (2 * 1)
    by_hand = (common * (math.log(2) + math.log(4 / 3) + math.log(2)) + rare * math.log(2)) / 4
    assert float(loss) == pytest.approx(by_hand)


@pytest.mark.parametrize("name", ["gamlp-jk", "gcn"])
def test_a_rare_class_is_found_more_often(make_planted, name):
    graph = make_planted(classes=2, noise=3.0)
    train = np.sort(
        np.concatenate([np.flatnonzero(graph.labels == label)[:count] for label, count in ((0, 40), (1, 4))])
    )
    none = np.zeros(0, np.int64)
    method, said = method_named(name), {}
    for weight in ("none", "balanced"):
        settings = method.settings_from({"epochs": 20, "hidden": 8, "learning_rate": 0.01, "class_weight": weight})
        fitted = Pipeline(method, settings).fit(graph, Split(train, none, none), 0)
        said[weight] = fitted.prediction.probabilities[:, 1].mean()
    assert said["balanced"] > said["none"] + 0.1


def test_label_propagation_has_no_loss_and_refuses_weights():
    with pytest.raises(SettingsError, match="label-propagation has no setting 'class_weight'"):
        method_named("label-propagation").settings_from({"class_weight": "balanced"})
