from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.errors import ShapeError
from gamlp.labels import enlarged_training_set

TRAIN, LABELS = np.array([4, 1]), np.array([2, 0])


def test_the_enlarged_set_by_hand():
    candidates = np.array([3, 0, 5])
    probabilities = np.array([[0.1, 0.8, 0.1], [0.4, 0.3, 0.3], [0.0, 0.05, 0.95]])
    ids, labels = enlarged_training_set(probabilities, candidates, 0.75, TRAIN, LABELS)
    assert ids.tolist() == [4, 1, 3, 5]
    assert labels.tolist() == [2, 0, 1, 2]
    everyone, _ = enlarged_training_set(probabilities, candidates, 0.0, TRAIN, LABELS)
    assert everyone.tolist() == [4, 1, 3, 0, 5]
    nobody, same = enlarged_training_set(probabilities, candidates, 0.99, TRAIN, LABELS)
    assert_array_equal(nobody, TRAIN)
    assert_array_equal(same, LABELS)


def test_a_training_node_keeps_its_label_and_comes_once():
    ids, labels = enlarged_training_set(np.array([[0.0, 1.0, 0.0]]), np.array([4]), 0.5, TRAIN, LABELS)
    assert ids.tolist() == [4, 1]
    assert labels.tolist() == [2, 0]


def test_rows_beside_the_wrong_ids_are_refused():
    with pytest.raises(ShapeError, match="1 rows for 2 candidate nodes"):
        enlarged_training_set(np.ones((1, 3)), np.array([2, 3]), 0.5, TRAIN, LABELS)
    with pytest.raises(ShapeError, match="1 rows for 2 training nodes"):
        enlarged_training_set(np.ones((1, 3)), np.array([2]), 0.5, TRAIN, LABELS[:1])


def test_labels_keep_their_type():
    _, labels = enlarged_training_set(np.array([[0.0, 1.0]]), np.array([2]), 0.5, TRAIN, LABELS.astype(np.int32))
    assert labels.dtype == np.int32
