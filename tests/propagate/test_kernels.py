"""The compiled kernels: the same bits whatever the threads, the blocks, the ids and the processor."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import gamlp
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Adjacency
from gamlp.propagate import LocalEngine, Normalization, Propagation, float16, kernels, layout
from gamlp.propagate.block import Block
from gamlp.propagate.chunks import equal_work, plan_chunks
from gamlp.propagate.sinks import ArraySink
from gamlp.storage.huge_pages import empty
from gamlp.storage.numba_cache import imported_files
from gamlp.storage.threads import available, ranges, workers

NODES = 4000


@pytest.fixture(scope="module")
def hub_graph():
    """A random graph whose node 17 knows every other node."""
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, NODES, (2, 30_000))
    others = np.delete(np.arange(NODES), 17)
    return adjacency_from_edges(
        np.concatenate([source, np.full(NODES - 1, 17)]), np.concatenate([target, others]), nodes=NODES
    )


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(1).normal(size=(NODES, 40)).astype(np.float32)


def hops_of(adjacency, features, *, threads=2, widest=3, longest=700, storage="float32", self_loops=True):
    spec = Propagation(2, Normalization(0.5, self_loops), storage=storage)
    plan = plan_chunks(adjacency, self_loops=self_loops, longest=longest)
    values = np.empty((len(features), 3, features.shape[1]), storage)
    with workers(threads) as run:
        block = Block(plan, spec, 16 * widest, run, threads=threads)
        for columns in layout.column_blocks(features.shape[1], widest, nodes=len(features), itemsize=values.itemsize):
            with ArraySink(values, [0, 1, 2]).block(0, columns) as rows:
                block.compute(features, columns, rows, lambda: None)
    return values


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_bits_do_not_depend_on_threads_or_blocks(hub_graph, features, storage):
    expected = hops_of(hub_graph, features, threads=1, storage=storage)
    for threads in (2, 3, 5):
        assert_array_equal(hops_of(hub_graph, features, threads=threads, storage=storage), expected)
    for widest in (1, 2):
        assert_array_equal(hops_of(hub_graph, features, widest=widest, storage=storage), expected)
    assert_array_equal(hops_of(hub_graph, features[:, 5:9].copy(), storage=storage), expected[:, :, 5:9])


@pytest.mark.parametrize("self_loops", [True, False])
def test_hubs_in_segments_equal_hubs_in_one_go(hub_graph, features, self_loops):
    ready = plan_chunks(hub_graph, self_loops=self_loops, longest=700)
    assert_array_equal(ready.hubs, [17])
    assert len(ready.segments) == 6  # 3,999 neighbours: 5 × 700 and the rest
    cut = hops_of(hub_graph, features, longest=700, self_loops=self_loops)
    whole = hops_of(hub_graph, features, longest=10**6, self_loops=self_loops)
    assert_allclose(cut, whole, atol=1e-5)
    ordinary = np.diff(hub_graph.indptr) <= 700
    assert_array_equal(cut[ordinary, 1], whole[ordinary, 1])


def test_long_ids_and_read_only_arrays_give_the_same_bits(hub_graph, features):
    expected = hops_of(hub_graph, features)
    indices = hub_graph.indices.astype(np.int64)
    indices.flags.writeable = False
    assert_array_equal(hops_of(Adjacency(hub_graph.indptr, indices), features), expected)


def test_weights_of_one_change_nothing(hub_graph, features):
    weighted = Adjacency(hub_graph.indptr, hub_graph.indices, np.ones(hub_graph.entries, np.float32))
    assert_array_equal(hops_of(weighted, features), hops_of(hub_graph, features))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names an x86 processor")
def test_a_processor_without_vectors_gives_the_same_bits(hub_graph, features, tmp_path):
    """The same in a process that compiles for the plainest processor: no AVX, no float16 instructions."""
    np.savez(tmp_path / "in.npz", indptr=hub_graph.indptr, indices=hub_graph.indices, features=features)
    program = f"""
