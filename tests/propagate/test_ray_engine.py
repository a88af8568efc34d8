"""The engine for clusters: lost workers, machines that see no files, and how a cluster is shared out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import lose_a_machine
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.errors import ClusterError, SettingsError, StorageError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Adjacency
from gamlp.progress import report_to
from gamlp.propagate import LocalEngine, Propagation
from gamlp.propagate.budget import budget
from gamlp.propagate.engines import ray as ray_engine
from gamlp.propagate.engines.ray import PackedJob, RayEngine, Watch
from gamlp.propagate.engines.ray_cluster import ENVIRONMENT, Machine, Slots, cluster, slots
from gamlp.propagate.hops import load_hops
from gamlp.propagate.sources import FileArray
from gamlp.propagate.spec import Job

RNG = np.random.default_rng(0)
GRAPH = adjacency_from_edges(*RNG.integers(0, 400, (2, 3000)), nodes=400)
FEATURES = RNG.normal(size=(400, 48)).astype(np.float32)  # three cache lines: three blocks on three workers
LITTLE = 3 * 2**20
GIB = 2**30
HOP_BYTES = 400 * 16 * 4  # of a block


def propagate(adjacency, features, **options):
    """Propagate in memory."""
    return LocalEngine().propagate(adjacency, features, Propagation(**options))


def propagate_on_cluster(folder, adjacency, features, *, memory, **options):
    """Propagate on a cluster into a folder."""
    return RayEngine(memory).propagate_to(folder, adjacency, features, Propagation(**options))


def test_a_cluster_is_shared_out_by_memory_then_by_processors():
    small, large = Machine(4, 20 * GIB), Machine(16, 64 * GIB)
    assert slots([large], memory=16 * GIB, lines=100) == Slots(4, 4, 16 * GIB)  # four fit; 16 processors among them
    assert slots([large], memory=16 * GIB, lines=2) == Slots(2, 8, 16 * GIB)  # two blocks are all there is
    assert slots([large], memory=GIB, lines=100) == Slots(16, 1, GIB)  # no more than processors
    assert slots([small, large], memory=16 * GIB, lines=100) == Slots(5, 1, 16 * GIB)  # 1 + 4, up to 3 on the small
    assert slots([small, Machine(2, GIB)], memory=16 * GIB, lines=8) == Slots(1, 4, 16 * GIB)  # the second cannot
    with pytest.raises(SettingsError, match=r"none of the 2 machines .* largest has 64.0 GiB"):
        slots([small, large], memory=65 * GIB, lines=8)


def test_blocks_are_as_many_as_run_at_once_but_whole_lines():
    adjacency = Adjacency(np.zeros(1001, np.int64), np.zeros(0, np.int32))
    for storage, at_once, widths in (
        ("float32", 3, [48, 48, 32]),  # 128 columns are 8 lines of 16: 3, 3, 2
        ("float32", 100, [16] * 8),
        ("float16", 100, [32] * 4),
        ("float16", 2, [64, 64]),
    ):
        job = Job(adjacency, np.empty((1000, 128), np.float32), Propagation(1, storage=storage))
        blocks = budget(job, GIB, at_once).blocks
        assert [block.stop - block.start for block in blocks] == widths


def test_a_block_that_is_tried_again_does_not_count_twice():
    watch = Watch()
    assert watch.total() == 0
    for block, hop in ((0, 1), (0, 2), (1, 1), (0, 1)):
        watch.reached(block, hop)
    assert watch.total() == 3


class Collected:
    """A reporter that adds up the steps."""

    def __init__(self):
        self.total, self.steps = 0, 0

    def __call__(self, description, total):
        self.total = total
        return nullcontext(self.advance)

    def advance(self, steps=1, note=""):
        self.steps += steps


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the worker through /proc")
def test_a_killed_worker_changes_nothing(ray_here, tmp_path):
    """Three workers compute a block each through 300 hops; one is killed once a block has come through 50."""
    killer = Killer(tmp_path / "hops.partial", after_hop=50)
    killer.start()
    report_to(shown := Collected())
    try:
        found = propagate_on_cluster(tmp_path / "hops", GRAPH, FEATURES, hops=300, memory=LITTLE)
    finally:
        report_to(None)
        killer.over = True
        killer.join()
    assert killer.killed
    assert sorted(Counter(name.split("-")[1] for name in killer.attempts).values()) == [1, 1, 2]
    assert_array_equal(found.values, propagate(GRAPH, FEATURES, hops=300).values)
    assert shown.steps == shown.total == 3 * 300
    assert [path.name for path in tmp_path.iterdir()] == ["hops"]


def test_a_lost_machine_changes_nothing(tmp_path):
    """Of two machines with two blocks each, one goes away with its workers; only standard error hears of it."""
    pytest.importorskip("ray")
    script = [sys.executable, lose_a_machine.__file__, tmp_path]
    ended = subprocess.run(script, capture_output=True, text=True, timeout=300, check=False)
    assert ended.stdout == "2 1\n", ended.stderr[-2000:]
    assert "(raylet)" in ended.stderr
    expected = propagate(*lose_a_machine.graph(), hops=lose_a_machine.HOPS)
    assert_array_equal(load_hops(tmp_path / "hops").values, expected.values)
    assert [path.name for path in tmp_path.iterdir()] == ["hops"]


class Killer(threading.Thread):
    """Kills one worker when all blocks have begun and one has come so far, and notes the attempts at all blocks."""

    def __init__(self, folder, after_hop):
        super().__init__()
        self.folder, self.after_hop = folder, after_hop
        self.killed, self.attempts, self.over = 0, set(), False

    def run(self):
        while not self.over:
            sizes = {}
            with suppress(FileNotFoundError):  # the folder is put in its place in the meantime
                sizes = {path.name: size_of(path) for path in self.folder.glob("block-*.tmp")}
            self.attempts |= set(sizes)
            far = any(size > self.after_hop * HOP_BYTES for size in sizes.values())
            if not self.killed and far and len(self.attempts) == 3 and (workers := busy_workers()):
                self.killed = workers[0]
                os.kill(self.killed, signal.SIGKILL)
            time.sleep(0.01)


def size_of(path):
    try:
        return path.stat().st_size
    except OSError:  # finished in the meantime
        return 0


def busy_workers():
    """Return the processes that compute a block: Ray names them so."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.read_bytes().startswith(b"ray::run_block"):
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


