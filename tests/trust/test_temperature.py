"""The temperature: by hand, against a temperature that was planted, and never another prediction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.trust.temperature import FEWEST, Temperature, best_temperature, fit_temperature


def drawn(nodes, *, sharpness, seed=0, classes=4):
    """Probabilities that are right as often as they say, labels drawn by them, and the same probabilities sharpened."""
    random = np.random.default_rng(seed)
    honest = random.dirichlet(np.full(classes, 0.5), nodes)
    labels = np.array([random.choice(classes, p=row) for row in honest])
    sharp = honest**sharpness
    return (sharp / sharp.sum(axis=1, keepdims=True)).astype(np.float32), labels


def test_a_half_is_a_square_root_by_hand():
    found = Temperature(2.0)(np.array([[0.64, 0.36], [0.9, 0.1], [1.0, 0.0]], np.float32))
    assert_allclose(found, [[0.8 / 1.4, 0.6 / 1.4], [0.75, 0.25], [1, 0]], rtol=1e-6, atol=2e-19)
    assert found.dtype == np.float32


@pytest.mark.parametrize("sharpness", [0.5, 2.0])
def test_the_planted_temperature_is_found(sharpness):
    probabilities, labels = drawn(4000, sharpness=sharpness)
    assert fit_temperature(probabilities, labels, 0).value == pytest.approx(sharpness, rel=0.06)


def test_the_loss_is_that_of_all_nodes_and_one_more():
    """Q = (t, 1−t) for all; of 9 nodes 8 are right: (8·−log t − 1·log(1−t) − log(1−t)) / 10 is least at t = 8/10."""
    probabilities = np.tile(np.array([[0.6, 0.4]], np.float32), (9, 1))
    temperature = best_temperature(probabilities, np.array([0] * 8 + [1]))
    assert Temperature(temperature)(probabilities)[0, 0] == pytest.approx(0.8, abs=1e-4)


def test_all_right_does_not_mean_never_wrong():
    """30 of 30 are right: the least loss is at (30, 1) / 31, not at 1."""
    probabilities = np.tile(np.array([[0.7, 0.3]], np.float32), (30, 1))
    fitted = fit_temperature(probabilities, np.zeros(30, np.int64), 0)
    assert fitted(probabilities)[0, 0] == pytest.approx(30 / 31, abs=1e-4)


def test_what_is_calibrated_is_left_alone():
    probabilities, labels = drawn(300, sharpness=1.0)
    assert fit_temperature(probabilities, labels, 0) == Temperature(1.0)
    assert Temperature()(probabilities) is probabilities


def test_too_few_nodes_fit_nothing():
    probabilities, labels = drawn(FEWEST - 1, sharpness=8.0)
    assert fit_temperature(probabilities, labels, 0) == Temperature()


rows = arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=st.floats(0, 1, width=32))


@settings(max_examples=200, deadline=None)
@given(rows, st.floats(0.1, 10))
def test_no_prediction_ever_changes(values, temperature):
    found = Temperature(temperature)(values)
    assert_array_equal(found.argmax(axis=1), values.argmax(axis=1))
    if temperature != 1:  # which leaves everything as it is
        assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


def test_classes_that_rounding_would_make_equal_keep_their_order():
    close = np.array([[np.nextafter(np.float32(0.5), np.float32(0)), 0.5]], np.float32)
    assert np.float32(close[0, 0] ** 0.1) == np.float32(close[0, 1] ** 0.1)  # so float32 cannot tell them apart
    assert Temperature(10.0)(close).argmax() == 1
