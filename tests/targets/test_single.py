"""One class a node: labels, rows and probabilities by hand."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from gamlp.errors import LabelError, ShapeError
from gamlp.targets.registry import SINGLE
from gamlp.targets.single import balanced

LABELS = np.array([2, -1, 0, 2])


def test_unknown_labels_are_minus_one():
    unknown = SINGLE.unknown(3, 5)
    assert unknown.tolist() == [-1, -1, -1]
    assert unknown.dtype == np.int64
    assert SINGLE.known(LABELS).tolist() == [True, False, True, True]


@pytest.mark.parametrize(("wrong", "named"), [([0, 3], "A label is 3"), ([-2, 0], "A label is -2"), ([-3, 9], "-3")])
def test_numbers_that_name_no_class_are_refused(wrong, named):
    with pytest.raises(LabelError, match=named):
        SINGLE.check(np.array(wrong), 2, "abc")


def test_labels_that_can_be_are_accepted_and_others_lengths_are_not():
    SINGLE.check(np.array([-1, 2, 0]), 3, "abc")
    for labels in (np.zeros(2, np.int64), np.zeros(4, np.int64), np.zeros((3, 1), np.int64)):
        with pytest.raises(ShapeError, match="the graph has 3 nodes"):
            SINGLE.check(labels, 3, "abc")


def test_two_classes_differ_and_one_does_not():
    assert SINGLE.differ(np.array([1, 1, 0]))
    assert not SINGLE.differ(np.array([1, 1]))


def test_groups_to_draw_from_are_the_classes():
    assert_array_equal(SINGLE.strata(LABELS), LABELS)


def test_labels_are_translated_to_the_places_of_their_classes():
    assert SINGLE.translated(LABELS, np.array([4, -1, 3]), 5).tolist() == [3, -1, 4, 3]


def test_rows_are_one_hot():
    rows = SINGLE.rows(np.array([2, 0]), 3)
    assert_array_equal(rows, [[0, 0, 1], [1, 0, 0]])
    assert rows.dtype == np.float32
    assert_array_equal(SINGLE.votes(np.array([2, 0]), 3), rows)
    assert_array_equal(SINGLE.rows(np.array([1, 1]), 3), [[0, 1, 0], [0, 1, 0]])
    assert SINGLE.rows(np.zeros(0, np.int64), 3).shape == (0, 3)
    for label in (-1, 3):
        with pytest.raises(LabelError, match="there are 3 classes"):
            SINGLE.rows(np.array([0, label]), 3)


def test_the_nodes_of_each_class():
    assert [ids.tolist() for ids in SINGLE.rows_of(LABELS, 4)] == [[2], [], [0, 3], []]


def test_the_commonest_class_of_known_labels():
    assert SINGLE.commonest(LABELS, "abc") == (2 / 3, "'c'")
    assert SINGLE.commonest(np.array([0]), "abc") == (1, "'a'")
    assert SINGLE.commonest(np.array([-1, -1]), "abc") == (0, "none")


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_probabilities_equal_the_softmax_of_scipy(temperature):
    logits = np.random.default_rng(0).normal(size=(6, 4)) * 4
    found = SINGLE.probabilities(logits, temperature)
    assert_allclose(found, softmax(logits / temperature, axis=1), rtol=1e-5)
    if temperature == 1:
        assert_array_equal(found, SINGLE.probabilities(logits))
    assert_allclose(SINGLE.link(torch.from_numpy(logits)).numpy(), softmax(logits, axis=1))


def test_logits_are_left_alone():
    logits = np.array([[1.0, 2.0]], np.float32)
    SINGLE.probabilities(logits)
    assert logits.tolist() == [[1, 2]]


def test_a_node_is_one_question():
    rows = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    assert_array_equal(SINGLE.questions(rows).numpy(), [[[0.75, 0.25]], [[0.5, 0.5]]])
    assert_allclose(SINGLE.log_answers(rows.log()).numpy(), rows.log()[:, None].numpy(), rtol=1e-6)


def test_the_loss_of_each_row_by_hand():
    logits = torch.tensor([[math.log(3), 0.0], [0.0, 0.0]])
    loss = SINGLE.loss(logits, torch.tensor([0, 1]), torch.tensor([1.0, 3.0]))
    assert_allclose(loss.numpy(), [math.log(4 / 3), 3 * math.log(2)], rtol=1e-6)


def test_confidence_and_answers():
    rows = np.array([[0.2, 0.8], [0.5, 0.5], [0.1, 0.9]])
    assert_array_equal(SINGLE.confidence(rows), [[0.8], [0.5], [0.9]])
    assert SINGLE.confidence(np.zeros((2, 0))).tolist() == [[0], [0]]
    assert SINGLE.trusted(rows, 0.9) is rows
    for said in (SINGLE.answered(rows), SINGLE.predicted(rows)):
        assert said.tolist() == [1, 0, 1]  # the first of equals


@pytest.mark.parametrize("bounded", [SINGLE.bounded, SINGLE.counted])
def test_scores_become_probabilities(bounded):
    scores = np.array([[3.0, 1.0], [-1.0, 2.0], [0.0, 0.0], [-1.0, -2.0], [0.5, 0.0]])
    found = bounded(scores, otherwise=np.array([0.25, 0.75]))
    assert_array_equal(found, [[0.75, 0.25], [0, 1], [0.25, 0.75], [0.25, 0.75], [1, 0]])
    assert found.dtype == np.float32


def test_words_of_labels_and_of_none():
    assert SINGLE.words(LABELS, ("a", "b", "c")).tolist() == ["c", None, "a", "c"]


def test_classes_that_do_not_occur_weigh_one_and_count_for_nothing():
    assert_allclose(balanced(np.array([6, 2, 0])), [8 / (2 * 6), 8 / (2 * 2), 1], rtol=1e-6)
    assert balanced(np.array([0, 0])).tolist() == [1, 1]
    columns = balanced(np.array([[1, 4], [3, 0], [0, 2]]))  # of 4 and of 6, two classes in each
    assert_allclose(columns, [[4 / (2 * 1), 6 / (2 * 4)], [4 / (2 * 3), 1], [1, 6 / (2 * 2)]], rtol=1e-6)
    assert_allclose(SINGLE.balanced(np.array([0, 0, 0, 2]), 4), [4 / 6, 1, 4 / 2, 1], rtol=1e-6)


def test_of_two_classes_as_frequent_the_second_is_asked_about():
    rows = np.array([[0.9, 0.1], [0.4, 0.6]])
    ((scores, positive),) = SINGLE.scored(rows, np.array([0, 1])).questions()
    assert (scores.tolist(), positive.tolist()) == ([0.1, 0.6], [False, True])
    assert list(SINGLE.scored(rows[:0], np.zeros(0, np.int64)).questions()) == []
    asked = SINGLE.scored(np.full((3, 4), 0.25), np.array([3, 1, 3])).questions()
    assert [positive.tolist() for _, positive in asked] == [[False, True, False], [True, False, True]]


def test_the_share_of_the_largest_class():
    assert SINGLE.scored(np.full((4, 3), 1 / 3), np.array([2, 2, 0, 2])).baseline == 3 / 4
    assert math.isnan(SINGLE.scored(np.zeros((0, 3)), np.zeros(0, np.int64)).baseline)