import numpy as np
from gamlp.graph.graph import Adjacency
from gamlp.propagate import Propagation, propagate, kernels
assert not kernels.cpu_features() & {{"avx", "f16c"}} and kernels.widest_block() == 3
data = np.load({str(tmp_path / "in.npz")!r})
hops = propagate(Adjacency(data["indptr"], data["indices"]), data["features"], Propagation(2, storage="float16"))
np.save({str(tmp_path / "out.npy")!r}, hops.values)
"""
    plain = {**os.environ, "NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=plain, check=True)
    assert_array_equal(np.load(tmp_path / "out.npy"), hops_of(hub_graph, features, longest=8192, storage="float16"))


@pytest.mark.parametrize("columns", [16, 48])
@pytest.mark.parametrize("processor", ["znver4", "cascadelake"])
def test_how_far_ahead_rows_are_asked_for_changes_no_sum(hub_graph, monkeypatch, processor, columns):
    """AMD's processors and others have distances of their own; sums of small whole numbers are exact."""
    monkeypatch.setattr(kernels, "cpu_name", lambda: processor)
    x = np.random.default_rng(5).integers(-8, 8, (NODES, columns)).astype(np.float32)
    out, scale = np.empty_like(x), np.ones(NODES, np.float32)
    chunk = (0, 0, hub_graph.indptr, hub_graph.indices, None, scale)
    compiled_anew = njit(kernels.sum_rows.py_func)
    compiled_anew(chunk, x, False, out, NODES, 0, NODES, kernels.quads(columns))
    matrix = sparse.csr_array((np.ones(hub_graph.entries), hub_graph.indices, hub_graph.indptr))
    assert_array_equal(out, matrix @ x)


@intrinsic
def narrow_by_integers(context, value):
    return types.uint16(types.float32), lambda c, builder, s, a: float16.narrow(builder, a[0], native=False)


@intrinsic
def widen_by_integers(context, value):
    return types.float32(types.uint16), lambda c, builder, s, a: float16.widen(builder, a[0], native=False)


@njit
def narrow_all(values, out):
    for i in range(len(values)):
        out[i] = narrow_by_integers(values[i])


@njit
def widen_all(values, out):
    for i in range(len(values)):
        out[i] = widen_by_integers(values[i])


def test_float16_by_integers_equals_numpy():
    every = np.arange(2**16, dtype=np.uint16)
    finite = every[np.isfinite(every.view(np.float16))]
    wide = np.empty(len(finite), np.float32)
    widen_all(finite, wide)
    assert_array_equal(wide, finite.view(np.float16).astype(np.float32))
    between = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    ties = (wide[:-1] + wide[1:]) / 2
    values = np.concatenate([wide, ties, between[np.isfinite(between)], np.float32([65519, 65520, 1e9, -1e-9])])
    narrow = np.empty(len(values), np.uint16)
    narrow_all(values, narrow)
    with np.errstate(over="ignore"):
        assert_array_equal(narrow, values.astype(np.float16).view(np.uint16))


def test_scalars_and_vectors_take_the_same_road():
    assert float16._like(ir.VectorType(ir.FloatType(), 16), ir.IntType(16)) == ir.VectorType(ir.IntType(16), 16)
    assert float16.native(frozenset({"f16c"}))
    assert not float16.native(frozenset({"sse2"}))


def test_equal_work_covers_every_row_once():
    indptr = np.concatenate([[0], np.cumsum(np.random.default_rng(2).pareto(1.0, 50_000).astype(np.int64))])
    pieces = equal_work(indptr, 8)
    assert len(pieces) == 8
    assert [first for first, _ in pieces] == [0, *[last for _, last in pieces[:-1]]]
    assert pieces[-1][1] == 50_000
    work = [indptr[b] - indptr[a] + 4 * (b - a) for a, b in pieces]
    assert max(work) <= (indptr[-1] + 200_000) / 8 + np.diff(indptr).max() + 4


def test_column_blocks_are_equal_and_cover_every_column():
    assert layout.column_blocks(128, 7, nodes=10) == [slice(0, 64), slice(64, 128)]
    assert layout.column_blocks(1, 7, nodes=10) == [slice(0, 1)]
    assert layout.column_blocks(160, 7, nodes=10, itemsize=2) == [slice(0, 96), slice(96, 160)]  # 3 and 2 lines


def test_a_few_columns_beyond_a_whole_line_go_apart_where_they_stay_in_the_cache():
    assert layout.column_blocks(100, 7, nodes=2_000_000) == [slice(0, 96), slice(96, 100)]  # 6 lines and 16 bytes
    assert layout.column_blocks(100, 7, nodes=2_000_000, itemsize=2) == [slice(0, 96), slice(96, 100)]
    assert layout.column_blocks(100, 7, nodes=5_000_000) == [slice(0, 100)]  # 80 MB are no longer in the cache
    assert layout.column_blocks(108, 7, nodes=10) == [slice(0, 108)]  # 12 of a line's 16 columns: a line anyway


@pytest.mark.parametrize("columns", [1, 4, 5, 9, 20, 100])
@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_every_width_of_rows_equals_scipy(hub_graph, columns, storage):
    x = np.random.default_rng(4).standard_normal((hub_graph.nodes, columns)).astype(np.float32)
    matrix = sparse.csr_array((np.ones(hub_graph.entries), hub_graph.indices, hub_graph.indptr))
    expected = matrix @ x.astype(np.float64) / np.maximum(np.diff(hub_graph.indptr), 1)[:, None]
    spec = Propagation(1, Normalization(0.0, self_loops=False), storage=storage)
    found = LocalEngine().propagate(hub_graph, x, spec)
    assert_allclose(found.values[:, 1], expected, atol=1e-5 if storage == "float32" else 2e-3)


