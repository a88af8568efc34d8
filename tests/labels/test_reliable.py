from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import LabelError, SettingsError, ShapeError
from gamlp.labels import initial_labels, reliable_set, soften
from gamlp.labels.reliable import is_reliable


def test_soften_is_the_softmax_by_hand():
    # e^{0}:e^{ln 3} = 1:3 at T = 1; halving T squares the ratio, 1:9
    logits = np.array([[0.0, math.log(3)]])
    assert_allclose(soften(logits, 1.0), [[1 / 4, 3 / 4]], rtol=1e-6)
    assert_allclose(soften(logits, 0.5), [[1 / 10, 9 / 10]], rtol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.3, 0.001])
def test_soften_equals_a_float64_loop(temperature):
    logits = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32) * 3
    expected = np.empty(logits.shape)
    for i, row in enumerate(logits.astype(np.float64)):
        powers = [math.exp((value - max(row)) / temperature) for value in row]
        expected[i] = [power / sum(powers) for power in powers]
    assert_allclose(soften(logits, temperature), expected, atol=2e-6)


def test_soften_at_a_tiny_temperature_is_hard_and_finite():
    logits = np.array([[1e30, -1e30, 0.0], [5.0, 5.0, 4.0]], dtype=np.float32)
    assert_array_equal(soften(logits, 1e-9), [[1, 0, 0], [0.5, 0.5, 0]])


def test_soften_refuses_temperature_zero():
    with pytest.raises(SettingsError, match="above 0"):
        soften(np.zeros((1, 2)), 0.0)


def test_the_reliable_set_by_hand():
    candidates = np.array([7, 3, 9, 4])
    probabilities = np.array([[0.9, 0.1], [0.5, 0.5], [0.15, 0.85], [0.86, 0.14]], dtype=np.float32)
    assert_array_equal(reliable_set(probabilities, candidates, 0.85), [7, 4])  # 0.85 is not greater than 0.85
    assert_array_equal(reliable_set(probabilities, candidates, 0.0), candidates)
    assert reliable_set(probabilities, candidates, 1.0).size == 0


def test_the_reliable_set_may_be_of_no_candidates():
    assert reliable_set(np.zeros((0, 3)), np.zeros(0, dtype=np.int64), 0.5).size == 0


def test_the_reliable_set_refuses_rows_of_other_nodes():
    with pytest.raises(ShapeError, match="5 rows for 2 candidate nodes"):
        reliable_set(np.full((5, 2), 0.5), np.array([0, 1]), 0.5)


def test_initial_labels_equal_the_cases_of_the_paper():
    random = np.random.default_rng(1)
    train, reliable = {2: 1, 0: 2}, {5: random.random(3), 1: random.random(3)}
    expected = np.zeros((6, 3))
    for node in range(6):
        if node in train:
            expected[node, train[node]] = 1
        elif node in reliable:
            expected[node] = reliable[node]
    result = initial_labels(
        6,
        3,
        np.array(list(train)),
        np.array(list(train.values())),
        reliable_ids=np.array(list(reliable)),
        reliable_probabilities=np.array(list(reliable.values())),
    )
    assert result.ids.tolist() == [0, 1, 2, 5]  # no more rows than these are held
    assert result[:].dtype == np.float32
    assert_allclose(result[:], expected, rtol=1e-6)


def test_initial_labels_of_the_first_stage_are_the_training_labels_alone():
    assert_array_equal(initial_labels(3, 2, np.array([1]), np.array([1]))[:], [[0, 0], [0, 1], [0, 0]])


def test_a_true_label_is_never_replaced_by_a_prediction():
    labels = initial_labels(
        2, 2, np.array([0]), np.array([1]), reliable_ids=np.array([0]), reliable_probabilities=np.array([[0.9, 0.1]])
    )
    assert_array_equal(labels[:], [[0, 1], [0, 0]])


def test_initial_labels_refuse_the_labels_of_the_whole_graph():
    with pytest.raises(ShapeError, match="6 rows for 2 training nodes"):
        initial_labels(6, 2, np.array([0, 1]), np.zeros(6, dtype=np.int64))


@pytest.mark.parametrize("label", [-1, 2])
def test_initial_labels_refuse_a_label_that_names_no_class(label):
    with pytest.raises(LabelError, match="2 classes"):
        initial_labels(3, 2, np.array([0, 1]), np.array([0, label]))


def test_a_threshold_of_zero_trusts_a_row_of_zeros_too():
    assert is_reliable(np.zeros((2, 3)), 0.0).tolist() == [True, True]
    assert is_reliable(np.zeros((2, 3)), 0.1).tolist() == [False, False]


def test_what_is_softened_is_float32_whatever_came_in():
    assert soften(np.array([[1.0, 2.0]]), 0.5).dtype == np.float32


def test_one_class_a_node_is_held_as_a_number_and_several_labels_as_a_row():
    one = initial_labels(3, 2, np.array([2, 0]), np.array([1, 0]))
    assert (one.known.tolist(), one.labels.tolist(), len(one.soft.ids)) == ([0, 2], [0, 1], 0)
    labels = np.array([[1, -1], [0, 1]])
    several = initial_labels(4, 2, np.array([2, 0]), labels)
    assert_array_equal(several[:], [[0, 1], [0, 0], [1, 0], [0, 0]])  # a gap is 0
    assert len(several.known) == 0
    filled = initial_labels(4, 2, np.array([2, 0]), labels, otherwise=np.array([[0.5, 0.25], [0.5, 0.5]]))
    assert_array_equal(filled[:], [[0, 1], [0, 0], [1, 0.25], [0, 0]])


def test_reliable_nodes_count_only_with_their_probabilities():
    for half in ({"reliable_ids": np.array([1])}, {"reliable_probabilities": np.array([[0.5, 0.5]])}):
        labels = initial_labels(2, 2, np.array([0]), np.array([1]), **half)
        assert_array_equal(labels[:], [[0, 1], [0, 0]])
