from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import ShapeError
from gamlp.graph.splits import Split
from gamlp.labels import (
    CorrectAndSmooth,
    Correction,
    Smoothing,
    choose_correct_and_smooth,
    correct_and_smooth,
)
from gamlp.labels.choose import CORRECTIONS, SMOOTHINGS
from gamlp.labels.correction import autoscale, correct, smooth
from gamlp.labels.hops import initial_labels
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.normalize import Normalization

CLASSES = 3
TRAIN = np.arange(0, 24, 2)
LABELS = np.random.default_rng(5).integers(0, CLASSES, size=40)
GUESSES = np.random.default_rng(6).dirichlet(np.ones(CLASSES), size=40).astype(np.float32)
ENGINE = LocalEngine()
NOTHING = CorrectAndSmooth(None, None)


def weighted_edges(adjacency, r):
    """PyG's edge_index and the entries of D^(r−1) A D^(−r), computed here."""
    targets = np.repeat(np.arange(adjacency.nodes), np.diff(adjacency.indptr))
    degree = np.diff(adjacency.indptr).astype(np.float64)
    weights = degree[targets] ** (r - 1) * degree[adjacency.indices] ** (-r)
    index = torch.from_numpy(np.stack([adjacency.indices.astype(np.int64), targets]))
    return index, torch.from_numpy(weights.astype(np.float32))


@pytest.mark.parametrize("r", [0.5, 0.0, 1.0], ids=["DAD", "DA", "AD"])
@pytest.mark.parametrize("scale", [None, 1.5], ids=["autoscale", "fixed"])
def test_equals_pytorch_geometric(random_graph, r, scale):
    pyg = pytest.importorskip("torch_geometric.nn")
    other = pyg.CorrectAndSmooth(
        num_correction_layers=20,
        correction_alpha=0.9,
        num_smoothing_layers=10,
        smoothing_alpha=0.7,
        autoscale=scale is None,
        scale=scale or 1.0,
    )
    arguments = (torch.from_numpy(LABELS[TRAIN]), torch.from_numpy(TRAIN), *weighted_edges(random_graph, r))
    corrected = other.correct(torch.from_numpy(GUESSES), *arguments)
    smoothed = other.smooth(corrected, *arguments).numpy()

    normalization = Normalization(r=r, self_loops=False)
    graph, known = random_graph, initial_labels(40, CLASSES, TRAIN, LABELS[TRAIN])
    ours = correct(ENGINE, GUESSES, graph, known, Correction(0.9, scale, normalization, 20))
    assert_allclose(ours, corrected.numpy(), atol=1e-5)
    assert_allclose(smooth(ENGINE, ours, graph, known, Smoothing(0.7, normalization, 10)), smoothed, atol=1e-5)

    settings = CorrectAndSmooth(Correction(0.9, scale, normalization, 20), Smoothing(0.7, normalization, 10))
    result = correct_and_smooth(ENGINE, GUESSES, random_graph, TRAIN, LABELS[TRAIN], settings=settings)
    assert_allclose(result, smoothed / smoothed.sum(axis=1, keepdims=True), atol=1e-5)
    assert_array_equal(result.argmax(axis=1), smoothed.argmax(axis=1))


def test_one_correction_by_hand(graph_of):
    pair = graph_of(2, [(0, 1)])
    guesses = np.array([[0.5, 0.5], [0.6, 0.4]], dtype=np.float32)
    # error of node 0: (−½, ½); one fixed step with α = ½ brings node 1 half of it: (−¼, ¼)
    only = CorrectAndSmooth(Correction(alpha=0.5, scale=1.0, steps=1), None)
    result = correct_and_smooth(ENGINE, guesses, pair, np.array([0]), np.array([1]), settings=only)
    assert_allclose(result, [[0, 1], [0.35, 0.65]], atol=1e-6)


