"""Mistakes, calibration and the rows of the page, by hand.

Test nodes of the tiny graph: 3, 4, 7, 8; labels green, blue, green, blue; given green, red, green, green with
confidence 0.7, 0.9, 0.6, 0.7; degrees 2, 5, 1, 1.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gamlp.explain import report
from gamlp.explain.figures import mistakes
from gamlp.explain.finished_run import FinishedRun, open_run
from gamlp.trust.reliability import reliability


@pytest.fixture
def run(tiny_graph, run_of):
    return open_run(tiny_graph, run_of(tiny_graph))


def test_accuracy_by_degree_and_class(run):
    assert [(one.name, one.nodes, one.accuracy) for one in mistakes.by_degree(run)] == [
        ("1–4", 3, pytest.approx(2 / 3)),
        ("5–8", 1, 0.0),
    ]
    assert [(one.name, one.nodes, one.accuracy) for one in mistakes.by_class(run)] == [
        ("green", 2, 1.0),
        ("blue", 2, 0.0),
    ]


def test_confusion(run):
    found = mistakes.confusion(run, most=2)  # blue gives two mistakes; red and green take one each, red comes first
    assert found.classes == ("red", "blue")
    assert found.counts.tolist() == [[0, 0, 0], [1, 0, 1]]  # of blue: one red, none blue, one of another class
    assert found.totals.tolist() == [0, 2]
    pairs = {(pair.label, pair.predicted, pair.nodes, pair.share) for pair in mistakes.confused_pairs(run)}
    assert pairs == {("blue", "red", 1, 0.5), ("blue", "green", 1, 0.5)}


def test_doubted_labels_come_surest_first(run):
    assert report.doubted(run).tolist() == [4, 8]
    assert report.doubted(run, most=1).tolist() == [4]
    assert report.doubted(run, least=0.8).tolist() == [4]


def test_calibration_by_hand():
    confidence = np.array([0.95, 0.85, 0.97, 0.25, 0.5])
    right = np.array([True, False, True, True, False])
    found = reliability(confidence, right)
    assert found.nodes.tolist() == [0, 0, 1, 0, 1, 0, 0, 0, 1, 2]  # 0.5 is in the bin that it ends
    assert_allclose(found.right, [0, 0, 1, 0, 0, 0, 0, 0, 0, 1])
    assert_allclose(found.confidence[[2, 4, 8, 9]], [0.25, 0.5, 0.85, 0.96])
    # gaps 0.75, 0.5, 0.85 and twice 0.04, over 5 nodes
    assert found.error == pytest.approx((0.75 + 0.5 + 0.85 + 2 * 0.04) / 5)


def test_perfect_calibration_has_no_error():
    assert reliability(np.ones(4), np.ones(4, dtype=bool)).error == 0


def test_a_small_graph_shows_every_prediction(run):
    found = report.page_table(run)
    assert len(found["rows"]) == 10
    assert found["rows"][4] == ("node-4", 0, 0.9, 2, 3, 5)
    assert found["rows"][9] == ("node-9", 0, 0.4, -1, 0, 0)
    assert found["sets"][found["rows"][0][4]] == "train"


def test_of_a_large_graph_all_doubted_and_the_least_sure_are_kept(make_planted, monkeypatch):
    monkeypatch.setattr(report, "ROWS", 60)
    graph = make_planted()
    random = np.random.default_rng(0)
    probabilities = random.dirichlet([0.15] * 3, size=graph.nodes)
    run = FinishedRun("", {}, graph, 0, np.arange(graph.nodes), probabilities, None, [])
    chosen = report.chosen_rows(run)
    wrong = [row for row in run.test if probabilities[row].argmax() != graph.labels[row]]
    doubted = {row for row in wrong if probabilities[row].max() >= 0.9}
    least_sure = sorted(run.test, key=lambda row: probabilities[row].max())[:30]
    assert len(doubted) > 20
    assert set(chosen[: len(doubted)]) == doubted
    assert set(least_sure) <= set(chosen)
    assert len(chosen) == len(set(chosen)) == len(doubted) + 60


def test_long_names_are_cut():
    assert report.shortened("x" * 500) == "x" * 119 + "…"
