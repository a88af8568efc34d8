"""Hops that are read once stay in the files of their blocks, and are the same array wherever it is looked at."""

from __future__ import annotations

import gc
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.errors import SettingsError, StorageError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate import LocalEngine, Normalization, Propagation, block_files
from gamlp.propagate.block_files import Blocks
from gamlp.propagate.spec import Job
from gamlp.propagate.subsets import first_hops
from gamlp.train.inputs import Inputs

RNG = np.random.default_rng(0)
GRAPH = adjacency_from_edges(*RNG.integers(0, 300, (2, 2000)), nodes=300)
FEATURES = RNG.normal(size=(300, 40)).astype(np.float32)
ROWS = np.arange(5, 300, 3)
SPEC = Propagation(3, Normalization(0.5), ROWS, stationary=True, storage="float16")


class InFourBlocks(LocalEngine):
    """Computes in blocks of 7, 16, 1 and 16 columns."""

    def budget(self, job):
        """Return these blocks."""
        cuts = [0, 7, 23, 24, 40]
        return replace(super().budget(job), blocks=[slice(*cut) for cut in pairwise(cuts)])


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Put temporary files into a folder of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def hops(scratch):
    """Return hops in four blocks."""
    return InFourBlocks(memory=2**30).propagate_once(GRAPH, FEATURES, SPEC)


@pytest.fixture(scope="module")
def expected():
    """Return the same hops as one array."""
    return LocalEngine().propagate(GRAPH, FEATURES, SPEC)


@pytest.mark.parametrize("at", [slice(None), slice(10, 20), slice(97, None), slice(20, 10), slice(0, 90, 4)])
def test_slices_of_rows(hops, expected, at):
    assert isinstance(hops.values, Blocks)
    assert_array_equal(hops.values[at], expected.values[at])


@pytest.mark.parametrize("at", [[], [0], [98, 3, 3, 50]])
@pytest.mark.parametrize("hop", [None, 0, 3])
def test_rows_in_any_order(hops, expected, at, hop):
    at = np.array(at, np.int64)
    wanted = expected.values[at] if hop is None else expected.values[at, hop]
    assert_array_equal(hops.values[at if hop is None else (at, hop)], wanted)


def test_what_hops_say_of_themselves(hops, expected):
    assert (hops.count, hops.subsets, hops.values.shape) == (3, 0, expected.values.shape)
    assert (hops.values.dtype, hops.values.nbytes) == (expected.values.dtype, expected.values.nbytes)
    assert_array_equal(hops.rows, ROWS)
    assert_array_equal(hops.stationary, expected.stationary)
    assert first_hops(hops, 4) is hops.values


def test_inputs_gather_the_same(hops, expected):
    ids = ROWS[[4, 5, 6, 40, 2]]
    for found, wanted in zip(Inputs(hops, None).gather(ids), Inputs(expected, None).gather(ids), strict=True):
        assert (found is None and wanted is None) or bool((found == wanted).all())


def test_nothing_is_written_twice(hops, scratch):
    folder = next(scratch.iterdir())
    assert sum(path.stat().st_size for path in folder.rglob("*.npy")) < 1.2 * hops.values.nbytes


def test_files_go_with_the_last_that_reads_them(scratch):
    hops = InFourBlocks(memory=2**30).propagate_once(GRAPH, FEATURES, SPEC)
    values = hops.values
    del hops
    gc.collect()
    assert list(scratch.iterdir())
    del values
    gc.collect()
    assert not list(scratch.iterdir())


def test_the_stationary_state_is_there_before_the_blocks_take_what_is_left(scratch, monkeypatch):
    made, find = [], Job.stationary
    monkeypatch.setattr(Job, "stationary", lambda *asked: (made.append("X^(∞)"), find(*asked))[1])

    class Engine(InFourBlocks):
        def budget(self, job):
            made.append("blocks")
            return super().budget(job)

    Engine(memory=2**30).propagate_once(GRAPH, FEATURES, SPEC)
    Engine(memory=2**30).propagate_to(scratch / "hops", GRAPH, FEATURES, SPEC)
    assert made == ["X^(∞)", "blocks"] * 2


def test_the_rows_of_the_stationary_state_count(scratch):
    needed = 12 * GRAPH.entries + 40 * 300 + 4 * len(ROWS) * 40
    job = Job.of(GRAPH, FEATURES, SPEC)
    assert job.stationary(needed).shape == (len(ROWS), 40)
    with pytest.raises(SettingsError, match=f"for {len(ROWS)} rows"):
        job.stationary(needed - 1)


def test_without_a_limit_or_an_order_they_are_an_array(scratch, expected, tmp_path):
    for engine, spec in (
        (LocalEngine(), SPEC),
        (LocalEngine(cache=tmp_path / "cache"), SPEC),
        (InFourBlocks(memory=2**30), replace(SPEC, rows=ROWS[::-1].copy())),
    ):
        found = engine.propagate_once(GRAPH, FEATURES, spec)
        assert isinstance(found.values, np.ndarray)
        order = slice(None) if spec is SPEC else slice(None, None, -1)
        assert_array_equal(found.values[order], expected.values)
    assert not (tmp_path / "cache").exists()


def test_nothing_is_brought_to_the_disk_that_nobody_takes_up_again(scratch, monkeypatch):
    monkeypatch.setattr(block_files, "SMALL", 0)
    files, keep = [], block_files.os.fsync

    def fsync(file):
        files.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        keep(file)

    monkeypatch.setattr(block_files.os, "fsync", fsync)
    InFourBlocks(memory=2**30).propagate_once(GRAPH, FEATURES, SPEC)
    assert not any("block-" in file for file in files)
    InFourBlocks(memory=2**30).propagate_to(scratch / "hops", GRAPH, FEATURES, SPEC)
    assert sum("block-" in file for file in files) == 4


def test_a_verified_run_looks_at_them_too(scratch, monkeypatch, caplog):
    monkeypatch.setenv("GAMLP_VERIFY", "1")
    with caplog.at_level("INFO", logger="gamlp"):
        InFourBlocks(memory=2**30).propagate_once(GRAPH, FEATURES, SPEC)
    assert "verified" in caplog.text


def test_a_disk_without_room_is_said_before(scratch, monkeypatch):
    size = 4 * len(ROWS) * 40 * 2
    usage = block_files.shutil.disk_usage(scratch)
    monkeypatch.setattr(block_files.shutil, "disk_usage", lambda place: usage._replace(free=size))
    InFourBlocks(memory=2**30).propagate_once(GRAPH, FEATURES, SPEC)  # once is enough
    with pytest.raises(StorageError, match=r"61\.9 KiB of the disk while it is made"):
        InFourBlocks(memory=2**30).propagate(GRAPH, FEATURES, SPEC)
    assert not list(scratch.iterdir())
