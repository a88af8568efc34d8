"""Sets with a promise: ranks by hand, the coverage itself by simulation, diffusion on a path."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import SettingsError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate.engines.local import LocalEngine
from gamlp.train.prediction import Prediction
from gamlp.trust.conformal import DIFFUSIONS, Conformal, diffused, mean_size, needed, quantile, set_aside, true_scores
from gamlp.trust.likeness import fit_likeness, weighted_thresholds
from gamlp.trust.shift import Witness


def test_the_quantile_by_hand():
    scores = np.arange(1, 10) / 10  # nine: ranks ⌈10·c⌉
    assert quantile(scores, 0.9) == 0.9
    assert quantile(scores, 0.8) == 0.8
    assert quantile(scores, 0.75) == 0.8
    assert quantile(scores, 0.5) == 0.5


@pytest.mark.parametrize(("coverage", "nodes"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99)])
def test_too_few_nodes_are_refused_to_the_last_one(coverage, nodes):
    assert needed(coverage) == nodes
    assert Conformal(np.zeros(nodes)).promises(coverage)
    assert quantile(np.zeros(nodes), coverage) == 0
    assert not Conformal(np.zeros(nodes - 1)).promises(coverage)
    with pytest.raises(SettingsError, match=f"needs at least {nodes} validation labels"):
        quantile(np.zeros(nodes - 1), coverage)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, float("nan")])
def test_a_coverage_that_is_no_probability_is_refused(coverage):
    with pytest.raises(SettingsError, match="between 0 and 1"):
        quantile(np.zeros(5), coverage)


def test_sets_by_hand():
    promise = Conformal(np.array([0.1, 0.3, 0.4, 0.6]))
    sets = promise.sets(np.array([[0.5, 0.4, 0.1], [0.95, 0.05, 0.0], [0.34, 0.33, 0.33]]), 0.8)  # q = 0.6
    assert_array_equal(sets, [[True, True, False], [True, False, False], [False, False, False]])


def test_equal_weights_are_no_weights():
    random = np.random.default_rng(0)
    promise, some = Conformal(random.random(57)), random.random((20, 3))
    for coverage in (0.3, 0.5, 0.8, 0.9, 0.95):
        weighted = promise.weighted_sets(some, coverage, np.full(57, 3.0), np.full(20, 3.0))
        assert_array_equal(weighted, promise.sets(some, coverage))


def test_weighted_thresholds_by_hand():
    scores, weights = (
        np.array([0.3, 0.1, 0.2]),
        np.array([1.0, 2.0, 1.0]),
    )  # in order: 2 of 4 at 0.1, 3 at 0.2, 4 at 0.3
    own = np.array([0.0, 1.0, 4.0])  # coverage 0.5 of 4, 5 and 8
    assert weighted_thresholds(scores, weights, own, 0.5).tolist() == [0.1, 0.2, 0.3]
    assert weighted_thresholds(scores, weights, own, 0.75).tolist() == [0.2, 0.3, np.inf]


def test_weights_bring_back_what_a_shift_takes():
    """Calibration nodes are mostly easy, others mostly hard, which the degree tells: coverage falls, and comes back."""
    random = np.random.default_rng(1)

    def nodes(count, easy):
        kind = random.random(count) < easy
        truth = np.where(kind, random.beta(8, 2, count), random.beta(2, 4, count))  # the probability of the true class
        return truth, Witness(np.full(count, 0.8, np.float32), np.where(kind, 9, 1), np.zeros(count, np.int64))

    (seen, some), (truth, others) = nodes(3000, 0.9), nodes(3000, 0.2)
    like = fit_likeness(some, others, classes=2)
    promise, columns = Conformal(1 - seen), np.column_stack([truth, 1 - truth])
    assert promise.sets(columns, 0.9)[:, 0].mean() < 0.75
    weighted = promise.weighted_sets(columns, 0.9, like.ratio(some), like.ratio(others))
    assert weighted[:, 0].mean() == pytest.approx(0.9, abs=0.03)


def test_the_truth_is_covered_as_often_as_promised():
    """2,000 draws of 39 calibration nodes and one test node: ⌈40·0.9⌉ = 36 of 40 ranks, 90 % to the point."""
    random = np.random.default_rng(3)
    hits = []
    for _ in range(2000):
        probabilities = random.dirichlet([0.4, 0.4, 0.4], 40)
        labels = random.integers(0, 3, 40)  # the model knows nothing: the promise does not ask for a good one
        promise = Conformal(true_scores(probabilities[:39], labels[:39]))
        hits.append(promise.sets(probabilities[39:], 0.9)[0, labels[39]])
    assert np.mean(hits) == pytest.approx(0.9, abs=3 * np.sqrt(0.9 * 0.1 / 2000))


def test_scores_of_the_truth_by_hand():
    assert_allclose(true_scores(np.array([[0.7, 0.3], [0.9, 0.1]]), np.array([0, 0])), [0.3, 0.1])


def test_diffusion_on_a_path_by_hand():
    path = adjacency_from_edges(np.array([0, 1]), np.array([1, 2]), nodes=4)  # 0 – 1 – 2, and 3 alone
    said = Prediction(np.arange(4), np.array([[1, 0], [0.5, 0.5], [0, 1], [0.2, 0.8]], np.float32))
    found = diffused(said, path, LocalEngine(), 0.5)
    assert_allclose(found, [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.2, 0.8]], rtol=1e-6)
    assert diffused(said, path, LocalEngine(), 0.0) is said.probabilities


def test_diffusion_needs_all_nodes():
    path = adjacency_from_edges(np.array([0]), np.array([1]), nodes=3)
    with pytest.raises(SettingsError, match="1 nodes of the graph have no prediction"):
        diffused(Prediction(np.arange(2), np.eye(2, dtype=np.float32)), path, LocalEngine(), 0.5)


def test_the_mean_size_by_hand():
    probabilities = np.tile([[0.6, 0.4]], (10, 1))
    assert mean_size(probabilities, np.array([0] * 10)) == 1  # q = 0.4
    assert mean_size(probabilities, np.array([0] * 9 + [1])) == 2  # rank ⌈11·0.9⌉ = 10: q = 0.6


def test_nodes_set_aside_are_drawn_by_the_seed():
    valid = np.arange(100, 110)
    choosing, apart = set_aside(valid, 0.3, seed=1)
    assert len(apart) == 3 and len(choosing) == 7
    assert_array_equal(np.sort(np.concatenate([choosing, apart])), valid)
    assert_array_equal(set_aside(valid, 0.3, seed=1)[1], apart)
    assert any(set_aside(valid, 0.3, seed=seed)[1].tolist() != apart.tolist() for seed in range(2, 6))
    none, everyone = set_aside(valid, 0.0, seed=1)[::-1]
    assert len(none) == 0 and everyone.tolist() == valid.tolist()


def test_a_class_at_the_threshold_is_in_the_set_weighted_or_not():
    promise = Conformal(np.array([0.25, 0.5, 0.75]))  # of three, the 2nd for one half: q = 0.5
    some = np.array([[0.5, 0.25, 0.25]])
    for sets in (promise.sets(some, 0.5), promise.weighted_sets(some, 0.5, np.ones(3), np.ones(1))):
        assert_array_equal(sets, [[True, False, False]])


def test_diffusion_takes_one_step():
    """Of two nodes that know each other alone, one step brings the other's probabilities, two one's own."""
    pair = adjacency_from_edges(np.array([0]), np.array([1]), nodes=2)
    said = Prediction(np.arange(2), np.array([[1, 0], [0.5, 0.5]], np.float32))
    assert_allclose(diffused(said, pair, LocalEngine(), 0.5), [[0.75, 0.25], [0.75, 0.25]])


def test_nine_nodes_are_enough_to_choose_and_eight_say_nothing():
    probabilities = np.tile([[0.6, 0.4]], (9, 1))
    assert mean_size(probabilities, np.zeros(9, np.int64)) == 1  # rank ⌈10·0.9⌉ = 9: q = 0.4
    assert mean_size(probabilities[:8], np.zeros(8, np.int64)) == 0


def test_plain_split_conformal_is_the_default_and_a_half_what_it_is_compared_with():
    promise = Conformal(np.zeros(1))
    assert (promise.diffusion, promise.apart, DIFFUSIONS) == (0, False, (0, 1 / 2))
    assert {promise} != {Conformal(promise.scores)}  # arrays say neither yes nor no to ==
    with pytest.raises(FrozenInstanceError):
        promise.diffusion = 0.5


def test_what_is_set_aside_never_changes_with_the_same_seed():
    """A permutation by numpy's generator of (seed, 0xC0F0), of which the first are set aside."""
    valid = np.arange(100, 110)
    drawn = np.random.default_rng([4, 0xC0F0]).permutation(valid).tolist()
    choosing, apart = set_aside(valid, 0.3, seed=4)
    assert (choosing.tolist(), apart.tolist()) == (sorted(drawn[3:]), sorted(drawn[:3]))
