"""Several labels a node: losses against torch and by hand, metrics against scikit-learn, nothing that leaks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn
from torch.nn.functional import binary_cross_entropy_with_logits

from gamlp import GAMLPClassifier
from gamlp.errors import SettingsError
from gamlp.labels import (
    consistency_loss,
    distillation_loss,
    enlarged_training_set,
    initial_labels,
    label_propagation,
    reliable_set,
)
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.normalize import Normalization
from gamlp.settings import Settings
from gamlp.targets.objective import Objective
from gamlp.targets.registry import MULTI, kind_of

SHORT = {"epochs": [6, 4], "hidden": 8, "hops": 2, "learning_rate": 0.05, "threshold": 0.6, "label_folds": 2}
LABELS = np.array([[1, 0], [1, -1], [0, 0], [1, 1]], np.int8)


@pytest.fixture
def several(planted):
    """The planted classes as labels, the second of which those of the first class have too, with gaps."""
    random = np.random.default_rng(0)
    labels = np.eye(3, dtype=np.int8)[planted.labels]
    labels[:, 1] |= labels[:, 0]
    gaps = random.random(labels.shape) < 0.15
    gaps[gaps.all(axis=1)] = False
    labels[gaps] = -1
    return replace(planted, labels=labels).check()


def fitted(graph, name, **settings):
    method = method_named(name)
    own = {key: value for key, value in settings.items() if method.takes(key)}
    return Pipeline(method, method.settings_from({**method.fixed, **own})).fit(graph, graph.split, 0)


def test_the_loss_without_gaps_is_that_of_torch():
    logits, labels = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([[1, 0, 1]] * 5)
    expected = binary_cross_entropy_with_logits(logits, labels.float())
    torch.testing.assert_close(MULTI.loss(logits, labels).mean(), expected)


def test_gaps_add_nothing_and_have_no_gradient():
    logits = torch.zeros(1, 2, requires_grad=True)
    loss = MULTI.loss(logits, torch.tensor([[1, -1]]))
    loss.sum().backward()
    assert float(loss.detach()) == pytest.approx(np.log(2) / 2)
    assert logits.grad.tolist() == [[-0.25, 0.0]]


def test_balanced_weights_are_those_of_each_label_by_hand():
    objective = Objective.of(MULTI, Settings(class_weight="balanced"), LABELS, LABELS, classes=2)
    np.testing.assert_allclose(objective.weights, [[4 / 2, 3 / 4], [4 / 6, 3 / 2]], rtol=1e-6)  # (0 and 1, label)
    loss = objective.loss(torch.zeros(4, 2), LABELS)
    by_hand = np.log(2) / 2 * np.array([4 / 6 + 3 / 4, 4 / 6, 2 + 3 / 4, 4 / 6 + 3 / 2])
    np.testing.assert_allclose(loss.numpy(), by_hand, rtol=1e-6)


def test_metrics_equal_those_of_scikit_learn_where_labels_are_known():
    random = np.random.default_rng(3)
    labels, chances = random.integers(-1, 2, (60, 4)), random.random((60, 4)).astype(np.float32)
    found = MULTI.scores(chances, labels)
    each = [(labels[labels[:, t] >= 0, t], chances[labels[:, t] >= 0, t]) for t in range(4)]
    expected = {
        "accuracy": [sklearn.accuracy_score(truth, chance > 0.5) for truth, chance in each],
        "balanced_accuracy": [sklearn.balanced_accuracy_score(truth, chance > 0.5) for truth, chance in each],
        "macro_f1": [sklearn.f1_score(truth, chance > 0.5) for truth, chance in each],
        "roc_auc": [sklearn.roc_auc_score(truth, chance) for truth, chance in each],
        "average_precision": [sklearn.average_precision_score(truth, chance) for truth, chance in each],
        "base_rate": [truth.mean() for truth, _ in each],
    }
    for name, values in expected.items():
        assert found[name] == pytest.approx(np.mean(values)), name
    truth, chance = (np.concatenate([one[at] for one in each]) for at in (0, 1))
    assert found["log_loss"] == pytest.approx(sklearn.log_loss(truth, chance), rel=1e-5)


def test_a_label_that_is_always_there_is_left_out_of_rankings():
    chances, labels = np.array([[0.9, 0.4], [0.2, 0.6]], np.float32), np.array([[1, 1], [0, 1]])
    assert MULTI.scores(chances, labels)["roc_auc"] == 1.0


def test_labels_are_trusted_one_by_one():
    chances = np.array([[0.95, 0.5], [0.5, 0.6], [0.5, 0.05]], np.float32)
    candidates = np.array([4, 6, 7])
    assert reliable_set(chances, candidates, 0.9, kind=MULTI).tolist() == [4, 7]
    np.testing.assert_array_equal(
        MULTI.trusted(chances, 0.9), np.float32([[0.95, np.nan], [np.nan] * 2, [np.nan, 0.05]])
    )
    ids, labels = enlarged_training_set(chances, candidates, 0.9, np.array([0]), np.array([[1, -1]], np.int8))
    assert (ids.tolist(), labels.tolist()) == ([0, 4, 7], [[1, -1], [1, -1], [-1, 0]])


def test_the_label_input_by_hand():
    teacher = np.float32([[np.nan, 0.2]])
    rows = initial_labels(
        9, 2, np.array([1, 2]), LABELS[:2], reliable_ids=np.array([5]), reliable_probabilities=teacher
    )
    np.testing.assert_array_equal(rows[:, :][[1, 2, 5, 8]], np.float32([[1, 0], [1, 0], [0, 0.2], [0, 0]]))


def test_distillation_and_consistency_by_hand():
    logits, teacher = torch.zeros(1, 2), torch.tensor([[0.8, float("nan")]])
    divergence = 0.8 * np.log(0.8 / 0.5) + 0.2 * np.log(0.2 / 0.5)
    found = distillation_loss(logits, teacher, kind=MULTI)
    assert float(found) == pytest.approx(0.8 * divergence / 2, rel=1e-6)  # the mean over two labels, one a gap
    found = consistency_loss(logits, torch.tensor([[0.8, 0.6]]), threshold=0.7, kind=MULTI)
    assert float(found) == pytest.approx(2 * 0.3**2, rel=1e-6)  # of the label that the teacher is sure of


def test_label_propagation_weighs_yes_against_no(several):
    dense = np.zeros((several.nodes, several.nodes))
    for node in range(several.nodes):
        dense[node, several.adjacency.indices[several.adjacency.indptr[node] : several.adjacency.indptr[node + 1]]] = 1
    mean = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
    train = several.split.train
    truth = several.labels[train]
    start = np.zeros((2, several.nodes, 3))
    start[0, train], start[1, train] = truth == 1, truth == 0
    yes, no = start
    for _ in range(3):
        yes, no = 0.8 * mean @ yes + 0.2 * start[0], 0.8 * mean @ no + 0.2 * start[1]
    rates = [(truth[:, t] == 1).sum() / (truth[:, t] >= 0).sum() for t in range(3)]
    expected = np.where(yes + no > 0, yes / np.where(yes + no > 0, yes + no, 1), rates)
    more = {"classes": 3, "alpha": 0.8, "steps": 3, "normalization": Normalization(0.0, False)}
    found = label_propagation(LocalEngine(), several.adjacency, train, truth, **more)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["gamlp-jk+rlu+cs", "sagn+sle", "gamlp-recursive+rlu+scr", "label-propagation+cs", "gcn", "graphsage"]
)
def test_shuffled_test_labels_leave_everything_the_same(several, name):
    other = several.labels.copy()
    other[several.split.test] = np.random.default_rng(5).permutation(1 - np.maximum(other[several.split.test], 0))
    settings = {**SHORT, "epochs": 4} if method_named(name).extra else SHORT
    one, two = (fitted(graph, name, **settings) for graph in (several, replace(several, labels=other)))
    np.testing.assert_array_equal(one.prediction.probabilities, two.prediction.probabilities)
    assert one.facts["history"] == two.facts["history"]


def test_roc_auc_chooses_unless_told(several):
    found = fitted(several, "gamlp-jk", **SHORT)
    assert found.objective.metric.name == "roc_auc"
    best = max(entry["valid_roc_auc"] for entry in found.facts["history"])
    valid = several.split.valid
    assert MULTI.scores(found.prediction.probabilities[valid], several.labels[valid])["roc_auc"] == pytest.approx(best)


def test_what_reads_one_class_a_node_is_refused(several):
    with pytest.raises(SettingsError, match=r"planted has 3 labels a node, and unimp reads one class"):
        fitted(several, "unimp", epochs=1)


def test_the_estimator_takes_and_gives_rows_of_0_and_1(several, tmp_path):
    given = several.labels.astype(float)
    given[given < 0] = np.nan
    given[several.split.test] = np.nan
    model = GAMLPClassifier(
        "gamlp-jk", settings={"epochs": 4, "hidden": 8, "hops": 2, "learning_rate": 0.05}, metric="average_precision"
    )
    model.fit(several.features, given, adjacency=several.adjacency, valid=several.split.valid)
    chances = model.predict_proba(several.features, several.adjacency)
    said = model.predict(several.features, several.adjacency)
    assert chances.shape == said.shape == several.labels.shape
    np.testing.assert_array_equal(said, chances > 0.5)
    np.testing.assert_allclose(
        1 / (1 + np.exp(-model.decision_function(several.features, several.adjacency))), chances, atol=1e-5
    )
    whole = (several.labels >= 0).all(axis=1)
    expected = (said == several.labels)[whole].all(axis=1).mean()
    assert model.score(several.features, several.labels, several.adjacency) == pytest.approx(expected)
    model.save(tmp_path)
    again = GAMLPClassifier.load(tmp_path)
    other = again._fitted.predict(several, several.labels, split=several.split)  # as in training
    np.testing.assert_array_equal(other.probabilities, chances)
    np.testing.assert_array_equal(again.predict(several.features, several.adjacency), said)


def test_kinds_are_told_by_shape():
    assert (kind_of(LABELS).name, kind_of(LABELS[:, 0]).name) == ("multi", "single")
