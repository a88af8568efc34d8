"""--memory is a promise about the whole process: commands run in processes of their own, whose peaks are compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import parquet

from gamlp.storage.memory import FLOOR, LEAST, check_limit, resident_bytes, room_within
from gamlp.synth.draw import SynthShape
from gamlp.synth.write import write_synth

MIB = 2**20
LIMIT = 800 * MIB
SHAPE = SynthShape("large", 300_000, 300_000, 8, 200, 0.006, 0.002, 0.002)  # N·C float32 are 229 MiB
SMALL = ("hops=2", "hidden=8", "head_layers=1", "jk_layers=1", "label_layers=1", "label_hops=2", "epochs=1,1")

PEAK = """
import sys
from gamlp.cli.app import main
from gamlp.machine.facts import peak_bytes
try:
    main(sys.argv[1:])
finally:
    print(peak_bytes(), file=sys.stderr)
"""


def peak_of(*words):
    """Run a command; return its result and the largest memory of its process."""
    one = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    command = [sys.executable, "-c", PEAK, *map(str, words), "--json", "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=one)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), int(ran.stderr.split()[-1])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a graph, a run that was trained on it within the limit, and what that took."""
    folder = tmp_path_factory.mktemp("promise")
    write_synth(folder / "graph", SHAPE, memory=2**28)
    chosen = [word for one in (*SMALL, "rows=labelled", "threshold=0") for word in ("--set", one)]
    words = ("--recipe", "ogbn-papers100M", *chosen, "--seeds", 1, "--memory", LIMIT, "--out", folder / "run")
    _, peak = peak_of("train", folder / "graph", *words)
    return folder, peak


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_training_in_two_stages_stays_within_the_limit(trained):
    assert trained[1] < LIMIT


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_predictions_of_all_nodes_stay_within_the_limit_and_are_the_same(trained):
    """All at once they are several times N·C·4 bytes, 229 MiB, beyond the limit; in parts they are what they were."""
    folder, _ = trained
    words = ("predict", folder / "run", folder / "graph", "--rows", "all")
    result, limited = peak_of(*words, "--memory", LIMIT, "--out", folder / "limited.parquet")
    _, free = peak_of(*words, "--out", folder / "free.parquet")
    assert limited < LIMIT < free
    assert result["nodes"] == SHAPE.nodes
    some, whole = (parquet.read_table(folder / f"{name}.parquet") for name in ("limited", "free"))
    np.testing.assert_array_equal(some["id"], whole["id"])
    np.testing.assert_allclose(some["confidence"], whole["confidence"], rtol=1e-4)
    same = np.array(some["predicted"]) == np.array(whole["predicted"])
    assert same.mean() > 0.999  # ties may fall otherwise: parts are cut elsewhere
    assert parquet.ParquetFile(folder / "limited.parquet").num_row_groups > 3


def test_the_room_is_what_is_left_of_the_limit():
    limit = resident_bytes() + 2**30
    assert 2**29 < room_within(limit) < 2**30 + 2**29
    assert room_within(1000) == 1000
    assert room_within(resident_bytes() // 2) == LEAST


def test_a_limit_that_python_alone_takes_up_is_doubted(caplog):
    check_limit(FLOOR)
    assert not caplog.text
    check_limit(200 * MIB)
    assert "--memory 200.0 MiB" in caplog.text
    assert "From 768.0 MiB on the limit is that of the whole process" in caplog.text
