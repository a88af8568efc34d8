"""The loss of a batch against the paper's equations in float64, and what a stage keeps."""

import numpy as np
import pytest
import torch

from gamlp.settings import Settings
from gamlp.train.checkpoint import StageFacts
from gamlp.train.stage import StageData, drawn, goes_on, stage_loss


def test_the_loss_is_cross_entropy_and_weighted_divergence():
    random = np.random.default_rng(0)
    logits = random.normal(size=(5, 3))
    teacher = random.dirichlet(np.ones(3), size=4)
    data = StageData(
        train=np.array([2, 5, 9]),
        train_labels=np.array([0, 2, 1]),
        valid=np.array([1]),
        valid_labels=np.array([0]),
        reliable=np.array([3, 4, 7, 8]),
        teacher=teacher,
    )
    parts = [np.array([9, 2, 5]), np.array([8, 3])]
    student = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    cross_entropy = -np.mean([np.log(student[0, 1]), np.log(student[1, 0]), np.log(student[2, 2])])
    divergences = []
    for row, place in ((3, 3), (4, 0)):
        confidence = teacher[place].max()
        divergences.append(
            confidence * sum(teacher[place, j] * np.log(teacher[place, j] / student[row, j]) for j in range(3))
        )
    expected = (3 * cross_entropy + 0.7 * 2 * np.mean(divergences)) / (3 + 0.7 * 2)
    found = stage_loss(torch.from_numpy(logits), parts, data, Settings(gamma=0.7))
    assert float(found) == pytest.approx(expected, rel=1e-12)
    half = stage_loss(torch.from_numpy(logits), parts, data, Settings(gamma=0.35), share_drawn=0.5)
    assert float(half) == pytest.approx(expected, rel=1e-12)  # each of the two drawn stands for two


def test_an_epoch_draws_other_nodes_than_the_one_before_and_the_same_when_it_is_run_again():
    ids = np.arange(10, 1010)
    first, second = (drawn(ids, 100, [0, 1, epoch]) for epoch in (0, 1))
    np.testing.assert_array_equal(first, drawn(ids, 100, [0, 1, 0]))
    assert len(set(first)) == 100
    assert set(first) <= set(ids)
    assert (np.diff(first) > 0).all()
    assert len(set(first) & set(second)) < 40  # 10 expected
    often = np.bincount(np.concatenate([drawn(ids, 100, [0, 1, epoch]) for epoch in range(400)]), minlength=1010)[10:]
    assert 10 < often.min() <= often.max() < 75  # 40 expected, standard deviation 6
    for count in (0, 1000, 2000):
        np.testing.assert_array_equal(drawn(ids, count, [0, 0, 0]), ids)


def test_without_reliable_nodes_it_is_the_mean_cross_entropy():
    data = StageData(np.array([0, 1]), np.array([1, 0]), np.array([2]), np.array([0]))
    logits = torch.tensor([[0.0, 0.0], [0.0, np.log(3.0)]])
    found = stage_loss(logits, [np.array([0, 1]), np.zeros(0, np.int64)], data, Settings())
    assert float(found) == pytest.approx((np.log(2) + np.log(4)) / 2)


@pytest.mark.parametrize(
    ("epoch", "score", "expected"),
    [
        (24, 0.5, True),  # not yet a quarter of the hundred epochs
        (25, 0.5, False),  # 0.2 below the other method
        (25, 0.6, True),  # 0.1 below it: it may be of use beside it
    ],
)
def test_what_is_far_below_another_method_is_given_up_after_a_quarter(epoch, score, expected):
    facts = StageFacts(epoch=epoch, best_epoch=epoch, best_score=[score, -1.0], history=[])
    data = StageData(np.array([0]), np.array([0]), rival=0.7)
    assert goes_on(facts, data, Settings(patience=10), 100) is expected
    assert goes_on(facts, data._replace(rival=-np.inf), Settings(patience=10), 100)
