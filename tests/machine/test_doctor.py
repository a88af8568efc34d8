"""gamlp doctor: numbers that can be true, extras that are missing, and sizes that are refused."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from gamlp.cli.app import app
from gamlp.errors import SettingsError, StorageError
from gamlp.machine import facts, measure
from gamlp.machine.cost import Constants, Gather

CONSTANTS = Constants(tuple(Gather(a, b, 1e-8) for b in (2**26, 2**30) for a in (1, 7)), 1e10, 1e9, 1e9, 1e11)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(measure, "measure", lambda folder: CONSTANTS)


def test_the_machine_and_its_extras(quick, tmp_path):
    done = CliRunner().invoke(app, ["doctor", "--folder", str(tmp_path), "--json"])
    found = json.loads(done.stdout)
    assert found["machine"]["threads"] <= found["machine"]["processors"]
    assert found["machine"]["memory_free_bytes"] <= found["machine"]["memory_bytes"]
    assert 0 < found["machine"]["disk_free_bytes"] <= shutil.disk_usage(tmp_path).total
    assert found["constants"]["stream"] == 1e10
    assert {extra["extra"] for extra in found["extras"]} == set(facts.EXTRAS)
    assert "costs" not in found


@pytest.mark.parametrize(("written", "expected"), [("max\n", None), ("1073741824\n", 2**30), ("9" * 19, None)])
def test_memory_is_what_a_container_has(tmp_path, monkeypatch, written, expected):
    (tmp_path / "memory.max").write_text(written)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(facts, "CGROUPS", (tmp_path / "memory.max", tmp_path / "not there"))
    assert facts.memory_bytes() == (expected or machine)
    assert facts.free_bytes() <= facts.memory_bytes()


def test_a_prediction_for_people_and_for_programs(quick, tmp_path):
    asked = ["doctor", "--folder", str(tmp_path), "--nodes", "1e6", "--entries", "20_000_000", "--features", "100"]
    printed = CliRunner().invoke(app, [*asked, "--machines", "4"]).stdout
    for word in ("memory", "local, limited", "ray", "sgemm", "100 GFLOP/s"):
        assert word in printed
    costs = json.loads(CliRunner().invoke(app, [*asked, "--machines", "4", "--json"]).stdout)["costs"]
    # 7 lines in one block: 6 hops of 2·10⁷ entries at 10 ns, and 2·448·10⁶ bytes of states at 10 GB/s
    hops = 6 * (2e7 * 1e-8 + 2 * 448e6 / 1e10)
    assert costs["local"]["seconds"] == pytest.approx(hops + (4e8 + 7 * 4e8) / 1e10)
    assert costs["ray"]["at_once"] >= 4


def test_a_missing_extra_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(facts.EXTRAS, "ray", ("no-such-package-of-ours", "propagation on a cluster"))
    found = next(extra for extra in facts.extras() if extra["extra"] == "ray")
    assert found["installed"] is None
    assert found["install"] == "pip install 'gamlp[ray]'"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--nodes", "1e6"], "--entries None"),
        (["--nodes", "many", "--entries", "5", "--features", "5"], "--nodes many"),
        (["--storage", "float8"], "float8"),
        (["--memory", "much"], "--memory much"),
        (["--folder", "not-there"], "not-there"),
    ],
)
def test_what_is_refused(quick, options, words):
    done = CliRunner().invoke(app, ["doctor", *options])
    assert isinstance(done.exception, SettingsError)
    assert words in str(done.exception)


def test_measurements_are_those_of_a_machine(tmp_path, monkeypatch):
    """Small sizes: not for their values, but every one is a speed, and the disk is left as it was."""
    monkeypatch.setattr(measure, "READ_BYTES", 2**22)
    found = measure.measure(tmp_path, sizes=(2**20, 2**22), disk_bytes=2**20)
    assert [(one.lines, one.bytes) for one in found.gathers][::2] == [(1, 2**20), (1, 2**22)]
    assert all(1e-11 < one.seconds < 1e-3 for one in found.gathers)
    for speed in (found.stream, found.disk_read, found.disk_write, found.sgemm, found.checksum):
        assert np.isfinite(speed)
        assert speed > 1e5
    assert not list(tmp_path.iterdir())


def test_a_disk_that_cannot_be_written_is_one_message(tmp_path):
    with pytest.raises(StorageError, match=r"could not be measured.*\n.*--folder"):
        measure.disk_speeds(tmp_path / "not" / "there", 2**10)


def test_a_third_state_is_measured_where_memory_allows_for_it():
    assert [measure.third_size(free) for free in (0, 2**30, 2**32)] == [(), (), ()]
    assert measure.third_size(9 * 2**30) == (2**32,)
    assert measure.third_size(2**40) == (2**33,)


def test_neighbours_are_drawn_as_graphs_have_them():
    """√0.01 of the draws are of one node in a hundred, as ∫₀^0.01 du / (2√u) = 0.1; ids are scattered, not in order."""
    found = np.bincount(measure.skewed_neighbours(1000, 200_000), minlength=1000)
    often = np.sort(found)[::-1]
    assert len(found) == 1000
    assert often[:10].sum() / 200_000 == pytest.approx(0.1, abs=0.005)
    assert often[:250].sum() / 200_000 == pytest.approx(0.5, abs=0.01)
    assert found[:10].sum() < 0.05 * 200_000
