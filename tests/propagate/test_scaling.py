import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler, normalize

from gamlp.propagate.scaling import Scaling

FEATURES = np.array([[3.0, 4.0, 7.0], [0.0, 0.0, 7.0], [1.0, -1.0, 7.0], [0.0, 0.0, 7.0]], dtype=np.float32)


@pytest.mark.parametrize(("kind", "norm"), [("row", "l1"), ("unit", "l2")])
def test_rows_are_scaled_as_scikit_learn_does(kind, norm):
    np.testing.assert_allclose(Scaling.fit(kind, FEATURES)(FEATURES), normalize(FEATURES, norm=norm), rtol=1e-6)


def test_columns_are_standardised_as_scikit_learn_does_and_a_constant_one_becomes_zero():
    found = Scaling.fit("standard", FEATURES)(FEATURES)
    np.testing.assert_allclose(found, StandardScaler().fit_transform(FEATURES), atol=1e-6)
    assert (found[:, 2] == 0).all()


def test_a_row_of_zeros_stays():
    zeros = np.zeros((2, 3), np.float32)
    for kind in ("row", "unit", "standard", "none"):
        np.testing.assert_array_equal(Scaling.fit(kind, zeros)(zeros), zeros)


def test_another_graph_is_scaled_by_what_was_measured_on_the_first():
    other = np.array([[1.0, 1.0, 8.0]], dtype=np.float32)
    expected = StandardScaler().fit(FEATURES).transform(other)
    np.testing.assert_allclose(Scaling.fit("standard", FEATURES)(other), expected, rtol=1e-6)
