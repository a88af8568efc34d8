"""Rows read from a file are the rows of the array, whatever is asked for; predictions leave in row groups."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pyarrow import csv, parquet

from gamlp.errors import StorageError
from gamlp.propagate.hops import Hops
from gamlp.runs.predictions import prediction_tables, write_predictions_to
from gamlp.train.inputs import Inputs, mapped_rows

VALUES = np.random.default_rng(0).normal(size=(500, 4, 3)).astype(np.float16)


@pytest.fixture
def on_file(tmp_path):
    np.save(tmp_path / "values.npy", VALUES)
    return np.load(tmp_path / "values.npy", mmap_mode="r")


@pytest.mark.parametrize("rows", [[3, 4, 5, 90, 7, 7, 499, 0], [], [17], list(range(500)), list(range(499, -1, -1))])
@pytest.mark.parametrize("hops", [4, 2])
def test_rows_in_any_order_and_twice(on_file, rows, hops):
    rows = np.array(rows, dtype=np.int64)
    reader = mapped_rows(on_file[..., :hops, :], limit=0)
    assert_array_equal(reader.take(rows), VALUES[rows, :hops])


def test_what_is_in_memory_or_small_is_not_read_so(on_file):
    assert mapped_rows(VALUES, limit=0) is None
    assert mapped_rows(on_file) is None
    assert mapped_rows(on_file[3:], limit=0) is None
    assert mapped_rows(on_file[..., :2], limit=0) is None


def test_inputs_read_the_same_from_a_file(on_file, monkeypatch):
    monkeypatch.setattr("gamlp.train.inputs.memory_bytes", lambda: 100)
    nodes = np.arange(0, 1000, 2)
    ids = np.array([998, 4, 6, 0])
    found = Inputs(Hops(on_file[..., :3, :], rows=nodes), None).gather(ids)[0]
    assert_array_equal(found.numpy(), VALUES[[499, 2, 3, 0], :3].astype(np.float32))


def test_a_file_that_was_cut_short_is_an_error_with_its_name(on_file, tmp_path):
    reader = mapped_rows(on_file, limit=0)
    with (tmp_path / "values.npy").open("r+b") as file:
        file.truncate(2000)
    with pytest.raises(StorageError, match=r"values.npy ends"):
        reader.take(np.arange(500))


@pytest.mark.parametrize("name", ["p.parquet", "p.csv"])
def test_predictions_leave_a_piece_at_a_time(planted, tmp_path, name):
    rows = np.arange(0, 240, 2)
    probabilities = np.random.default_rng(1).dirichlet(np.ones(3), 120).astype(np.float32)
    write_predictions_to(prediction_tables(planted, rows, probabilities, seed=0, rows_a_table=50), tmp_path / name)
    if name == "p.parquet":
        assert parquet.ParquetFile(tmp_path / name).metadata.num_row_groups == 3
        table = parquet.read_table(tmp_path / name)
    else:
        table = csv.read_csv(tmp_path / name)
    assert table["id"].to_pylist() == rows.tolist()
    assert table["predicted"].to_pylist() == ["abc"[at] for at in probabilities.argmax(axis=1)]
    assert table["label"].to_pylist() == ["abc"[at] for at in planted.labels[rows]]
    names = {
        **dict.fromkeys(planted.split.train.tolist(), "train"),
        **dict.fromkeys(planted.split.valid.tolist(), "valid"),
    }
    assert table["set"].to_pylist() == [names.get(node, "test") for node in rows.tolist()]
