import numpy as np
import pytest

from gamlp.errors import IdError, SplitError
from gamlp.graph.splits import Split, SplitRule

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