def test_an_overdone_correction_stays_a_probability(graph_of):
    pair = graph_of(2, [(0, 1)])
    guesses = np.array([[0.5, 0.5], [0.6, 0.4]], dtype=np.float32)
    # three times (−¼, ¼) makes (−0.15, 1.15) of node 1
    only = CorrectAndSmooth(Correction(alpha=0.5, scale=3.0, steps=1), None)
    assert_allclose(correct_and_smooth(ENGINE, guesses, pair, np.array([0]), np.array([1]), settings=only)[1], [0, 1])


def test_errors_are_clipped_at_one_by_hand(graph_of):
    star = graph_of(4, [(0, 1), (0, 2), (0, 3)])
    guesses = np.array([[0.2, 0.3, 0.5], [1, 0, 0], [1, 0, 0], [0.6, 0.2, 0.2]], dtype=np.float32)
    how = Correction(alpha=0.5, normalization=Normalization(r=1.0, self_loops=False), steps=1)
    known = initial_labels(4, 3, np.array([1, 2, 3]), np.array([1, 1, 1]))
    # errors of the leaves: (−1, 1, 0) twice and (−0.6, 0.8, −0.2); their sum, halved, is (−1.3, 1.4, −0.1) at the hub,
    # clipped to (−1, 1, −0.1); σ = (2 + 2 + 1.6)/3
    result = correct(ENGINE, guesses, star, known, how)
    expected = guesses[0] + (5.6 / 3 / 2.1) * np.array([-1, 1, -0.1])
    assert_allclose(result[0], expected, rtol=1e-5)


def test_autoscale_by_hand():
    errors = np.array([[0.1, -0.1], [0, 0], [1e-6, 0]], dtype=np.float32)
    assert_allclose(autoscale(errors, 0.8), [[4], [1], [1]], rtol=1e-6)  # 0.8/0.2; nothing there; too far a stretch
    assert_allclose(autoscale(errors, 0.0), [[0], [1], [0]])


def test_perfect_training_predictions_stay_finite(random_graph):
    guesses = np.eye(CLASSES, dtype=np.float32)[LABELS]
    result = correct_and_smooth(ENGINE, guesses, random_graph, TRAIN, LABELS[TRAIN])
    assert np.isfinite(result).all()
    assert_allclose(result.sum(axis=1), 1, rtol=1e-5)


def test_an_isolated_node_keeps_its_prediction(random_graph):
    result = correct_and_smooth(ENGINE, GUESSES, random_graph, TRAIN, LABELS[TRAIN])
    assert_allclose(result[38:], GUESSES[38:], rtol=1e-5)
    assert not np.allclose(result[:38], GUESSES[:38], atol=0.05)


def test_the_input_is_left_alone(random_graph):
    guesses = GUESSES.copy()
    correct_and_smooth(ENGINE, guesses, random_graph, TRAIN, LABELS[TRAIN])
    assert_array_equal(guesses, GUESSES)


def split_of(valid):
    return Split(train=TRAIN, valid=valid, test=np.setdiff1d(np.arange(40), np.union1d(TRAIN, valid)))


def test_choosing_finds_what_helps_two_communities(graph_of):
    cliques = [(a, b) for low in (0, 10) for a in range(low, low + 10) for b in range(low, a)]
    graph = graph_of(20, cliques)
    truth = np.repeat([0, 1], 10)
    guesses = np.full((20, 2), 0.5, dtype=np.float32) + np.array([0.01, -0.01], dtype=np.float32)  # all say class 0
    split = Split(train=np.array([0, 1, 2, 10, 11, 12]), valid=np.array([3, 13, 14]), test=np.array([4, 5, 15, 16]))
    settings, result = choose_correct_and_smooth(ENGINE, guesses, graph, split, truth[split.train], truth[split.valid])
    assert settings != NOTHING
    assert_array_equal(result.argmax(axis=1), truth)
    again = correct_and_smooth(ENGINE, guesses, graph, split.train, truth[split.train], settings=settings)
    assert_array_equal(again, result)


