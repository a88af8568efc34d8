from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from gamlp.errors import IdError, ShapeError, SplitError
from gamlp.graph.splits import Split, SplitRule, Splits

LABELS = np.array([0, 1, 0, 1, -1])


def ids(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("split", "error", "message"),
    [
        (Split(ids(), ids(0), ids(1)), SplitError, "no training node"),
        (Split(ids(0, 1), ids(1), ids(2)), SplitError, "node 1 for one"),
        (Split(ids(0, 2), ids(1), ids(3)), SplitError, "same class"),
        (Split(ids(0, 1, 4), ids(2), ids(3)), SplitError, "1 nodes of the train set have no label"),
        (Split(ids(0, 1), ids(4), ids(3)), SplitError, "1 nodes of the valid set have no label"),
        (Split(ids(0, 1), ids(2), ids(5)), IdError, "test set names node 5"),
        (Split(ids(0, -1), ids(2), ids(3)), IdError, "train set names node -1"),
    ],
)
def test_splits_that_cannot_be_used(split, error, message):
    with pytest.raises(error, match=message):
        split.check(len(LABELS))
        split.check_trainable(LABELS)


def test_a_rule_gives_each_class_its_numbers_and_the_rest_to_test():
    labels = np.repeat([0, 1, -1], [100, 200, 50])
    split = SplitRule(train=20, valid=30).draw(labels, seed=3)
    assert [np.bincount(labels[part]).tolist() for part in (split.train, split.valid, split.test)] == [
        [20, 20],
        [30, 30],
        [50, 150],
    ]
    again, other = SplitRule(20, 30).draw(labels, seed=3), SplitRule(20, 30).draw(labels, seed=4)
    assert np.array_equal(split.train, again.train)
    assert not np.array_equal(split.train, other.train)


def test_shares_and_small_classes():
    labels = np.repeat([0, 1], [10, 20])
    split = SplitRule(train=0.6, valid=0.2).draw(labels, seed=0)
    assert [len(part) for part in (split.train, split.valid, split.test)] == [18, 6, 6]
    split = SplitRule(train=20, valid=30).draw(np.repeat([0, 1], [8, 100]), seed=0)
    assert np.bincount(np.repeat([0, 1], [8, 100])[split.train]).tolist() == [4, 20]  # half of a small class


def test_a_rule_without_labels():
    split = SplitRule().draw(np.full(5, -1), seed=0)
    assert [ids.tolist() for ids in split.sets.values()] == [[], [], []]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (
            Split(ids(0), ids(1), ids(2, 6)),
            "The test set names node 6, the graph has 5 nodes.\nIds must lie between 0 and 4.",
        ),
        (
            Split(ids(1, 7), ids(), ids()),
            "The train set names node 7, the graph has 5 nodes.\nIds must lie between 0 and 4.",
        ),
        (
            Split(ids(0, 5), ids(), ids()),
            "The train set names node 5, the graph has 5 nodes.\nIds must lie between 0 and 4.",
        ),
        (
            Split(ids(-2, 0), ids(), ids()),
            "The train set names node -2, the graph has 5 nodes.\nIds must lie between 0 and 4.",
        ),
        (
            Split(ids(0, 1, 2), ids(1, 3), ids(2, 4)),
            "2 nodes stand in more than one of train, valid and test, node 1 for one.\n"
            "Each node belongs to one set at most.",
        ),
    ],
)
def test_the_whole_message_of_a_split_that_cannot_be(split, message):
    with pytest.raises((IdError, SplitError)) as raised:
        split.check(5)
    assert str(raised.value) == message


def test_the_whole_message_of_a_split_that_cannot_train():
    with pytest.raises(SplitError) as raised:
        Split(ids(), ids(), ids(0)).check_trainable(LABELS)
    assert str(raised.value) == (
        "The split has no training node.\nMark at least one labelled node of each class as train."
    )
    with pytest.raises(SplitError) as raised:
        Split(ids(0, 2), ids(), ids()).check_trainable(LABELS)
    assert str(raised.value) == (
        "All training nodes have the same class.\nAt least two classes are needed to learn from."
    )
    Split(ids(0, 1), ids(2), ids(3)).check_trainable(LABELS)  # two classes are enough
    Split(ids(0), ids(), ids(4)).check(5)  # so is one node, and the last one is one


