"""Greedy selection against a slow loop over its definition, and the numbers that it is made with."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gamlp.methods import selection
from gamlp.methods.selection import greedy_counts, mixture_weights, unrefuted
from gamlp.targets.objective import Objective

LABELS = np.random.default_rng(0).integers(0, 3, 41)


def guesses(candidates, seed=1):
    """Probabilities of three classes, float64, each a little for the truth."""
    random = np.random.default_rng(seed)
    rows = random.dirichlet(np.ones(3), (candidates, len(LABELS)))
    return list(0.8 * rows + 0.2 * np.eye(3)[LABELS])


EMPTY = np.zeros(5)


def slow_counts(said, labels, begins=()):
    """Ten times, add the candidate that makes accuracy + mean log-likelihood of the mean best."""
    mixture = list(begins)
    for _ in range(10):
        scores = []
        for at in range(len(said)):
            rows = np.mean([said[i] for i in (*mixture, at)], axis=0)
            right = rows.argmax(axis=1) == labels
            scores.append(right.mean() + np.log(rows[np.arange(len(labels)), labels]).mean())
        mixture.append(int(np.argmax(scores)))
    return np.bincount(mixture, minlength=len(said))


@pytest.mark.parametrize("seed", range(4))
def test_counts_equal_a_slow_loop(seed):
    said = guesses(5, seed)
    assert greedy_counts(Objective(), said, LABELS, EMPTY).tolist() == slow_counts(said, LABELS).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_counts_with_a_head_start_equal_a_slow_loop_that_begins_with_it(seed):
    said, start = guesses(5, seed), np.array([0, 4, 0, 0, 6.0])
    expected = slow_counts(said, LABELS, begins=[1] * 4 + [4] * 6)
    assert greedy_counts(Objective(), said, LABELS, start).tolist() == expected.tolist()
    assert start.tolist() == [0, 4, 0, 0, 6]  # it serves every half


def test_weights_equal_sixteen_slow_loops_on_random_halves():
    """Halves are drawn by numpy's generator of (seed, 0x5E1E); the last candidate is mostly wrong."""
    wrong = 0.7 * np.eye(3)[(LABELS + 1) % 3] + 0.1
    said, random = [*guesses(5), wrong], np.random.default_rng([3, 0x5E1E])
    total = np.zeros(6)
    for _ in range(16):
        half = random.permutation(41)[:20]
        total += slow_counts([part[half] for part in said], LABELS[half])
    share = total / 160
    kept = np.where(share >= 0.05, share, 0)
    assert (kept == 0).any()  # else nothing is said of what is left out
    assert_allclose(mixture_weights(Objective(), said, LABELS, seed=3), kept / kept.sum())


@pytest.mark.parametrize(("each", "weights"), [([9.5, 0.5], [0.95, 0.05]), ([9.6, 0.4], [1, 0])])
def test_a_twentieth_stays_and_less_does_not(monkeypatch, each, weights):
    monkeypatch.setattr(selection, "greedy_counts", lambda *_: np.array(each))
    assert_allclose(mixture_weights(Objective(), guesses(2), LABELS, seed=0), weights)


@pytest.mark.parametrize(("nodes", "half"), [(1, 1), (2, 1), (3, 1), (19_999, 9_999), (30_000, 10_000)])
def test_half_of_at_most_20_000_nodes_is_looked_at(monkeypatch, nodes, half):
    seen = []
    monkeypatch.setattr(
        selection, "greedy_counts", lambda _, said, labels, start: seen.append(len(labels)) or np.array([1.0, 1.0])
    )
    said = [np.full((nodes, 2), 0.5)] * 2
    assert mixture_weights(Objective(), said, np.zeros(nodes, np.int64), seed=0).tolist() == [0.5, 0.5]
    assert seen == [half] * 16


class Mean(Objective):
    def score(self, probabilities, labels):
        assert_allclose(probabilities.sum(axis=1), 1)
        return super().score(probabilities, labels)


def test_what_is_scored_is_a_mean():
    assert greedy_counts(Mean(), guesses(1), LABELS, np.zeros(1)).tolist() == [10]
    assert greedy_counts(Mean(), guesses(3), LABELS, np.zeros(3)).sum() == 10
    assert greedy_counts(Mean(), guesses(3), LABELS, np.array([2.5, 0, 7.5])).sum() == 20


def test_the_usual_ones_begin_with_five_steps_between_them(monkeypatch):
    begun = []
    monkeypatch.setattr(selection, "greedy_counts", lambda *asked: begun.append(asked[-1].tolist()) or np.ones(5))
    said = [guesses(1)[0]] * 5  # alike: nothing refutes one
    mixture_weights(Objective(), said, LABELS, seed=0, usual=[1, 4])
    mixture_weights(Objective(), said, LABELS, seed=0, usual=[2])
    mixture_weights(Objective(), said, LABELS, seed=0)
    assert begun == [[0, 2.5, 0, 0, 2.5]] * 16 + [[0, 0, 5, 0, 0]] * 16 + [[0] * 5] * 16


def right_on(rows):
    """Sure predictions that are right there, and wrong elsewhere."""
    return 0.7 * np.eye(3)[np.where(np.isin(np.arange(41), rows), LABELS, (LABELS + 1) % 3)] + 0.1


def test_a_usual_one_is_refuted_by_being_behind_on_every_half():
    best, equal, worse = right_on(range(30)), right_on([*range(20), *range(30, 35)]), right_on(range(10))
    halves = [np.arange(10, 41), np.arange(5, 41), np.r_[0:10, 30:41]]
    right = [[int((part[half].argmax(axis=1) == LABELS[half]).sum()) for half in halves] for part in (equal, worse)]
    assert right == [[15, 20, 15], [0, 5, 10]]  # the best has 20, 25 and 10
    said = [worse, equal, best]
    assert unrefuted(Objective(), said, LABELS, halves[:2], [0, 1]) == []
    assert unrefuted(Objective(), said, LABELS, halves, [0, 1]) == [0, 1]  # as good on the last, and better
    assert unrefuted(Objective(), said, LABELS, halves[:2], [1, 2]) == [2]  # the best itself stands
    assert unrefuted(Objective(), said, LABELS, halves, []) == []


def test_what_is_refuted_has_no_head_start():
    wrong = 0.7 * np.eye(3)[(LABELS + 1) % 3] + 0.1
    said = [*guesses(2), wrong]
    plain = mixture_weights(Objective(), said, LABELS, seed=1)
    assert mixture_weights(Objective(), said, LABELS, seed=1, usual=[2]).tolist() == plain.tolist()
    assert mixture_weights(Objective(), said, LABELS, seed=1, usual=[0])[0] > plain[0] + 0.1


def test_without_labels_the_first_is_taken():
    assert mixture_weights(Objective(), [np.zeros((0, 2))] * 3, np.zeros(0, np.int64), seed=0).tolist() == [1, 0, 0]
