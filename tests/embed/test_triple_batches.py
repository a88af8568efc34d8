"""The order of triples is a permutation per epoch, named by seed and epoch, and looks random."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.embed.batches import Plan, plan_for, shuffled
from gamlp.embed.settings import EmbeddingSettings


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 65, 1000, 4097])
def test_shuffled_is_a_permutation(count):
    order = shuffled(np.arange(count), count, key=[0, 1])
    assert_array_equal(np.sort(order), np.arange(count))


def test_places_can_be_asked_for_in_parts():
    whole = shuffled(np.arange(1000), 1000, key=[7])
    assert_array_equal(shuffled(np.arange(300, 410), 1000, key=[7]), whole[300:410])


def test_orders_of_epochs_and_seeds_differ_and_mix():
    """Two random permutations of n agree in 1 place on average, and place and row are uncorrelated (σ = 1/√n)."""
    count = 10_000
    orders = [shuffled(np.arange(count), count, key=key) for key in ([0, 0], [0, 1], [1, 0])]
    for one in range(3):
        assert abs(np.corrcoef(np.arange(count), orders[one])[0, 1]) < 5 / count**0.5
        assert (orders[one] == orders[one - 1]).sum() < 10


def test_neighbours_are_torn_apart():
    """Random neighbours lie n/3 apart on average; the standard error here is about 0.24 % of n."""
    order = shuffled(np.arange(10_000), 10_000, key=[3])
    assert abs(np.abs(np.diff(order)).mean() / 10_000 - 1 / 3) < 0.012


def test_each_epoch_visits_every_triple_once():
    plan = Plan(rows=23, entities=9, seed=0, chunks=2, chunk=5, negatives=4)
    taken = np.concatenate([plan.places(step) for step in range(23)])  # 230 places: ten epochs
    for epoch in taken.reshape(10, 23):
        assert_array_equal(np.sort(epoch), np.arange(23))


def test_a_batch_larger_than_the_data_is_cut_to_whole_chunks():
    plan = plan_for(EmbeddingSettings(batch_size=1000, chunk=200), rows=450, entities=9, seed=0)
    assert (plan.chunks, plan.chunk, plan.size) == (2, 200, 400)
    small = plan_for(EmbeddingSettings(batch_size=1000, chunk=200), rows=7, entities=9, seed=0)
    assert (small.chunks, small.chunk) == (1, 7)


def test_negatives_are_any_entity_and_new_at_every_step():
    plan = Plan(rows=23, entities=9, seed=0, chunks=3, chunk=5, negatives=400)
    first, second = plan.drawn(0), plan.drawn(1)
    assert first.shape == (3, 400)
    assert_array_equal(np.unique(first), np.arange(9))
    assert (first != second).any()
    assert_array_equal(first, plan.drawn(0))