@pytest.mark.parametrize(
    ("rule", "members", "expected"),
    [
        ((0.6, 0.2), 10, (6, 2)),
        ((0.6, 0.2), 1, (1, 0)),  # one at least trains, and 0.2 of one is none
        ((0.1, 0.2), 3, (1, 1)),  # 0.3 is rounded to none, and one trains all the same
        ((0.9, 0.3), 10, (9, 1)),  # what is left
        ((1, 1), 10, (1, 1)),  # 1 is a number of nodes, not a share
        ((1, 1), 2, (1, 0)),  # too small: a half, and a quarter
        ((1, 1), 3, (1, 1)),
        ((20, 30), 51, (20, 30)),
        ((20, 30), 50, (25, 12)),
        ((20, 30), 21, (10, 5)),
        ((20, 30), 1, (1, 0)),
        ((2, 0.5), 8, (2, 4)),
        ((0.5, 1), 8, (4, 1)),
    ],
)
def test_the_numbers_of_a_class_by_hand(rule, members, expected):
    assert SplitRule(*rule).counts(members) == expected


def test_the_draw_of_a_seed_never_changes():
    """Published figures rest on it: class by class, a permutation by numpy's generator of (seed, 0x5F17)."""
    labels = np.array([1, 0, 0, -1, 1, 0, 1, 0, 1, 1])
    for seed in (0, 7):
        random = np.random.default_rng([seed, 0x5F17])
        zeros, ones = random.permutation([1, 2, 5, 7]), random.permutation([0, 4, 6, 8, 9])
        split = SplitRule(0.5, 0.25).draw(labels, seed)
        assert split.train.tolist() == sorted([*zeros[:2], *ones[:2]])
        assert split.valid.tolist() == sorted([*zeros[2:3], *ones[2:3]])
        assert split.test.tolist() == sorted([*zeros[3:], *ones[3:]])


MASKS = np.array([[1, 0], [0, 1], [0, 0]], bool), np.array([[0, 0], [1, 0], [0, 1]], bool), np.zeros((3, 2), bool)


def test_one_of_several_splits_is_that_of_the_seed_and_after_the_last_the_first():
    splits = Splits(*MASKS)
    splits.check(3)
    for seed, (train, valid) in {0: (0, 1), 1: (1, 2), 2: (0, 1), 5: (1, 2)}.items():
        drawn = splits.draw(LABELS, seed)
        assert (drawn.train.tolist(), drawn.valid.tolist(), drawn.test.tolist()) == ([train], [valid], [])


def test_several_splits_that_cannot_be_are_refused():
    with pytest.raises(ShapeError) as raised:
        Splits(MASKS[0], MASKS[1][:, :1], MASKS[2]).check(3)
    assert str(raised.value) == (
        "The valid masks have the shape (3, 1) for 3 nodes and 2 splits.\nGive one value per node and split."
    )
    with pytest.raises(ShapeError, match="train masks have the shape"):
        Splits(*MASKS).check(4)
    with pytest.raises(SplitError, match="1 nodes stand in more than one"):  # in the second split alone
        Splits(MASKS[0], MASKS[1], np.array([[0, 0], [0, 1], [0, 0]], bool)).check(3)


def test_the_rule_without_a_word_is_60_20_20():
    """Of ten nodes of each class six train, two choose and two test."""
    labels = np.repeat([0, 1], 10)
    assert SplitRule().counts(10) == (6, 2)
    parts = SplitRule().draw(labels, seed=0).sets
    assert {name: np.bincount(labels[ids]).tolist() for name, ids in parts.items()} == {
        "train": [6, 6],
        "valid": [2, 2],
        "test": [2, 2],
    }


def test_a_fingerprint_is_that_of_what_is_drawn_from():
    split = Split(ids(0), ids(1), ids(2))
    assert split.fingerprint == Split(ids(0), ids(1), ids(2)).fingerprint != Split(ids(1), ids(0), ids(2)).fingerprint
    splits = Splits(*MASKS)
    assert splits.fingerprint == Splits(*MASKS).fingerprint != Splits(*MASKS[::-1]).fingerprint
    assert SplitRule(20, 30).fingerprint == SplitRule(20, 30).fingerprint != SplitRule(30, 20).fingerprint
    assert SplitRule().sets == {}


def test_splits_cannot_be_changed_and_are_equal_to_themselves_alone():
    """Arrays say neither yes nor no to ==, and have no hash."""
    split, rule = Split(ids(0), ids(1), ids(2)), SplitRule()
    assert {split} == {split} != {Split(split.train, split.valid, split.test)}
    for one in (split, rule):
        with pytest.raises(FrozenInstanceError):
            one.train = ids(3)


def test_the_last_of_more_splits_than_nodes_is_looked_at():
    train, valid, test = np.zeros((3, 2, 3), bool)
    train[0], valid[1] = True, True
    Splits(train, valid, test).check(2)
    test[0, 2] = True
    with pytest.raises(SplitError, match="1 nodes stand in more than one"):
        Splits(train, valid, test).check(2)