def test_choosing_nothing_where_nothing_helps(random_graph):
    """Validation is already perfect: every change is refused, also one that is as good."""
    split = split_of(np.arange(1, 24, 2))
    guesses = GUESSES.copy()
    guesses[split.valid] = np.eye(CLASSES)[LABELS[split.valid]]
    settings, result = choose_correct_and_smooth(
        ENGINE, guesses, random_graph, split, LABELS[split.train], LABELS[split.valid]
    )
    assert settings == NOTHING
    assert_array_equal(result, guesses)


@pytest.mark.parametrize(
    ("right", "winner"),
    [
        ({"a": 2, "b": 3, "s": 1, "t": 2, "bs": 2, "bt": 4}, "bt"),  # both halves, after the better correction
        ({"a": 2, "b": 3, "s": 1, "t": 4, "bs": 2, "bt": 4}, "t"),  # the first of equals
        ({"a": 2, "b": 4, "s": 1, "t": 4, "bs": 2, "bt": 4}, "b"),
        ({"a": 1, "b": 1, "s": 1, "t": 1, "bs": 0, "bt": 0}, ""),
    ],
)
def test_the_two_rounds_of_choosing(graph_of, monkeypatch, right, winner):
    """With a stand-in that gets so many of four validation nodes right, 1 with nothing done."""
    corrections = {"": None, "a": Correction(0.1), "b": Correction(0.2)}
    smoothings = {"": None, "s": Smoothing(0.1), "t": Smoothing(0.2)}
    names = {CorrectAndSmooth(c, s): x + y for x, c in corrections.items() for y, s in smoothings.items()}

    def guesses(count):
        return np.array([[0.0, 1.0]] * count + [[1.0, 0.0]] * (5 - count))

    computed = []

    def corrects(*arguments):
        computed.append(arguments[4])
        return arguments[4]

    def stand_in(*_, settings, rows=slice(None), corrected=None):
        if settings.correction and settings.smoothing:
            assert corrected is settings.correction  # computed before, and for this one
        return guesses(right.get(names[settings], 1))[rows]

    monkeypatch.setattr("gamlp.labels.choose.correct", corrects)
    monkeypatch.setattr("gamlp.labels.choose.correct_and_smooth", stand_in)
    settings, result = choose_correct_and_smooth(
        ENGINE,
        guesses(1),
        graph_of(5, [(0, 1)]),
        Split(np.array([4]), np.arange(4), np.array([], dtype=np.int64)),
        np.array([0]),
        np.ones(4, dtype=np.int64),
        corrections=[corrections["a"], corrections["b"]],
        smoothings=[smoothings["s"], smoothings["t"]],
    )
    assert names[settings] == winner
    assert_array_equal(result, guesses(right.get(winner, 1)))
    assert computed == ([corrections["b"]] if right["b"] > 1 else [])  # of all nodes, once for all smoothings


def test_choosing_does_not_depend_on_the_test_ids(random_graph):
    split = split_of(np.arange(1, 24, 2))
    fewer = Split(split.train, split.valid, split.test[:1])
    known = (LABELS[split.train], LABELS[split.valid])
    one = choose_correct_and_smooth(ENGINE, GUESSES, random_graph, split, *known)
    other = choose_correct_and_smooth(ENGINE, GUESSES, random_graph, fewer, *known)
    assert one[0] == other[0]
    assert_array_equal(one[1], other[1])


def test_choosing_without_validation_nodes_changes_nothing_and_says_so(random_graph, caplog):
    caplog.set_level("WARNING", "gamlp")
    none = np.zeros(0, dtype=np.int64)
    known = Split(TRAIN, none, none), LABELS[TRAIN], none
    settings, smoothed = choose_correct_and_smooth(ENGINE, GUESSES, random_graph, *known)
    assert settings == NOTHING
    assert_array_equal(smoothed, GUESSES)
    assert "no validation nodes" in caplog.text


