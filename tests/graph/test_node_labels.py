import numpy as np
import pytest

from gamlp.errors import LabelError, ShapeError
from gamlp.graph.build.assemble import encode_labels


@pytest.mark.parametrize(
    ("values", "labels", "classes"),
    [
        ([10, 9, -1, 10], [1, 0, -1, 1], ("9", "10")),  # numbers in numeric order
        (["10", "9", "", "10"], [0, 1, -1, 0], ("10", "9")),  # words in word order
        ([1.0, np.nan, 0.0], [1, -1, 0], ("0", "1")),
        (["b", None, "a", float("nan")], [1, -1, 0, -1], ("a", "b")),
        ([5, None, 3], [1, -1, 0], ("3", "5")),
        ([b"b", b"a", b""], [1, 0, -1], ("a", "b")),
        ([True, False, True], [1, 0, 1], ("0", "1")),
        (np.array([[2], [1]]), [1, 0], ("1", "2")),
        ([None, None], [-1, -1], ()),
        (np.array([7, 250], dtype=np.uint8), [0, 1], ("7", "250")),
    ],
)
def test_labels_become_class_numbers(values, labels, classes):
    numbers, names = encode_labels(np.array(values, dtype=object) if None in list(values) else values)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == labels
    assert names == classes


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([0, 0.5], LabelError, "node 1 is 0.5.\n.*regression"),
        ([0, np.inf], LabelError, "node 1 is inf"),
        ([0, -7], LabelError, "node 1 is -7"),
        (np.ones((3, 3, 3)), ShapeError, r"shape \(3, 3, 3\)"),
    ],
)
def test_what_is_no_class(values, error, message):
    with pytest.raises(error, match=message):
        encode_labels(values)
