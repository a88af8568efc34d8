"""Within a memory limit: chunks and hubs, the promise of memory, interruptions, and disks and files that fail."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.errors import NotFiniteError, SettingsError, ShapeError, StorageError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Adjacency
from gamlp.propagate import LocalEngine, Normalization, Propagation, Restart, block_files, chunks, kernels
from gamlp.propagate.block import Block
from gamlp.propagate.block_files import BlockFiles
from gamlp.propagate.budget import Budget, budget
from gamlp.propagate.chunks import Chunk, ChunkPlan, ChunkReader, plan_chunks
from gamlp.propagate.hops import load_hops
from gamlp.propagate.normalize import NodeScales
from gamlp.propagate.sinks import ArraySink
from gamlp.propagate.sources import SparseRows
from gamlp.propagate.spec import Job
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.threads import workers

RNG = np.random.default_rng(0)
GRAPH = adjacency_from_edges(*RNG.integers(0, 400, (2, 3000)), nodes=400)
FEATURES = RNG.normal(size=(400, 40)).astype(np.float32)
LITTLE = 3 * 2**20


def propagate(adjacency, features, **options):
    """Propagate in memory."""
    return LocalEngine().propagate(adjacency, features, Propagation(**options))


def propagate_to(folder, adjacency, features, *, memory=2**30, overwrite=False, **options):
    """Propagate to a folder within a memory limit."""
    return LocalEngine(memory=memory).propagate_to(
        folder, adjacency, features, Propagation(**options), overwrite=overwrite
    )


def by_blocks(plan, features, spec, *, spare=0, widest=64, watch=lambda block: None):
    """Propagate with a plan of chunks, into an array."""
    values = np.empty((len(features), len(spec.kept_hops), features.shape[1]), spec.storage)
    sink = ArraySink(values, spec.kept_hops)
    with workers(1) as run:
        block = Block(plan, spec, widest, run, threads=2, spare=spare)
        watch(block)
        for first in range(0, features.shape[1], widest):
            columns = slice(first, min(first + widest, features.shape[1]))
            with sink.block(0, columns) as rows:
                block.compute(features, columns, rows, lambda: None)
    return values


def job_of_a_million(columns, **options):
    """Return a job on 10⁶ nodes without edges; its columns take no memory."""
    adjacency = Adjacency(np.zeros(10**6 + 1, np.int64), np.zeros(0, np.int32))
    return Job(adjacency, np.broadcast_to(np.float32(0), (10**6, columns)), Propagation(1, **options))


def widest(job, memory):
    """Return the columns of the widest block."""
    return max(block.stop - block.start for block in budget(job, memory).blocks)


def mapped(folder: Path, name: str, array, order="C"):
    """Return an array as a memory-mapped file."""
    np.save(folder / f"{name}.npy", np.asarray(array, order=order))
    return np.load(folder / f"{name}.npy", mmap_mode="r")


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("chunk_bytes", [100, 1000, 10**6])
@pytest.mark.parametrize("self_loops", [True, False])
def test_hubs_may_lie_in_several_chunks(weighted, chunk_bytes, self_loops):
    """Rows of more than 16 entries are cut into segments; the star's centre lies in many chunks of 100 bytes."""
    star = np.stack([np.repeat([0, 399], [300, 60]), np.concatenate([np.arange(1, 301), np.arange(60)])])
    others = RNG.integers(0, 400, (2, 700))
    source, target = np.concatenate([star, others], axis=1)
    weights = RNG.uniform(0.5, 2, 1060) if weighted else None
    adjacency = adjacency_from_edges(source, target, nodes=400, weights=weights)
    normalization = Normalization(0.5, self_loops)
    spec = Propagation(2, normalization)
    whole = plan_chunks(adjacency, self_loops=self_loops, longest=16)
    assert len(whole.chunks) == 1
    plan = plan_chunks(adjacency, self_loops=self_loops, chunk_bytes=chunk_bytes, longest=16)
    assert len(plan.hubs) > 1
    assert max(chunk.stop - chunk.start for chunk in plan.chunks) <= chunk_bytes // 4 + 16
    assert_array_equal(by_blocks(plan, FEATURES, spec), by_blocks(whole, FEATURES, spec))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_chunks_are_read_once_if_there_is_room_for_all(tmp_path, monkeypatch, weighted, share):
    monkeypatch.setattr(chunks, "HUGE_PAGE", 0)
    weights = mapped(tmp_path, "w", RNG.random(GRAPH.entries).astype(np.float32)) if weighted else None
    adjacency = Adjacency(mapped(tmp_path, "p", GRAPH.indptr), mapped(tmp_path, "i", GRAPH.indices), weights)
    plan, reads, blocks = plan_chunks(adjacency, self_loops=True, chunk_bytes=1000), [], []
    all_ = sum((8 if weighted else 4) * (one.stop - one.start) + 12 * (one.last - one.first) for one in plan.chunks)

    def watch(block):
        indices = block.chunks._readers[1]
        rows = indices.rows
        monkeypatch.setattr(indices, "rows", lambda *span: reads.append(span[0]) or rows(*span))
        blocks.append(block)

    values = by_blocks(plan, FEATURES, Propagation(3), spare=int(share * all_), watch=watch)
    assert_array_equal(values, propagate(adjacency, FEATURES, hops=3).values)
    kept = len(blocks[0].chunks.kept)
    assert len(plan.chunks) > 5
    assert kept == (len(plan.chunks) if share == 1.0 else 0)
    assert len(reads) == kept + 3 * (len(plan.chunks) - kept)