def test_labels_of_the_whole_graph_are_refused(random_graph):
    with pytest.raises(ShapeError, match="40 rows for 12 training nodes"):
        correct_and_smooth(ENGINE, GUESSES, random_graph, TRAIN, LABELS)
    split = split_of(np.arange(1, 24, 2))
    with pytest.raises(ShapeError, match="40 rows for 12 validation nodes"):
        choose_correct_and_smooth(ENGINE, GUESSES, random_graph, split, LABELS[TRAIN], LABELS)


@pytest.mark.parametrize("settings", [CorrectAndSmooth(Correction(), None), CorrectAndSmooth(), NOTHING])
def test_rows_are_those_of_the_whole(random_graph, settings):
    rows = np.array([39, 3, 3, 0])
    some = correct_and_smooth(ENGINE, GUESSES, random_graph, TRAIN, LABELS[TRAIN], settings=settings, rows=rows)
    whole = correct_and_smooth(ENGINE, GUESSES, random_graph, TRAIN, LABELS[TRAIN], settings=settings)
    assert_array_equal(some, whole[rows])


def test_without_known_labels_predictions_are_smoothed_as_they_are(graph_of):
    pair, none = graph_of(2, [(0, 1)]), np.zeros(0, np.int64)
    guesses = np.array([[1, 0], [0, 1]], dtype=np.float32)
    settings = CorrectAndSmooth(Correction(), Smoothing(alpha=0.25, steps=1))
    result = correct_and_smooth(ENGINE, guesses, pair, none, none, settings=settings)
    assert_allclose(result, [[0.75, 0.25], [0.25, 0.75]])  # a quarter of the neighbour's


@pytest.mark.parametrize("settings", [CorrectAndSmooth(), CorrectAndSmooth(Correction(scale=1.5), Smoothing(0.6))])
def test_a_memory_limit_changes_no_bit(random_graph, settings):
    given = (GUESSES, random_graph, TRAIN, LABELS[TRAIN])
    limited = correct_and_smooth(LocalEngine(memory=2**23), *given, settings=settings)
    assert_array_equal(limited, correct_and_smooth(ENGINE, *given, settings=settings))


def test_the_grid_has_twelve_corrections_and_six_smoothings_of_twenty_steps():
    spread = [Normalization(r=r, self_loops=False) for r in (0, 0.5, 1)]
    assert set(CORRECTIONS) == {Correction(a, s, n, 20) for a in (0.6, 0.9) for s in (None, 1) for n in spread}
    assert set(SMOOTHINGS) == {Smoothing(a, n, 20) for a in (0.6, 0.9) for n in spread}
    assert (len(CORRECTIONS), len(SMOOTHINGS)) == (12, 6)


def test_every_trial_is_a_step_of_the_progress(graph_of, monkeypatch):
    """Twelve corrections, then six smoothings after none and six after the best one."""
    totals, steps = [], []

    @contextmanager
    def progress(_, *, total):
        totals.append(total)
        yield lambda **said: steps.append(said)

    monkeypatch.setattr("gamlp.labels.choose.progress", progress)
    triangles = graph_of(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    guesses = np.tile(np.array([[0.55, 0.45]], np.float32), (6, 1))  # wrong for the second triangle
    split = Split(np.array([0, 3]), np.array([1, 4]), np.array([2, 5]))
    choose_correct_and_smooth(ENGINE, guesses, triangles, split, np.array([0, 1]), np.array([0, 1]))
    assert totals == [len(steps)] == [12 + 2 * 6]


def test_a_stretch_of_a_thousand_is_the_last_that_is_made():
    errors = np.array([[1 / 8, 0]], dtype=np.float32)
    assert autoscale(errors, 125.0) == 1000
    assert autoscale(errors, 125.0625) == 1


def test_the_defaults_are_fifty_steps_with_an_alpha_of_08():
    symmetric = Normalization(r=0.5, self_loops=False)
    assert Correction() == Correction(0.8, None, symmetric, 50)
    assert Smoothing() == Smoothing(0.8, symmetric, 50)
    assert CorrectAndSmooth() == CorrectAndSmooth(Correction(), Smoothing())
