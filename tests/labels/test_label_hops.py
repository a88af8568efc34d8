from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import SettingsError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.labels import initial_labels, label_hops
from gamlp.labels.hops import deal, hop_weights
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.normalize import Normalization
from gamlp.propagate.spec import Propagation

MEAN = Normalization(r=0.0, self_loops=False)
TRAIN = np.arange(0, 24, 2)  # 12 training nodes of the random graph
CLASSES = 4


def labels_of(seed):
    return np.random.default_rng(seed).integers(0, CLASSES, size=len(TRAIN))


def with_reliable(seed, labels=None):
    """Training labels and, on nodes 25…34, soft predictions."""
    rows = np.random.default_rng(seed).dirichlet(np.ones(CLASSES), size=10)
    truth = labels_of(seed) if labels is None else labels
    return initial_labels(40, CLASSES, TRAIN, truth, reliable_ids=np.arange(25, 35), reliable_probabilities=rows)


def test_the_own_label_comes_back_on_a_path_by_hand(graph_of):
    path = graph_of(3, [(0, 1), (1, 2)])
    initial = initial_labels(3, 2, np.array([0, 2]), np.array([0, 1]))
    given = (LocalEngine(), path, initial, Propagation(2, MEAN))
    # two steps from an end: to the middle, then back or on, each 1/2
    assert_allclose(label_hops(*given, train_ids=initial.ids), [[0.5, 0.5], [0, 0], [0.5, 0.5]])
    # out of fold, each end sees the other's label alone
    assert_allclose(label_hops(*given, train_ids=initial.ids, folds=2), [[0, 0.5], [0, 0], [0.5, 0]])