def test_chunks_of_arrays_in_memory_are_views():
    plan = plan_chunks(GRAPH, self_loops=True, chunk_bytes=1000)
    reader = ChunkReader(plan, NodeScales(GRAPH, Normalization(), hold=False))
    assert len(plan.chunks) > 5
    for loaded in reader:
        assert np.shares_memory(loaded.indices, GRAPH.indices)
        assert np.shares_memory(loaded.offsets, GRAPH.indptr)


def test_isolated_nodes_are_cut_into_chunks_too():
    adjacency = adjacency_from_edges(np.array([5000]), np.array([9999]), nodes=10_000)
    plan = plan_chunks(adjacency, self_loops=True, chunk_bytes=1000)
    assert max(chunk.last - chunk.first for chunk in plan.chunks) <= 126
    assert [chunk.first for chunk in plan.chunks[1:]] == [chunk.last for chunk in plan.chunks[:-1]]
    found = by_blocks(plan, np.ones((10_000, 1), np.float32), Propagation(1, Normalization(0.0)))
    assert_array_equal(found, 1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16])
def test_mapped_features_by_rows_and_by_columns(tmp_path, order, kind):
    values = RNG.integers(-9, 9, (400, 40)).astype(kind)
    features = mapped(tmp_path, "x", values, order)
    assert features.flags.f_contiguous == (order == "F")
    expected = propagate(GRAPH, values, hops=2).values
    found = propagate_to(tmp_path / "hops", GRAPH, features, hops=2, memory=LITTLE)
    assert_array_equal(found.values, expected)
    assert isinstance(found.values, np.memmap)


def test_labels_take_the_same_road(tmp_path):
    ids = np.sort(RNG.choice(400, 90, replace=False))
    labels = SparseRows(400, 30, ids, np.eye(30)[RNG.integers(0, 30, 90)])
    options = {"hops": 3, "keep": "last", "memory": LITTLE}
    found = propagate_to(tmp_path / "a", GRAPH, labels, **options)
    assert_array_equal(found.values, propagate(GRAPH, labels[:], hops=3, keep="last").values)
    other = propagate_to(tmp_path / "b", GRAPH, labels.only(np.arange(90) > 0), **options)
    assert other.key != found.key


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_a_restart_takes_a_third_state(storage):
    memory = 10**9 if storage == "float32" else 5 * 10**8
    assert widest(job_of_a_million(1000, storage=storage), memory) == 96
    assert widest(job_of_a_million(1000, storage=storage, restart=Restart(0.5)), memory) == 64


