import pickle

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler, normalize

from gamlp.errors import StorageError
from gamlp.propagate.scaling import Scaling
from gamlp.storage.array_reader import ArrayReader

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


def test_components_keep_the_inner_products_that_a_singular_value_decomposition_keeps():
    random = np.random.default_rng(0)
    features = (random.normal(size=(60, 4)) @ random.normal(size=(4, 30))).astype(np.float32)
    scaling = Scaling.fit("none", features, components=4)
    rotated = scaling(features)
    assert rotated.shape == (60, 4)
    np.testing.assert_allclose(rotated @ rotated.T, features @ features.T, atol=1e-3)
    values = np.linalg.svd(features.astype(np.float64), compute_uv=False)[:2]
    fewer = Scaling.fit("none", features, components=2)(features)
    np.testing.assert_allclose(np.linalg.norm(fewer, axis=0), values, rtol=1e-4)
    assert Scaling.fit("none", features, components=40)(features) is features


@pytest.mark.parametrize("kind", ["row", "unit", "standard", "none"])
@pytest.mark.parametrize("components", [0, 3])
@pytest.mark.parametrize("by_columns", [False, True])
def test_scaled_as_it_is_read_is_scaled(kind, components, by_columns, tmp_path):
    x = np.random.default_rng(0).normal(1, 2, (50, 7)).astype(np.float32)
    x[3] = 0
    np.save(tmp_path / "x.npy", np.asfortranarray(x) if by_columns else x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    scaling = Scaling.fit(kind, mapped, components=components)
    expected, seen = scaling(x), scaling.seen(mapped)
    assert seen.shape == expected.shape
    np.testing.assert_allclose(seen[10:30, 1:3], expected[10:30, 1:3], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen[np.array([3, 40, 7])], expected[[3, 40, 7]], rtol=1e-5, atol=1e-6)
    if not isinstance(seen, np.ndarray):
        again = pickle.loads(pickle.dumps(seen))
        np.testing.assert_array_equal(again[5:9], seen[5:9])


def test_a_file_that_changes_while_it_is_scaled_is_told(tmp_path):
    np.save(tmp_path / "x.npy", FEATURES)
    seen = Scaling.fit("unit", FEATURES).seen(np.load(tmp_path / "x.npy", mmap_mode="r"))
    source = ArrayReader(seen)
    source.check_unchanged()
    with (tmp_path / "x.npy").open("ab") as file:
        file.write(b"more")
    with pytest.raises(StorageError, match=r"x\.npy was changed while it was being read"):
        source.check_unchanged()


def test_a_row_costs_what_is_read_and_what_is_made_of_it(tmp_path):
    x = np.ones((9, 8), np.float32)
    for name, stored, read in (("rows", x, 4 * 2 + 4 * 8), ("columns", np.asfortranarray(x), 2 * 4 * 2)):
        np.save(tmp_path / f"{name}.npy", stored)
        mapped = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        assert ArrayReader(mapped).bytes_a_row(2) == read
        assert ArrayReader(Scaling("unit").seen(mapped)).bytes_a_row(2) == 4 * 2 + read