@pytest.mark.parametrize("normalization", [MEAN, Normalization(r=0.5, self_loops=True), Normalization(r=1.0)])
def test_one_fold_is_the_power_of_the_dense_matrix(random_graph, dense_hat, normalization):
    initial = with_reliable(0)
    expected = np.linalg.matrix_power(dense_hat(random_graph, normalization), 3) @ initial[:].astype(float)
    rows = np.array([39, 4, 0, 17])
    spec = Propagation(3, normalization, rows=rows)
    result = label_hops(LocalEngine(), random_graph, initial, spec, train_ids=TRAIN)
    assert result.shape == (4, CLASSES)
    assert result.dtype == np.float32
    assert_allclose(result, expected[rows], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("folds", [2, 5, len(TRAIN)])
def test_folds_equal_a_dense_propagation_without_the_own_part(random_graph, dense_hat, folds):
    initial = with_reliable(1)
    power = np.linalg.matrix_power(dense_hat(random_graph, MEAN), 2)
    part_of = deal(40, TRAIN, folds, 6)
    expected = np.empty((40, CLASSES))
    for node in range(40):
        seen = initial[:].astype(float)
        if part_of[node]:
            seen[part_of == part_of[node]] = 0
        expected[node] = power[node] @ seen
    options = {"train_ids": TRAIN, "folds": folds, "seed": 6}
    result = label_hops(LocalEngine(), random_graph, initial, Propagation(2, MEAN), **options)
    assert_allclose(result, expected, rtol=1e-5, atol=1e-7)
    rows = np.array([30, 2, 0, 3])
    some = label_hops(LocalEngine(), random_graph, initial, Propagation(2, MEAN, rows=rows), **options)
    assert_array_equal(some, result[rows])


def test_a_training_row_does_not_change_with_its_own_label(random_graph):
    """The guard: with folds no bit of the own label returns; without, it does."""
    labels = labels_of(2)
    changed = {1: 0, 4: 0}
    for folds in changed:
        options = {"train_ids": TRAIN, "folds": folds, "seed": 2}
        before = label_hops(LocalEngine(), random_graph, with_reliable(2), Propagation(2, MEAN), **options)
        for place, node in enumerate(TRAIN):
            other = labels.copy()
            other[place] = (labels[place] + 1) % CLASSES
            after = label_hops(LocalEngine(), random_graph, with_reliable(2, other), Propagation(2, MEAN), **options)
            changed[folds] += not np.array_equal(before[node], after[node])
    assert changed == {1: len(TRAIN), 4: 0}


def test_other_rows_equal_the_single_propagation(random_graph):
    others = np.setdiff1d(np.arange(40), TRAIN)
    given = (LocalEngine(), random_graph, with_reliable(3), Propagation(3, MEAN))
    single = label_hops(*given, train_ids=TRAIN)
    folded = label_hops(*given, train_ids=TRAIN, folds=4)
    assert_allclose(folded[others], single[others], rtol=1e-5, atol=1e-7)
    assert not np.allclose(folded[TRAIN], single[TRAIN])


@pytest.mark.parametrize("folds", [1, 3])
def test_a_memory_limit_changes_no_bit(random_graph, folds):
    given = (random_graph, with_reliable(4), Propagation(2, MEAN, rows=np.array([39, 4, 0, 17])))
    options = {"train_ids": TRAIN, "folds": folds}
    limited = label_hops(LocalEngine(memory=2**23), *given, **options)
    assert_array_equal(limited, label_hops(LocalEngine(), *given, **options))


def test_dealing_is_even_seeded_and_of_training_nodes_alone():
    train = np.array([9, 1, 4, 6, 2, 8, 5])
    part_of = deal(10, train, 3, 0)
    assert sorted(np.bincount(part_of, minlength=4)[1:]) == [2, 2, 3]
    assert_array_equal(np.flatnonzero(part_of), np.sort(train))
    assert_array_equal(part_of, deal(10, train, 3, 0))
    assert any(not np.array_equal(part_of, deal(10, train, 3, seed)) for seed in range(1, 5))


def test_no_parts_are_refused(random_graph):
    with pytest.raises(SettingsError, match="0 parts"):
        label_hops(LocalEngine(), random_graph, with_reliable(0), Propagation(2, MEAN), train_ids=TRAIN, folds=0)


PROGRAM = """
import sys
import numpy as np
from pathlib import Path
from gamlp.graph.graph import Adjacency
from gamlp.labels import correct_and_smooth, initial_labels, label_hops, label_propagation
from gamlp.propagate import LocalEngine, Propagation
folder, memory, what = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
indptr, indices = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices"))
def status(what):
    return int(Path("/proc/self/status").read_text().split(what)[1].split()[0]) * 1024
def run(adjacency, classes, engine):
    train, rows = np.arange(0, adjacency.nodes, 50), np.arange(0, adjacency.nodes, 9)
    labels = train % classes
    if what == "hops":
        initial = initial_labels(adjacency.nodes, classes, train, labels)
        return label_hops(engine, adjacency, initial, Propagation(2, rows=rows), train_ids=train, folds=2)
    return label_propagation(engine, adjacency, train, labels, classes=classes, steps=2, rows=rows)
tiny = Adjacency(np.arange(101), np.roll(np.arange(100, dtype=np.int32), 1))
for classes in (4, 8, 16, 32, 48, 64):
    run(tiny, classes, LocalEngine(2**28, threads=2))
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS:")
run(Adjacency(indptr, indices), 64, LocalEngine(memory, threads=2))
print(status("VmHWM:") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("what", ["hops", "propagation"])
def test_labels_keep_the_promise_of_memory(tmp_path, what):
    """400,000 nodes × 64 classes are 98 MiB, and twice that as states: within 96 MiB, and twice the result beside."""
    nodes, memory = 400_000, 96 * 2**20
    adjacency = adjacency_from_edges(*np.random.default_rng(1).integers(0, nodes, (2, 10**6)), nodes=nodes)
    np.save(tmp_path / "indptr.npy", adjacency.indptr)
    np.save(tmp_path / "indices.npy", adjacency.indices)
    words = [sys.executable, "-c", PROGRAM, str(tmp_path), str(memory), what]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    result = 4 * 64 * nodes // 9
    assert 2 * nodes * 4 * 16 < int(done.stdout) < memory + 2 * result


def test_the_weights_of_label_hops_by_hand():
    assert hop_weights("last", 2) is None
    assert_allclose(hop_weights("uniform", 2), [1 / 3, 1 / 3, 1 / 3], rtol=1e-6)
    half = np.sqrt(0.5)  # α = cos 0, cos 45°, cos 90°
    assert_allclose(hop_weights("residual", 2), [0, (1 - half) / 3, (1 + 1 + half) / 3], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["uniform", "residual"])
def test_weighted_label_hops_are_a_sum_of_dense_powers(random_graph, dense_hat, kind):
    initial, weights = with_reliable(0), hop_weights(kind, 3)
    hat = dense_hat(random_graph, MEAN)
    expected = sum(w * np.linalg.matrix_power(hat, k) @ initial[:].astype(float) for k, w in enumerate(weights))
    given = (LocalEngine(), random_graph, initial, Propagation(3, MEAN))
    assert_allclose(label_hops(*given, train_ids=TRAIN, weights=weights), expected, rtol=1e-5, atol=1e-6)
    own = label_hops(*given, train_ids=TRAIN, weights=weights, folds=len(TRAIN))[TRAIN]
    for row, node, label in zip(own, TRAIN, labels_of(0), strict=True):  # each its own part: the own label is gone
        back = sum(w * np.linalg.matrix_power(hat, k)[node, node] for k, w in enumerate(weights))
        assert_allclose(row[label], expected[node, label] - back, rtol=1e-4, atol=1e-6)


def test_parts_never_change_with_the_same_seed():
    """A permutation by numpy's generator of (seed, 0xF01D), dealt in turns; the default seed is 0."""
    train = np.array([9, 1, 4, 6, 2])
    for place, node in enumerate(np.random.default_rng([7, 0xF01D]).permutation(train)):
        assert deal(10, train, 3, 7)[node] == 1 + place % 3


def test_the_seed_is_0_unless_another_is_given(random_graph):
    given = (LocalEngine(), random_graph, with_reliable(0), Propagation(2, MEAN))
    default, zero, one = (label_hops(*given, train_ids=TRAIN, folds=3, **how) for how in ({}, {"seed": 0}, {"seed": 1}))
    assert_array_equal(default, zero)
    assert not np.array_equal(default, one)


def test_labels_take_one_way_edges_also_beside_a_limit_of_the_features():
    """X^(∞), which needs an undirected graph, is of the features alone."""
    chain = adjacency_from_edges(np.array([0, 1]), np.array([1, 2]), nodes=3, symmetric=False)
    initial = initial_labels(3, 2, np.arange(3), np.array([0, 1, 1]))
    hops = label_hops(LocalEngine(), chain, initial, Propagation(1, MEAN, stationary=True), train_ids=initial.ids)
    hat = np.zeros((3, 3))
    hat[np.repeat(np.arange(3), np.diff(chain.indptr)), chain.indices] = 1  # each row has one entry at most
    assert_array_equal(hops, hat @ initial[:])