def test_without_a_cache_hops_are_in_a_folder_that_goes_with_them(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    hops = LocalEngine(memory=LITTLE).propagate(GRAPH, FEATURES, Propagation(2))
    assert isinstance(hops.values, np.memmap)
    assert len(list(tmp_path.iterdir())) == 1
    last = hops.values[:, -1]
    del hops
    assert len(list(tmp_path.iterdir())) == 1  # somebody still reads them
    assert_array_equal(last, propagate(GRAPH, FEATURES, hops=2).values[:, -1])
    del last
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotFiniteError):
        LocalEngine(memory=LITTLE).propagate(GRAPH, FEATURES * 1e9, Propagation(2, storage="float16"))
    assert list(tmp_path.iterdir()) == []


def test_the_budget_chooses_the_width():
    for memory, storage, columns in ((10**9, "float32", 96), (200 * 10**6, "float32", 16), (10**8, "float16", 16)):
        assert widest(job_of_a_million(1000, storage=storage), memory) == columns
    assert widest(job_of_a_million(1000), 10**8) == 8  # half a cache line, where no more fits
    assert widest(job_of_a_million(5), 10**9) == 5
    with pytest.raises(SettingsError, match=r"1,000,000 nodes need 3\d\.\d MiB for four columns of float32"):
        budget(job_of_a_million(1000), 10**7)


PROGRAM = """
import sys
import numpy as np
from pathlib import Path
from gamlp.graph.graph import Adjacency
from gamlp.propagate import LocalEngine, Propagation, Restart
folder, memory, restart = Path(sys.argv[1]), int(sys.argv[2]), Restart(0.5) if sys.argv[3] == "restart" else None
maps = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "features")]
def status(what):
    return int(Path("/proc/self/status").read_text().split(what)[1].split()[0]) * 1024
tiny = Adjacency(np.array([0, 1, 2]), np.array([1, 0], np.int32))
options = {"storage": "float16", "restart": restart}
for columns in (4, 8, 16, 32, 48, 64):
    spec = Propagation(1, **options)
    LocalEngine(2**30, threads=2).propagate_to(folder / f"t{columns}", tiny, np.ones((2, columns)), spec)
rows = np.arange(0, len(maps[2]), 9)
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS:")
engine = LocalEngine(memory, threads=2)
engine.propagate_to(folder / "hops", Adjacency(*maps[:2]), maps[2], Propagation(2, rows=rows, **options))
print(status("VmHWM:") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("restart", ["", "restart"])
def test_the_promise_of_memory_is_kept(tmp_path, restart):
    """400,000 nodes × 64 columns: features of 100 MiB and states of 50 MiB each, in 96 MiB of resident memory."""
    nodes, memory = 400_000, 96 * 2**20
    source = np.random.default_rng(1).integers(0, nodes, (2, 10**6))
    adjacency = adjacency_from_edges(*source, nodes=nodes)
    for name, array in (("indptr", adjacency.indptr), ("indices", adjacency.indices)):
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "features.npy", np.ones((nodes, 64), np.float32))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(memory), restart], check=True, capture_output=True, text=True
    )
    peak = int(done.stdout)
    assert 2 * nodes * 2 * 32 < peak < memory


def test_a_stopped_run_goes_on_after_its_last_finished_block(tmp_path, monkeypatch):
    expected = propagate(GRAPH, FEATURES, hops=2).values
    options = {"hops": 2, "memory": LITTLE}
    room = Budget([slice(0, 16), slice(16, 32), slice(32, 40)], 2**18)
    monkeypatch.setattr(LocalEngine, "budget", lambda *_: room)
    computed, compute = [], Block.compute

    def stops(self, features, columns, *rest):
        if len(computed) == 2:
            raise KeyboardInterrupt
        computed.append(columns)
        compute(self, features, columns, *rest)

    monkeypatch.setattr(Block, "compute", stops)
    with pytest.raises(KeyboardInterrupt):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES, **options)
    assert not (tmp_path / "hops").exists()
    with pytest.raises(KeyboardInterrupt):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES, **options)
    computed.clear()
    found = propagate_to(tmp_path / "hops", GRAPH, FEATURES, **options)
    assert computed == [slice(32, 40)]
    assert_array_equal(found.values, expected)
    assert [path.name for path in tmp_path.iterdir()] == ["hops"]


def test_a_run_begun_on_another_graph_is_not_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr(BlockFiles, "join", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=2)
    monkeypatch.undo()
    found = propagate_to(tmp_path / "hops", GRAPH, FEATURES + 1, hops=2)
    assert_array_equal(found.values, propagate(GRAPH, FEATURES + 1, hops=2).values)


KILLED = """
import sys, time
import numpy as np
from pathlib import Path
from gamlp.graph.graph import Adjacency
from gamlp.propagate import LocalEngine, Propagation
from gamlp.propagate.block import Block
from gamlp.propagate.budget import Budget
folder, pause = Path(sys.argv[1]), float(sys.argv[2])
maps = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "features")]
step = Block.step
def slow(self, *rest):
    step(self, *rest)
    (folder / "begun").touch()
    time.sleep(pause)