class Deadly:
    """Features whose last columns kill the process that reads them, until the file `cure` is there."""

    ndim, dtype = 2, np.dtype(np.float32)

    def __init__(self, values, cure):
        self.values, self.shape, self.cure, self.content = values, values.shape, cure, [values]

    def __len__(self):
        return len(self.values)

    def __getitem__(self, at):
        if at[1].start == 32 and not self.cure.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return self.values[at]


def test_a_block_that_is_lost_every_time_ends_the_run_and_finished_ones_are_kept(ray_here, tmp_path, monkeypatch):
    ray_here.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(ray_engine, "RETRIES", 1)
    features = Deadly(FEATURES, tmp_path / "cure")
    work = {"hops": 2, "memory": LITTLE}
    with pytest.raises(ClusterError, match="Block 3 was lost 2 times"):
        propagate_on_cluster(tmp_path / "hops", GRAPH, features, **work)
    assert not (tmp_path / "hops").exists()
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("hops.partial/block-*.npy")}
    assert len(kept) in {0, 1, 2}
    features.cure.touch()
    found = propagate_on_cluster(tmp_path / "hops", GRAPH, features, **work)
    assert_array_equal(found.values, propagate(GRAPH, FEATURES, hops=2).values)


def test_blocks_return_from_machines_that_do_not_see_the_folder(ray_here, tmp_path, monkeypatch):
    packed_of = PackedJob.of

    def elsewhere(*what, **options):
        return replace(packed_of(*what, **options), token=tmp_path / "not" / "here")

    monkeypatch.setattr(PackedJob, "of", elsewhere)
    rows = np.array([399, 5, 17])
    found = propagate_on_cluster(tmp_path / "hops", GRAPH, FEATURES, hops=2, rows=rows, memory=LITTLE)
    assert_array_equal(found.values, propagate(GRAPH, FEATURES, hops=2, rows=rows).values)


def test_files_are_named_not_sent(ray_here, tmp_path, monkeypatch):
    arrays = {"indptr": GRAPH.indptr, "indices": GRAPH.indices, "features": np.asfortranarray(FEATURES)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    indptr, indices, features = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays)
    monkeypatch.setattr(ray_here, "put", None)  # nothing goes into the store
    found = propagate_on_cluster(tmp_path / "hops", Adjacency(indptr, indices), features, hops=2, memory=LITTLE)
    assert_array_equal(found.values, propagate(GRAPH, FEATURES, hops=2).values)
    (tmp_path / "features.npy").rename(tmp_path / "moved.npy")
    gone = FileArray("/nowhere/features.npy", 1, 0, "<f4", (1,), by_columns=False)
    with pytest.raises(StorageError, match=r"does not see /nowhere/features.npy.\nKeep the graph on storage"):
        gone.open()


def test_another_version_is_refused(ray_here, tmp_path, monkeypatch):
    monkeypatch.setattr("gamlp.__version__", "99.0")  # here; the workers have their own
    with pytest.raises(ClusterError, match=r"the one that asks has 99\.0"):
        propagate_on_cluster(tmp_path / "hops", GRAPH, FEATURES, hops=1, memory=LITTLE)


def test_the_command_line_takes_the_same_road(ray_here, make_planted, tmp_path):
    from typer.testing import CliRunner

    from gamlp.cli.app import app
    from gamlp.graph.store import save_graph

    save_graph(make_planted(), tmp_path / "graph")
    for engine, limit in (("local", ()), ("ray", ("--memory", "64MiB"))):
        words = ["propagate", str(tmp_path / "graph"), "--method", "gamlp-jk", "--recipe", "default", "--out"]
        done = CliRunner().invoke(app, [*words, str(tmp_path / engine), "--engine", engine, *limit, "--json"])
        assert done.exit_code == 0, done.output
    assert_array_equal(load_hops(tmp_path / "ray").values, load_hops(tmp_path / "local").values)


def test_the_environment_is_left_as_it_was(ray_here, monkeypatch):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with cluster() as ray:
        assert ray is ray_here
    assert dict(os.environ) == before
