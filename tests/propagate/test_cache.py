"""Stored hops: found again, never for another graph, and computed again when damaged."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.errors import StorageError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate import LocalEngine, Normalization, Propagation, Restart
from gamlp.propagate.hops import load_cached
from gamlp.propagate.spec import Job

GRAPH = adjacency_from_edges(np.array([0, 1, 2]), np.array([1, 2, 3]), nodes=4)
FEATURES = np.arange(8, dtype=np.float32).reshape(4, 2)


def propagate(cache, **options):
    return LocalEngine(cache=cache).propagate(GRAPH, FEATURES, Propagation(**options))


@pytest.fixture
def runs(monkeypatch):
    """Count how often hops are computed."""
    calls, run = [], LocalEngine.run

    def counted(self, job, *rest):
        calls.append(job)
        run(self, job, *rest)

    monkeypatch.setattr(LocalEngine, "run", counted)
    return calls


def test_the_second_time_is_read_from_disk(tmp_path, runs):
    options = {"hops": 2, "rows": np.array([3, 0]), "stationary": True}
    first = propagate(tmp_path, **options)
    second = propagate(tmp_path, **options)
    assert len(runs) == 1
    direct = propagate(None, **options)
    for hops in (first, second):
        assert isinstance(hops.values, np.memmap)
        assert_array_equal(hops.values, direct.values)
        assert_array_equal(hops.rows, [3, 0])
        assert_array_equal(hops.stationary, direct.stationary)
    assert first.key == second.key == next(tmp_path.iterdir()).name


def test_without_a_folder_nothing_is_stored(runs):
    assert propagate(None, hops=1).values.shape == (4, 2, 2)
    assert len(runs) == 1


def test_whatever_changes_the_result_changes_the_key():
    def key(graph=GRAPH, features=FEATURES, *, hops=2, device="cpu", **options):
        return Job(graph, features, Propagation(hops, **options)).key(device)

    other = adjacency_from_edges(np.array([0, 1]), np.array([1, 3]), nodes=4)
    keys = [
        key(),
        key(graph=other),
        key(features=FEATURES + 1),
        key(hops=3),
        key(normalization=Normalization(0.4)),
        key(normalization=Normalization(0.5, self_loops=False)),
        key(rows=np.array([0])),
        key(rows=np.array([1])),
        key(keep="last"),
        key(stationary=True),
        key(storage="float16"),
        key(restart=Restart(0.5)),
        key(restart=Restart(0.6)),
        key(restart=Restart(0.5, -1)),
        key(restart=Restart(0.5, high=2)),
        key(restart=Restart(0.5, fixed=np.array([1]))),
        key(restart=Restart(0.5, fixed=np.array([2]))),
        key(device="cuda"),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == key(features=FEATURES.copy())


@pytest.mark.parametrize("damage", ["cut", "flip", "no values", "no list", "not json", "list without files"])
def test_damaged_hops_are_computed_again(tmp_path, runs, caplog, damage):
    expected = np.array(propagate(tmp_path, hops=2).values)
    folder = next(tmp_path.iterdir())
    values, listing = folder / "values.npy", folder / "hops.json"
    content = values.read_bytes()
    if damage == "cut":
        values.write_bytes(content[:-4])
    elif damage == "flip":
        values.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "no values":
        values.unlink()
    elif damage == "no list":
        listing.unlink()
    else:
        listing.write_text("{" if damage == "not json" else '{"format": 1}')
    with caplog.at_level(logging.WARNING, logger="gamlp"):
        again = propagate(tmp_path, hops=2)
    assert_array_equal(again.values, expected)
    assert len(runs) == 2
    assert "computed again" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    propagate(tmp_path, hops=2)
    assert len(runs) == 2


def test_an_interrupted_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gamlp.storage.directories.put_in_place", fail)
    with pytest.raises(StorageError, match="No space left"):
        propagate(tmp_path, hops=1)
    assert list(tmp_path.iterdir()) == []
    assert load_cached(tmp_path / ("0" * 32), "0" * 32) is None


def test_a_transient_engine_keeps_nothing(tmp_path):
    LocalEngine(cache=tmp_path).transient().propagate(GRAPH, FEATURES, Propagation(1))
    assert list(tmp_path.iterdir()) == []
