"""Shift: distances by hand and against scipy, no alarm for alike nodes, an alarm for others."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp

from gamlp.trust.shift import (
    Witness,
    chance_distance,
    expected_accuracy,
    ks_distance,
    share_distance,
    shares_differ,
    shift_data,
    warning_of,
)


def test_the_distance_by_hand():
    assert ks_distance(np.array([1, 2, 3, 4]), np.array([3, 4, 5, 6])) == pytest.approx(0.5)
    assert ks_distance(np.array([1.0]), np.array([2.0])) == 1
    assert ks_distance(np.array([7, 7, 7]), np.array([7])) == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_that_of_scipy(seed):
    random = np.random.default_rng(seed)
    one, other = random.integers(0, 9, 40), random.integers(2, 12, 70)
    assert ks_distance(one, other) == pytest.approx(ks_2samp(one, other).statistic)


def test_shares_of_classes_by_hand():
    # 3/4, 1/4, 0 against 1/2, 0, 1/2: (1/4 + 1/4 + 1/2) / 2
    assert share_distance(np.array([0, 0, 0, 1]), np.array([0, 2]), 3) == pytest.approx(0.5)


def test_the_test_of_shares_is_that_of_scipy():
    one, other = np.repeat([0, 1, 2], [30, 30, 30]), np.repeat([0, 1, 2], [60, 30, 5])
    for last in range(11):
        some = np.concatenate([other, np.full(6 * last, 2)])  # p rises from 1e-6 to 0.2
        table = [np.bincount(given, minlength=3) for given in (one, some)]
        assert shares_differ(one, some, 4) == (chi2_contingency(table).pvalue < 1e-4)
    assert shares_differ(one, other, 3) and not shares_differ(one, one, 3)


def test_the_expected_accuracy_by_hand():
    valid = np.array([0.9, 0.8, 0.7, 0.6, 0.5])  # 60 % are right: the three surest, from 0.7 on
    assert expected_accuracy(valid, np.array([0.95, 0.71, 0.4, 0.3]), 0.6) == pytest.approx(0.5)


def nodes(random, count, *, sure=5.0, degree=4.0):
    probabilities = random.dirichlet([sure, 1, 1], count).astype(np.float32)
    return Witness.of(probabilities, random.poisson(degree, count))


def test_alike_nodes_raise_no_alarm_and_others_do():
    random, found = np.random.default_rng(0), []
    for _ in range(100):
        found += shift_data(nodes(random, 300), nodes(random, 800), classes=3, valid_accuracy=0.8)["found"]
    assert found == []
    less_sure = shift_data(nodes(random, 300), nodes(random, 800, sure=2.0), classes=3, valid_accuracy=0.8)
    assert "confidence" in less_sure["found"]
    assert less_sure["expected_accuracy"] < 0.8
    fewer = shift_data(nodes(random, 300), nodes(random, 800, degree=1.0), classes=3, valid_accuracy=0.8)
    assert fewer["found"] == ["degree"]
    assert "the median number of neighbours 4 and 1" in warning_of(fewer, "test nodes")


def test_a_few_nodes_prove_nothing():
    assert chance_distance(5, 5) > 1
    few = Witness(np.array([0.9] * 5), np.arange(5), np.zeros(5, np.int64))
    others = Witness(np.array([0.1] * 5), np.arange(5) + 100, np.ones(5, np.int64))
    assert shift_data(few, others, classes=2, valid_accuracy=1.0)["found"] == []


def test_without_nodes_there_is_nothing_to_say():
    none = Witness(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert shift_data(none, none, classes=2, valid_accuracy=1.0) == {}
    assert warning_of({}, "test nodes") is None
