"""Metrics against scikit-learn, and what they are where labels leave them undefined."""

import math

import numpy as np
import pytest
from sklearn import metrics as sklearn

from gamlp.targets.metrics import METRICS, curve, mean_and_std
from gamlp.targets.registry import SINGLE


def scored(probabilities, labels):
    return SINGLE.scores(np.asarray(probabilities), np.asarray(labels))


def drawn(rows, classes, *, ties):
    """Random probabilities and labels; with ties, scores of one digit."""
    random = np.random.default_rng(classes + rows)
    probabilities = random.random((rows, classes))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    probabilities = probabilities.round(1) + 1e-6 if ties else probabilities
    return probabilities.astype(np.float32), random.integers(0, classes, rows)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_scores_equal_those_of_scikit_learn(classes, ties):
    probabilities, labels = drawn(97, classes, ties=ties)
    found, predicted = scored(probabilities, labels), probabilities.argmax(axis=1)
    assert found["accuracy"] == pytest.approx(sklearn.accuracy_score(labels, predicted))
    assert found["balanced_accuracy"] == pytest.approx(sklearn.balanced_accuracy_score(labels, predicted))
    assert found["macro_f1"] == pytest.approx(sklearn.f1_score(labels, predicted, average="macro"))
    right = probabilities[np.arange(97), labels].astype(np.float64)
    assert found["log_loss"] == pytest.approx(-np.log(right).mean(), rel=1e-6)
    asked = [int((labels == 1).sum() <= (labels == 0).sum())] if classes == 2 else range(classes)
    for name, function in (("roc_auc", sklearn.roc_auc_score), ("average_precision", sklearn.average_precision_score)):
        each = [function(labels == number, probabilities[:, number]) for number in asked]
        assert found[name] == pytest.approx(np.mean(each), abs=1e-12)


def test_log_loss_equals_scikit_learn_where_rows_add_up_to_one():
    probabilities, labels = drawn(50, 4, ties=False)
    exact = probabilities.astype(np.float64)
    expected = sklearn.log_loss(labels, exact / exact.sum(axis=1, keepdims=True))
    assert scored(probabilities, labels)["log_loss"] == pytest.approx(expected, rel=1e-5)


def test_a_ranking_by_hand():
    hits, misses = curve(np.array([0.9, 0.8, 0.8, 0.1]), np.array([True, False, True, False]))
    assert (hits.tolist(), misses.tolist()) == ([1, 2, 2], [0, 1, 2])
    found = scored([[0.1, 0.9], [0.2, 0.8], [0.2, 0.8], [0.9, 0.1]], [1, 0, 1, 0])
    assert found["roc_auc"] == 7 / 8  # of four pairs three are in order, and one is a tie
    assert found["average_precision"] == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)


def test_of_two_classes_the_rarer_is_the_positive_one_whatever_its_name():
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]], np.float32)
    few_first, few_last = np.array([1, 0, 1, 1]), np.array([0, 1, 0, 0])
    assert scored(probabilities, few_first)["average_precision"] == pytest.approx(
        sklearn.average_precision_score(few_first == 0, probabilities[:, 0])
    )
    assert scored(probabilities, few_last)["average_precision"] == pytest.approx(
        sklearn.average_precision_score(few_last == 1, probabilities[:, 1])
    )


def test_a_class_that_occurs_nowhere_is_left_out():
    found = scored([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]], [0, 1])
    assert found["macro_f1"] == found["balanced_accuracy"] == found["roc_auc"] == 1.0


def test_one_class_alone_leaves_rankings_undefined_and_nothing_leaves_all():
    found = scored(np.full((4, 2), 0.5, np.float32), np.zeros(4, np.int64))
    assert math.isnan(found["roc_auc"])
    assert math.isnan(found["average_precision"])  # of the class that does not occur, the rarer one
    assert found["accuracy"] == found["balanced_accuracy"] == 1.0
    assert all(map(math.isnan, scored(np.zeros((0, 2), np.float32), np.zeros(0, np.int64)).values()))


def test_a_certain_mistake_costs_a_finite_loss():
    assert scored([[1.0, 0.0]], [1])["log_loss"] == pytest.approx(-np.log(np.finfo(np.float32).tiny))


def test_text_and_direction():
    assert METRICS["roc_auc"].text(0.84312, 0.0052) == "84.31 ± 0.52"
    assert (METRICS["log_loss"].text(0.5124), METRICS["log_loss"].better(0.5)) == ("0.512", -0.5)
    assert METRICS["roc_auc"].text(None) == "–"


def test_mean_and_unbiased_spread():
    assert mean_and_std([1.0, 2.0, 3.0]) == (2.0, 1.0)
    assert mean_and_std([1.0]) == (1.0, None)


def test_without_nodes_there_is_no_score():
    scored = SINGLE.scored(np.zeros((0, 3), np.float32), np.zeros(0, np.int64))
    assert all(np.isnan(value) for value in (scored.accuracy, scored.macro_f1, scored.log_loss))


def test_a_class_that_is_named_once_counts():
    """One node of class 0 is given 1, one of 2 is right: F1 of 0 and 1 are 0, of 2 it is 1."""
    scored = SINGLE.scored(np.array([[0.1, 0.9, 0.0], [0.0, 0.1, 0.9]]), np.array([0, 2]))
    assert scored.macro_f1 == pytest.approx(1 / 3)
