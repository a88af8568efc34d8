"""The temperature: by hand, against a temperature that was planted, and never another prediction."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.trust import temperature
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


def test_where_no_temperature_matters_none_is_taken():
    """Of a uniform row the loss is the same at every T: what is gained is nothing, and nothing is not more than it."""
    assert fit_temperature(np.full((40, 2), 0.5, np.float32), np.arange(40) % 2, 0) == Temperature(1.0)


def test_the_largest_temperature_is_ten():
    """Sure of one class, and right half of the time: any T below ∞ is too small."""
    probabilities = np.tile(np.array([[1 - 1e-6, 1e-6]]), (60, 1))
    assert best_temperature(probabilities, np.arange(60) % 2) == pytest.approx(10, rel=1e-3)


@pytest.fixture
def fits(monkeypatch):
    """Return the labels of each fit; every one comes to T = 2."""
    seen = []
    monkeypatch.setattr(temperature, "best_temperature", lambda _, labels: seen.append(labels.tolist()) or 2.0)
    return seen


def test_each_of_five_folds_is_judged_by_the_other_four(fits):
    """The folds are dealt in the order of numpy's generator of (seed, 0x7E39)."""
    labels = np.arange(23) % 2
    fit_temperature(np.tile([[0.6, 0.4]], (23, 1)), labels, 5)
    order = labels[np.random.default_rng([5, 0x7E39]).permutation(23)].tolist()
    others = [[label for place, label in enumerate(order) if place % 5 != fold] for fold in range(5)]
    assert fits[:5] == others


def test_a_fold_is_measured_by_its_own_nodes(monkeypatch):
    """T is 2 for all but the fold it was fitted without: each node is asked once, never by a T that has seen it."""
    monkeypatch.setattr(temperature, "best_temperature", lambda probabilities, _: tuple(probabilities[:, 0]))
    asked = []

    def losses(probabilities, labels, seen):
        asked.extend([] if seen == 1 else [(node, node in seen) for node in probabilities[:, 0]])
        return np.zeros(len(labels))

    monkeypatch.setattr(temperature, "losses", losses)
    fit_temperature(np.column_stack([np.arange(2.0, 25), np.zeros(23)]), np.zeros(23, np.int64), 0)
    assert sorted(asked) == [(node, False) for node in np.arange(2.0, 25)]


def test_twenty_nodes_are_enough_and_no_more_than_20_000_are_looked_at(fits):
    """All are wrong, so that T = 2 is safely better than 1 and is fitted to all in the end."""
    for nodes in (19, 20, 20_003):
        fit_temperature(np.tile(np.array([[0.6, 0.4]], np.float32), (nodes, 1)), np.ones(nodes, np.int64), 0)
    assert [len(labels) for labels in fits] == [16] * 5 + [20] + [16_000] * 5 + [20_000]


@pytest.mark.parametrize(("spread", "safe"), [(18.5, True), (19.5, False)])
def test_a_gain_is_safe_above_its_standard_error(fits, monkeypatch, spread, safe):
    """20 gains of 1 ± d: their mean is 1, and their standard error √(20 d²/19) / √20 = d/√19."""
    gains = 1 + np.sqrt(spread) * (-1.0) ** np.arange(20)
    monkeypatch.setattr(temperature, "losses", lambda given, _, at: given[:, 0] * (at == 1))
    fitted = fit_temperature(np.column_stack([gains, gains]), np.zeros(20, np.int64), 0)
    assert fitted == Temperature(2.0 if safe else 1.0)


def test_a_fitted_temperature_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Temperature(2.0).value = 3.0