def test_large_arrays_begin_on_a_page_and_small_ones_on_a_line():
    assert empty((3, 16), "float32").ctypes.data % 64 == 0
    large = empty((2**16, 16), "float32")
    assert large.ctypes.data % 2**21 == 0
    assert large.shape == (2**16, 16)
    assert empty((0, 3), "float16").shape == (0, 3)


def test_threads_return_in_order_and_pass_errors_on(monkeypatch):
    with workers(3) as run:
        assert run([lambda i=i: i for i in range(20)]) == list(range(20))
        with pytest.raises(ZeroDivisionError):
            run([lambda: 1, lambda: 1 // 0])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert available() == 1
    assert ranges(5, 2) == [(0, 2), (2, 4), (4, 5)]


def test_engines_may_run_in_several_threads_at_once(hub_graph, features):
    propagate = partial(LocalEngine().propagate, hub_graph, features, Propagation(1))
    expected = propagate().values
    with workers(3) as run:
        for result in run([propagate] * 4):
            assert_array_equal(result.values, expected)


@pytest.mark.parametrize("module", [kernels, layout])
def test_compiled_code_is_keyed_by_the_conversions_too(module):
    """What was compiled from an older float16 is not loaded, though the file of the function is the same."""
    assert Path(float16.__file__) in imported_files(Path(module.__file__), Path(gamlp.__file__).parents[1])


# Rows 3 … 6 of a matrix of nine, its entries from the tenth on; the last row has four.
OFFSETS, NEIGHBOURS = np.array([10, 12, 12, 15, 19]), np.array([0, 5, 3, 4, 8, 6, 7, 1, 2], np.int32)
ENTRY_WEIGHTS = np.array([0.5, 2, 1, -1, 3, 0.25, 1, 4, 2], np.float32)
ROW_SCALE = np.array([0.5, 2, 0.25, 3], np.float32)
LEFT = 7.0  # what a row holds that is not written


def part_of_rows(x, *, own, weights=None, only=range(4), longest=3):
    """Return out = diag(scale) (A + own·I) x by loops over float64, rows that are not written as they were."""
    out = np.full(x.shape, LEFT)
    for i in only:
        entries = range(OFFSETS[i] - 10, OFFSETS[i + 1] - 10)
        if len(entries) <= longest:
            total = x[3 + i].astype(np.float64) * own
            for k in entries:
                total = total + (1.0 if weights is None else float(weights[k])) * x[NEIGHBOURS[k]]
            out[3 + i] = total * ROW_SCALE[i]
    return out


def rows_and_out(columns):
    x = np.random.default_rng(8).normal(size=(9, columns)).astype(np.float32)
    return x, np.full((9, columns), LEFT, np.float32)


@pytest.mark.parametrize("columns", [4, 8, 32])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("weights", [None, ENTRY_WEIGHTS])
def test_rows_of_a_chunk_equal_a_float64_loop(columns, own, weights):
    x, out = rows_and_out(columns)
    chunk = (3, 10, OFFSETS, NEIGHBOURS, weights, ROW_SCALE)
    kernels.sum_rows(chunk, x, own, out, 3, 1, 4, kernels.quads(columns))
    assert_allclose(out, part_of_rows(x, own=own, weights=weights, only=[1, 2, 3]), rtol=1e-5, atol=1e-6)
    kernels.sum_rows(chunk, x, own, out, 4, 0, 4, kernels.quads(columns))
    assert_allclose(out, part_of_rows(x, own=own, weights=weights, longest=4), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("own", [True, False])
def test_wanted_rows_of_a_chunk_equal_a_float64_loop(own):
    x, out = rows_and_out(8)
    wanted = np.array([0, 3, 5, 6, 8])
    chunk = (3, 10, OFFSETS, NEIGHBOURS, None, ROW_SCALE)
    kernels.sum_wanted(chunk, x, own, out, 3, wanted, 1, 4, kernels.quads(8))
    assert_allclose(out, part_of_rows(x, own=own, only=[0, 2]), rtol=1e-5, atol=1e-6)  # the row of node 6 is too long
    kernels.sum_wanted(chunk, x, own, out, 4, wanted, 2, 4, kernels.quads(8))
    assert_allclose(out[6], part_of_rows(x, own=own, longest=4)[6], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("filled", [[8], [4], [5, 8], [0, 3, 6], []])
def test_marked_rows_alone_are_read_and_what_they_reach_is_told(own, filled):
    x, out = rows_and_out(8)
    zeros = np.setdiff1d(np.arange(9), filled)
    x[zeros] = 0
    expected = part_of_rows(x, own=own)
    marked, reached = np.zeros(2, np.uint8), np.zeros(9, np.uint8)
    for row in filled:
        marked[row // 8] |= 1 << row % 8
    x[zeros] = np.nan  # never read
    chunk = (3, 10, OFFSETS, NEIGHBOURS, None, ROW_SCALE)
    kernels.sum_marked(chunk, x, own, out, 3, marked, reached, 0, 4, kernels.quads(8))
    assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    written = [
        i for i in range(3) if own * (3 + i in filled) or set(NEIGHBOURS[slice(*OFFSETS[i : i + 2] - 10)]) & {*filled}
    ]
    assert np.flatnonzero(reached).tolist() == [3 + i for i in written]


def test_segments_are_summed_and_joined_by_hand():
    x, sums = np.zeros((9, 4), np.float32), np.full((3, 4), LEFT, np.float32)
    x[:, 0] = 10.0 ** np.arange(-4, 5)
    segments = np.array([[12, 14, -1], [14, 16, 5], [16, 19, -1]])  # of entries; with the node's own row, −1 for none
    chunk = (3, 10, OFFSETS + 5, NEIGHBOURS, None, ROW_SCALE)  # segments have their own offsets: these are not read
    kernels.sum_segments(segments, chunk, x, sums, 1, 3, kernels.quads(4))
    assert_allclose(sums[:, 0], [LEFT, 10 + 1e4 + 1e2, 1e3 + 1e-3 + 1e-2], rtol=1e-6)
    kernels.sum_segments(segments, chunk, x, sums, 0, 1, kernels.quads(4))
    assert_allclose(sums[0], [0.1 + 1, 0, 0, 0], rtol=1e-6)
    out = np.full((4, 4), LEFT, np.float32)
    kernels.join_segments(np.array([2, 0]), np.array([0, 2, 3]), sums, out, np.array([2, 0.5]), kernels.quads(4))
    assert_allclose(out[:, 0], [sums[2, 0] / 2, LEFT, 2 * (sums[0, 0] + sums[1, 0]), LEFT], rtol=1e-6)


def test_widths_by_hand():
    assert [kernels.padded(columns) for columns in (1, 4, 5, 8, 9, 16, 17, 33)] == [4, 4, 8, 8, 16, 16, 32, 48]
    assert [len(kernels.quads(columns)) for columns in (4, 8, 16, 48)] == [1, 2, 4, 12]


@pytest.mark.parametrize(
    ("triple", "features", "widest"),
    [
        ("x86_64-unknown-linux", "+sse2,-avx", 3),
        ("x86_64-unknown-linux", "+avx,+avx2,-avx512vl", 7),
        ("x86_64-unknown-linux", "+avx,+avx512vl", 14),
        ("aarch64-unknown-linux", "+fp-armv8", 7),
        ("arm64-apple-darwin", "", 7),
    ],
)
def test_the_widest_block_of_a_processor(monkeypatch, triple, features, widest):
    """With two of its registers left to work in: of 16 xmm, 16 ymm, 32 ymm, 32 neon."""
    codegen = SimpleNamespace(magic_tuple=lambda: (triple, "name", features))
    monkeypatch.setattr(kernels, "cpu_target", SimpleNamespace(target_context=SimpleNamespace(codegen=lambda: codegen)))
    assert kernels.widest_block() == widest
    assert "avx512vl" not in kernels.cpu_features() or widest == 14


def test_products_are_added_unrounded_where_the_machine_can():
    """−1 + (1 + 2⁻¹²)² = 2⁻¹¹ + 2⁻²⁴; a product that is rounded to float32 first has lost the last bit."""
    x, out = np.zeros((2, 4), np.float32), np.zeros((1, 4), np.float32)
    x[:, 0] = -1, 1 + 2**-12
    weights = np.array([1, 1 + 2**-12], np.float32)
    chunk = (0, 0, np.array([0, 2]), np.array([0, 1], np.int32), weights, np.ones(1, np.float32))
    kernels.sum_rows(chunk, x, False, out, 9, 0, 1, kernels.quads(4))
    fused = bool({"fma", "neon"} & kernels.cpu_features())
    assert out[0, 0] == 2**-11 + fused * 2**-24


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect")
def test_no_id_is_read_beyond_the_last():
    """The ids end at a page that may not be read: asking for rows ahead of their turn stops at the last id."""
    program = """
import ctypes, mmap
import numpy as np
from gamlp.propagate import kernels
memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
ids = np.frombuffer(memory, np.int32, 3, mmap.PAGESIZE - 12)
ids[:] = 0, 1, 2
x, out = np.ones((3, 4), np.float32), np.zeros((1, 4), np.float32)
kernels.sum_rows((0, 0, np.array([0, 3]), ids, None, np.ones(1, np.float32)), x, False, out, 9, 0, 1, kernels.quads(4))
assert (out == 3).all()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
