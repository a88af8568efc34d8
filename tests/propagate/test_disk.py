"""The engine on disk: chunks and hubs, its promise of memory, interruptions, and disks and files that fail."""

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
from gamlp.propagate import Normalization, Propagator, disk, disk_parts, disk_route, kernels, propagate
from gamlp.propagate.cache import cached_propagate
from gamlp.propagate.disk import OneHot, propagate_labels_to, propagate_to
from gamlp.propagate.disk_block import StreamedBlock, propagate_block
from gamlp.propagate.disk_budget import Budget, budget
from gamlp.propagate.disk_route import Chunk, Route, route
from gamlp.propagate.hops_folder import load_hops
from gamlp.propagate.plan import plan
from gamlp.storage.array_reader import ArrayReader
from gamlp.storage.threads import workers

RNG = np.random.default_rng(0)
GRAPH = adjacency_from_edges(*RNG.integers(0, 400, (2, 3000)), nodes=400)
FEATURES = RNG.normal(size=(400, 40)).astype(np.float32)
LITTLE = 3 * 2**20


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
    operator = Propagator(adjacency, normalization)
    operator._plan = plan(adjacency, normalization, threads=1, longest=16)
    expected = operator.hops(FEATURES, hops=2, rows=None, last_only=False, storage="float32")
    way = route(adjacency, normalization, chunk_bytes=chunk_bytes, longest=16)
    assert len(way.hubs) > 1
    assert way.most_entries <= chunk_bytes // 4 + 16
    values = np.empty_like(expected)

    def keep(hop, first, part):
        values[first : first + len(part), hop] = part

    with workers(1) as run:
        block = StreamedBlock(way, 40, "float32", run, threads=2)
        block.carry(FEATURES, slice(0, 40), hops=2, last_only=False, sink=keep, advance=lambda: None)
    assert_array_equal(values, expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_chunks_are_read_once_if_there_is_room_for_all(monkeypatch, weighted, share):
    monkeypatch.setattr(disk_route, "HUGE_PAGE", 0)
    weights = RNG.random(GRAPH.entries).astype(np.float32) if weighted else None
    adjacency = Adjacency(GRAPH.indptr, GRAPH.indices, weights)
    way = route(adjacency, Normalization(), chunk_bytes=1000)
    all_ = sum((8 if weighted else 4) * (one.stop - one.start) + 12 * (one.last - one.first) for one in way.chunks)
    values, reads = np.empty((400, 4, 40), np.float32), []

    def keep(hop, first, part):
        values[first : first + len(part), hop] = part

    with workers(1) as run:
        block = StreamedBlock(way, 40, "float32", run, threads=2, spare=int(share * all_))
        rows = block._indices.rows
        monkeypatch.setattr(block._indices, "rows", lambda *span: reads.append(span[0]) or rows(*span))
        block.carry(FEATURES, slice(0, 40), hops=3, last_only=False, sink=keep, advance=lambda: None)
    assert_array_equal(values, propagate(adjacency, FEATURES, hops=3).values)
    kept = len(block._kept)
    assert len(way.chunks) > 5
    assert kept == (len(way.chunks) if share == 1.0 else 0)
    assert len(reads) == kept + 3 * (len(way.chunks) - kept)


def test_isolated_nodes_are_cut_into_chunks_too():
    adjacency = adjacency_from_edges(np.array([5000]), np.array([9999]), nodes=10_000)
    way = route(adjacency, Normalization(), chunk_bytes=1000)
    assert way.most_rows <= 126
    assert [chunk.first for chunk in way.chunks[1:]] == [chunk.last for chunk in way.chunks[:-1]]
    features = np.ones((10_000, 1), np.float32)
    found = propagate_block(
        adjacency, features, slice(0, 1), hops=1, normalization=Normalization(0.0), chunk_bytes=1000
    )
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


def test_a_block_at_a_time_is_what_all_blocks_are():
    whole = propagate(GRAPH, FEATURES, hops=2).values
    rows = np.array([3, 5, 399])
    for columns in (slice(0, 16), slice(16, 40), slice(39, 40)):
        part = propagate_block(GRAPH, FEATURES, columns, hops=2, normalization=Normalization(), rows=rows)
        assert_array_equal(part, whole[rows][:, :, columns])


def test_labels_take_the_same_road(tmp_path):
    labels = RNG.integers(-1, 30, 400)
    dense = np.zeros((400, 30), np.float32)
    dense[np.flatnonzero(labels >= 0), labels[labels >= 0]] = 1
    assert_array_equal(OneHot(labels, 30)[3:90, 4:20], dense[3:90, 4:20])
    found = propagate_labels_to(tmp_path / "a", GRAPH, labels, 30, hops=3, memory=LITTLE)
    assert_array_equal(found.values, propagate(GRAPH, dense, hops=3, keep="last").values)
    other = propagate_labels_to(tmp_path / "b", GRAPH, (labels + 2) % 29, 30, hops=3, memory=LITTLE)
    assert other.key != found.key


def test_the_budget_chooses_the_width():
    adjacency = Adjacency(np.zeros(10**6 + 1, np.int64), np.zeros(0, np.int32))
    for memory, storage, columns in ((10**9, "float32", 96), (200 * 10**6, "float32", 16), (10**8, "float16", 16)):
        assert budget(adjacency, 1000, storage=storage, memory=memory).widest == columns
    assert budget(adjacency, 1000, storage="float32", memory=10**8).widest == 8  # half a cache line, where no more fits
    assert budget(adjacency, 5, storage="float32", memory=10**9).widest == 5
    with pytest.raises(SettingsError, match=r"1,000,000 nodes need 3\d\.\d MiB for four columns of float32"):
        budget(adjacency, 1000, storage="float32", memory=10**7)


PROGRAM = """
import sys
import numpy as np
from pathlib import Path
from gamlp.graph.graph import Adjacency
from gamlp.propagate.disk import propagate_to
folder, memory = Path(sys.argv[1]), int(sys.argv[2])
maps = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "features")]
def status(what):
    return int(Path("/proc/self/status").read_text().split(what)[1].split()[0]) * 1024
tiny = Adjacency(np.array([0, 1, 2]), np.array([1, 0], np.int32))
for columns in (4, 8, 16, 32, 48, 64):
    propagate_to(folder / f"t{columns}", tiny, np.ones((2, columns)), hops=1, storage="float16", key="x", threads=2)
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS:")
propagate_to(folder / "hops", Adjacency(*maps[:2]), maps[2], hops=2, storage="float16", memory=memory, threads=2,
             rows=np.arange(0, len(maps[2]), 9), key="x")
print(status("VmHWM:") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_promise_of_memory_is_kept(tmp_path):
    """400,000 nodes × 64 columns: features of 100 MiB and states of 50 MiB each, in 96 MiB of resident memory."""
    nodes, memory = 400_000, 96 * 2**20
    source = np.random.default_rng(1).integers(0, nodes, (2, 10**6))
    adjacency = adjacency_from_edges(*source, nodes=nodes)
    for name, array in (("indptr", adjacency.indptr), ("indices", adjacency.indices)):
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "features.npy", np.ones((nodes, 64), np.float32))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(memory)], check=True, capture_output=True, text=True
    )
    peak = int(done.stdout)
    assert 2 * nodes * 2 * 32 < peak < memory


def test_a_stopped_run_goes_on_after_its_last_finished_block(tmp_path, monkeypatch):
    expected = propagate(GRAPH, FEATURES, hops=2).values
    options = {"hops": 2, "memory": LITTLE}
    room = Budget([slice(0, 16), slice(16, 32), slice(32, 40)], 2**18)
    monkeypatch.setattr(disk, "budget", lambda *_, **__: room)
    carried, carry = [], StreamedBlock.carry

    def stops(self, features, columns, **rest):
        if len(carried) == 2:
            raise KeyboardInterrupt
        carried.append(columns)
        carry(self, features, columns, **rest)

    monkeypatch.setattr(StreamedBlock, "carry", stops)
    with pytest.raises(KeyboardInterrupt):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES, **options)
    assert not (tmp_path / "hops").exists()
    with pytest.raises(KeyboardInterrupt):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES, **options)
    carried.clear()
    found = propagate_to(tmp_path / "hops", GRAPH, FEATURES, **options)
    assert carried == [slice(32, 40)]
    assert_array_equal(found.values, expected)
    assert [path.name for path in tmp_path.iterdir()] == ["hops"]


def test_a_run_begun_on_another_graph_is_not_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_parts.Parts, "join", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
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
from gamlp.propagate import disk
from gamlp.propagate.disk_block import StreamedBlock
folder, pause = Path(sys.argv[1]), float(sys.argv[2])
maps = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "features")]
hop = StreamedBlock.hop
def slow(self):
    hop(self)
    (folder / "begun").touch()
    time.sleep(pause)
StreamedBlock.hop = slow
room = disk.budget
disk.budget = lambda *what, **options: disk.Budget([slice(at, at + 8) for at in range(0, 40, 8)], 2**18)
print("ready", flush=True)
disk.propagate_to(folder / "hops", Adjacency(*maps[:2]), maps[2], hops=3, threads=1)
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
    append, hops = disk_parts._append, iter(range(3))

    def full(file, values):
        if next(hops) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(file, values)

    monkeypatch.setattr(disk_parts, "_append", full)
    with pytest.raises(StorageError, match="No space left on device"):
        propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=2, overwrite=True)
    assert_array_equal(load_hops(tmp_path / "hops").values, before.values)
    monkeypatch.undo()
    again = propagate_to(tmp_path / "hops", GRAPH, FEATURES, hops=2, overwrite=True)
    assert_array_equal(again.values, propagate(GRAPH, FEATURES, hops=2).values)


def test_what_the_disk_cannot_hold_is_refused_at_once(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(disk_parts.shutil, "disk_usage", lambda _: usage)
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


def test_the_cache_is_shared_by_both_engines(tmp_path):
    options = {"hops": 2, "rows": np.array([5, 1]), "device": "cpu"}
    first = cached_propagate(tmp_path, GRAPH, FEATURES, memory=LITTLE, **options)
    stamp = (tmp_path / first.key / "values.npy").stat().st_mtime_ns
    second = cached_propagate(tmp_path, GRAPH, FEATURES, **options)
    assert second.key == first.key
    assert (tmp_path / first.key / "values.npy").stat().st_mtime_ns == stamp
    assert_array_equal(second.values, propagate(GRAPH, FEATURES, hops=2).values[[5, 1]])
    with pytest.raises(SettingsError, match="--cache"):
        cached_propagate(None, GRAPH, FEATURES, hops=1, memory=LITTLE)


def test_offsets_that_do_not_rise_are_refused():
    wrong = Adjacency(np.array([0, 2, 1, 2]), np.array([0, 1], np.int32))
    with pytest.raises(ShapeError, match="do not rise"):
        route(wrong, Normalization(), chunk_bytes=2**20)


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
    with workers(1) as run:
        way = StreamedBlock.__new__(
            StreamedBlock
        )  # only what loading a chunk needs: a walk over 8 GiB of zeros is none
        chunk = Chunk(0, 5, entries - 20, entries, (0, 0))
        empty = np.empty(0, np.int64)
        way.way = Route(
            *(adjacency, Normalization(0.0, self_loops=False), [chunk], 2**20, 8192),
            *(empty, np.zeros(1, np.int64), np.empty((0, 3), np.int64), None),
        )
        way.run, way.rows, way.pieces, way.storage = run, None, 1, "float32"
        way._states = np.empty(5 * 4, np.float32), np.empty(5 * 4, np.float32)
        way._shape(4)
        way._offsets, way._indices, way._weights = ArrayReader(adjacency.indptr), source, None
        way._kept, way._keep = {}, False
        way._buffers = [way._chunk_buffers(5, 20) for _ in range(2)]
        x = RNG.normal(size=(5, 4)).astype(np.float32)
        way.x[:] = x
        way.hop()
    expected = [np.zeros(4), *(x[row].astype(np.float64).mean(axis=0) for row in tail.reshape(4, 5))]
    np.testing.assert_allclose(way.x, expected, rtol=1e-6, atol=1e-7)


def test_states_beyond_2_to_the_31_values():
    """Rows far apart in a large, mostly untouched state are found: row · stride passes 2³¹ values."""
    nodes, width = 2**27 + 10, 16
    x = np.zeros((nodes, width), np.float32)  # 8 GiB of untouched zero pages
    x[-1], x[-2] = 3, 5
    out = np.zeros((1, width), np.float32)
    indices = np.array([nodes - 1, nodes - 2, 0], np.int32)
    kernels.sum_rows(
        *(np.array([0, 3]), indices, None, x, False, out, np.ones(1, np.float32), 99, 0, 1, kernels.quads(width))
    )
    assert_array_equal(out, 8)
