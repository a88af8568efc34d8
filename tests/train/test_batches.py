import numpy as np
from numpy.testing import assert_array_equal

from gamlp.train.batches import batches, seed_of, shuffled_runs, steps_per_epoch

TRAIN, RELIABLE = np.arange(100), np.arange(1000, 1300)


def test_an_epoch_takes_every_node_of_both_sets_once():
    parts = list(batches([TRAIN, RELIABLE], 64, key=[0, 0, 0]))
    assert len(parts) == steps_per_epoch([100, 300], 64) == 7
    assert sorted(np.concatenate([train for train, _ in parts])) == TRAIN.tolist()
    assert sorted(np.concatenate([reliable for _, reliable in parts])) == RELIABLE.tolist()


def test_every_batch_has_its_share_of_both_sets():
    for train, reliable in batches([TRAIN, RELIABLE], 64, key=[0, 0, 0]):
        assert 14 <= len(train) <= 15
        assert 42 <= len(reliable) <= 43


def test_batches_depend_on_seed_stage_and_epoch_alone():
    def order(key):
        return np.concatenate([train for (train,) in batches([TRAIN], 10, key=key)]).tolist()

    assert order([1, 2, 3]) == order([1, 2, 3])
    assert len({tuple(order(key)) for key in ([1, 2, 3], [0, 2, 3], [1, 0, 3], [1, 2, 0])}) == 4


def test_keys_give_different_seeds():
    assert len({seed_of(a, b) for a in range(20) for b in range(20)}) == 400


def test_runs_of_neighbours_stay_together_and_their_cuts_move():
    ids = np.arange(0, 3000, 3)
    orders = [
        np.concatenate([parts[0] for parts in batches([ids], 100, key=[0, 0, epoch], run=16)]) for epoch in (0, 1)
    ]
    for order in orders:
        assert_array_equal(np.sort(order), ids)
        runs = 1 + int((np.diff(order) != 3).sum())
        assert 55 <= runs <= 64  # 1,000 rows in runs of 16, and two may come to lie side by side
    starts = [{int(order[0]), *order[1:][np.diff(order) != 3].tolist()} for order in orders]
    assert len(starts[0] & starts[1]) < 10
    again = np.concatenate([parts[0] for parts in batches([ids], 100, key=[0, 0, 1], run=16)])
    assert_array_equal(again, orders[1])
    assert_array_equal(np.sort(shuffled_runs(ids[:3], 16, np.random.default_rng(0))), ids[:3])
    assert len(shuffled_runs(ids[:0], 16, np.random.default_rng(0))) == 0