Block.step = slow
LocalEngine.budget = lambda *_: Budget([slice(at, at + 8) for at in range(0, 40, 8)], 2**18)
print("ready", flush=True)
LocalEngine(2**30, threads=1).propagate_to(folder / "hops", Adjacency(*maps[:2]), maps[2], Propagation(3))
"""


def test_kill_9_at_any_point(tmp_path):
    """Killed twice while hops are computed, then left alone: the files are those of a run that was never killed."""
    for name, array in (("indptr", GRAPH.indptr), ("indices", GRAPH.indices), ("features", FEATURES)):
        np.save(tmp_path / f"{name}.npy", array)
    finished = [0]
    for delay in (0.25, 0.5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), "0.06"], stdout=subprocess.PIPE)
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        (tmp_path / "begun").unlink()
        assert not (tmp_path / "hops").exists()
        finished.append(len(list((tmp_path / "hops.partial").glob("block-*.npy"))))
    assert finished == sorted(finished)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "0"], check=True, stdout=subprocess.DEVNULL)
    assert_array_equal(load_hops(tmp_path / "hops").values, propagate(GRAPH, FEATURES, hops=3).values)
    propagate_to(tmp_path / "other", GRAPH, FEATURES, hops=3)
    for file in ("values.npy", "hops.json"):
        assert (tmp_path / "hops" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_a_full_disk_keeps_what_was_there(tmp_path, monkeypatch):
    before = propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=1)
    put, hops = BlockFiles.put, iter(range(3))

    def full(*what):
        if next(hops) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        put(*what)

    monkeypatch.setattr(BlockFiles, "put", full)
    with pytest.raises(StorageError, match="No space left on device"):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=2, overwrite=True)
    assert_array_equal(load_hops(tmp_path / "hops").values, before.values)
    monkeypatch.undo()
    again = propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=2, overwrite=True)
    assert_array_equal(again.values, propagate(GRAPH, FEATURES, hops=2).values)


def test_what_the_disk_cannot_hold_is_refused_at_once(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(block_files.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StorageError, match=r"needs 375.0 KiB of the disk while it is made, 1000 B are free"):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=2)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changes_or_ends_under_us(tmp_path):
    features = mapped(tmp_path, "x", FEATURES)
    source = ArrayReader(features)
    source.check_unchanged()
    os.utime(tmp_path / "x.npy", ns=(1, 1))
    with pytest.raises(StorageError, match=r"x\.npy was changed while it was being read"):
        source.check_unchanged()
    os.truncate(tmp_path / "x.npy", 128 + 350 * 160)
    with pytest.raises(StorageError, match=r"x\.npy ends 8,000 bytes before its array does"):
        source.block(300, 400, slice(0, 16))
    source.close()
    with pytest.raises(StorageError, match="ends"):
        propagate_to(tmp_path / "hops", GRAPH, features, hops=1)
    assert not (tmp_path / "hops").exists()


def test_hops_of_another_graph_are_neither_used_nor_lost(tmp_path):
    first = propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=1)
    again = propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=1)
    assert again.key == first.key
    other = adjacency_from_edges(*RNG.integers(0, 400, (2, 50)), nodes=400)
    with pytest.raises(StorageError, match="another graph, of this one before it changed"):
        propagate_to(tmp_path / "hops", other, FEATURES, hops=1)
    assert_array_equal(load_hops(tmp_path / "hops", first.key).values, first.values)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(StorageError, match="holds no hops"):
        propagate_to(tmp_path / "mine", other, FEATURES, hops=1, overwrite=True)


def test_the_cache_is_shared_with_and_without_a_limit(tmp_path):
    spec = Propagation(2, rows=np.array([5, 1]))
    first = LocalEngine(LITTLE, tmp_path).propagate(GRAPH, FEATURES, spec)
    stamp = (tmp_path / first.key / "values.npy").stat().st_mtime_ns
    second = LocalEngine(cache=tmp_path).propagate(GRAPH, FEATURES, spec)
    assert second.key == first.key
    assert (tmp_path / first.key / "values.npy").stat().st_mtime_ns == stamp
    assert_array_equal(second.values, propagate(GRAPH, FEATURES, hops=2).values[[5, 1]])


def test_offsets_that_do_not_rise_are_refused():
    wrong = Adjacency(np.array([0, 2, 1, 2]), np.array([0, 1], np.int32))
    with pytest.raises(ShapeError, match="do not rise"):
        plan_chunks(wrong, self_loops=True)


def test_float16_that_overflows_leaves_nothing(tmp_path):
    with pytest.raises(NotFiniteError, match="65,504"):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES * 1e5, hops=1, storage="float16")
    assert not (tmp_path / "hops").exists()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_float16_notices_what_is_no_number(tmp_path, order, bad):
    values = FEATURES.copy()
    values[17, 3] = bad
    with pytest.raises(NotFiniteError, match="NaN or infinite"):
        propagate_to(tmp_path / "hops", GRAPH, mapped(tmp_path, "x", values, order), hops=1, storage="float16")


@pytest.mark.parametrize("order", ["C", "F"])
def test_float16_from_files_is_float16_in_memory(tmp_path, order):
    values = (FEATURES * np.geomspace(1e-6, 1e3, 40)).astype(np.float32)
    found = propagate_to(tmp_path / "hops", GRAPH, mapped(tmp_path, "x", values, order), hops=2, storage="float16")
    assert_array_equal(found.values, propagate(GRAPH, values, hops=2, storage="float16").values)


def test_entries_beyond_2_to_the_31(tmp_path):
    """A sparse file of 2³¹ + 1,000 entries, of which the last 20 belong to nodes: offsets pass 2³¹, bytes 2³³."""
    entries = 2**31 + 1000
    indices = np.lib.format.open_memmap(tmp_path / "i.npy", mode="w+", dtype=np.int32, shape=(entries,))
    tail = np.arange(20, dtype=np.int32) % 4
    indices[-20:] = tail
    indices.flush()
    adjacency = Adjacency(np.array([0, 0, 5, 10, 15, 20]) + entries - 20, np.load(tmp_path / "i.npy", mmap_mode="r"))
    source = ArrayReader(adjacency.indices)
    assert_array_equal(source.rows(entries - 20, entries, np.empty(20, np.int32)), tail)
    chunk, none = Chunk(0, 5, entries - 20, entries, (0, 0)), np.empty(0, np.int64)
    plan = ChunkPlan(
        *(adjacency, False, 2**20, [chunk], 8192), *(none, np.zeros(1, np.int64), np.empty((0, 3), np.int64))
    )  # a walk over 8 GiB of zeros is left out
    x = RNG.normal(size=(5, 4)).astype(np.float32)
    found = by_blocks(plan, x, Propagation(1, Normalization(0.0, self_loops=False)))[:, 1]
    expected = [np.zeros(4), *(x[row].astype(np.float64).mean(axis=0) for row in tail.reshape(4, 5))]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_states_beyond_2_to_the_31_values():
    """Rows far apart in a large, mostly untouched state are found: row · stride passes 2³¹ values."""
    nodes, width = 2**27 + 10, 16
    x = np.zeros((nodes, width), np.float32)  # 8 GiB of untouched zero pages
    x[-1], x[-2] = 3, 5
    out = np.zeros((1, width), np.float32)
    indices = np.array([nodes - 1, nodes - 2, 0], np.int32)
    chunk = (0, 0, np.array([0, 3]), indices, None, np.ones(1, np.float32))
    kernels.sum_rows(chunk, x, False, out, 99, 0, 1, kernels.quads(width))
    assert_array_equal(out, 8)
