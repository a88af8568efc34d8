from __future__ import annotations

import pickle

import numpy as np
from numpy.testing import assert_array_equal

from gamlp.propagate.sources import SparseRows, WithRows
from gamlp.storage.files import digest

IDS = np.array([6, 1, 3])
ROWS = np.arange(1, 13, dtype=np.float64).reshape(3, 4)


def dense(base):
    base = base.astype(np.float32)
    base[IDS] = ROWS
    return base


def same_as(source, expected):
    assert source.shape == expected.shape
    assert source[:].dtype == np.float32
    for rows in (slice(None), slice(2, 7), slice(1, 2), slice(4, 6), np.array([7, 6, 0, 6]), np.zeros(0, np.int64)):
        assert_array_equal(source[rows], expected[rows])
        for columns in (slice(1, 3), slice(0, 4), slice(3, None)):
            assert_array_equal(source[rows, columns], expected[rows][:, columns])


def test_sparse_rows_are_read_like_the_matrix():
    same_as(SparseRows(8, 4, IDS, ROWS), dense(np.zeros((8, 4))))
    same_as(SparseRows(8, 4, IDS[:0], ROWS[:0]), np.zeros((8, 4), np.float32))


def test_some_of_the_rows():
    only = SparseRows(8, 4, IDS, ROWS).only(np.array([True, False, True]))  # in the order of the ids: 1, 3, 6
    assert only.ids.tolist() == [1, 6]
    assert_array_equal(only[6:7], ROWS[:1])


def test_replaced_rows_over_arrays_files_and_sources(tmp_path):
    base = np.random.default_rng(0).normal(size=(8, 4))
    np.save(tmp_path / "rows.npy", base)
    np.save(tmp_path / "columns.npy", np.asfortranarray(base))
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("rows", "columns")]
    for one in (base, *mapped):
        same_as(WithRows(one, IDS, ROWS), dense(base))
    same_as(
        WithRows(SparseRows(8, 4, np.array([0, 3]), base[:2]), IDS, ROWS),
        dense(np.vstack([base[:1], np.zeros((7, 4))])),
    )
    assert_array_equal(base, np.load(tmp_path / "rows.npy"))  # left as it was


def test_sources_travel_and_have_content():
    sparse = SparseRows(8, 4, IDS, ROWS)
    several = [sparse, SparseRows(9, 4, IDS, ROWS), SparseRows(8, 4, IDS, -ROWS), WithRows(sparse, IDS, ROWS)]
    assert len({digest(*one.content) for one in several}) == 4
    for one in several:
        assert_array_equal(pickle.loads(pickle.dumps(one))[:], one[:])
