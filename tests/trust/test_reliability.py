"""Calibration error and Brier score by hand; the bins themselves are in explain/test_mistakes.py."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from gamlp.trust.reliability import Reliability, brier_score, reliability, reliability_data

PROBABILITIES = np.array([[0.9, 0.1], [0.3, 0.7]], np.float32)


def test_the_brier_score_by_hand():
    # (0.1² + 0.1²) for the first; the second is wrong: 0.7² + 0.7²
    assert brier_score(PROBABILITIES, np.array([0, 0])) == pytest.approx((0.02 + 0.98) / 2, rel=1e-6)


def test_the_brier_score_of_two_classes_is_twice_that_of_scikit_learn():
    random = np.random.default_rng(0)
    sure, labels = random.random(50), random.integers(0, 2, 50)
    expected = 2 * brier_score_loss(labels, sure)
    assert brier_score(np.column_stack([1 - sure, sure]), labels) == pytest.approx(expected, rel=1e-6)


def test_what_is_kept_can_be_drawn_again():
    data = reliability_data(PROBABILITIES, np.array([0, 0]))
    assert data["nodes"] == 2
    assert data["mean_confidence"] == pytest.approx(0.8)
    assert data["calibration_error"] == pytest.approx((0.1 + 0.7) / 2)
    found = Reliability.from_data(data)
    assert found.error == data["calibration_error"]
    assert found.nodes.tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 1, 0]  # 0.7 is 0.69999999 in float32; 0.9 is just below
    assert found.edges.tolist() == pytest.approx([at / 10 for at in range(11)])


def test_the_error_of_chance_is_what_calibrated_nodes_show():
    """Nodes that are right as often as they say: the mean error of 200 draws."""
    random = np.random.default_rng(0)
    errors, chance = [], []
    for _ in range(200):
        confidence = random.uniform(0.5, 1, 400)
        found = reliability(confidence, random.random(400) < confidence)
        errors.append(found.error)
        chance.append(found.chance)
    assert np.mean(errors) == pytest.approx(np.mean(chance), rel=0.1)
