"""One node's story: rings, training labels, suggestions."""

from dataclasses import replace

import numpy as np
import pytest

from gamlp.errors import IdError
from gamlp.explain.finished_run import open_run
from gamlp.explain.node import explain_node, find_node


def test_rings_count_training_labels_only(tiny_graph, run_of):
    story = explain_node(open_run(tiny_graph, run_of(tiny_graph)), "node-4")
    # ring 1 of node 4: 3, 5, 6, 7, 8, of which 5 (blue) and 6 (red) train; ring 2: node 2 (green), which trains
    assert [ring.nodes for ring in story.rings] == [1, 5, 1]
    assert [ring.classes for ring in story.rings] == [{}, {"red": 1, "blue": 1}, {"green": 1}]
    assert [ring.support for ring in story.rings] == [None, 0.5, 0.0]
    assert [ring.weight for ring in story.rings] == [0.0, 0.5, 0.5]
    assert (story.predicted, story.label, story.member, story.degree) == ("red", "blue", "test", 5)
    assert story.confidence == pytest.approx(0.9)
    assert list(story.top) == ["red", "green", "blue"]
    assert story.cut_at is None


def test_a_node_without_label_or_set(tiny_graph, run_of):
    story = explain_node(open_run(tiny_graph, run_of(tiny_graph)), "node-9")
    assert (story.label, story.member, story.degree) == (None, "", 0)
    assert [ring.nodes for ring in story.rings] == [1, 0, 0]


def test_without_attention_two_rings_and_no_weights(tiny_graph, run_of):
    run = open_run(tiny_graph, run_of(tiny_graph, attention=None, method="gcn"))
    assert [ring.weight for ring in explain_node(run, "node-0").rings] == [None] * 3


def test_too_large_a_ring_is_said(tiny_graph, run_of, monkeypatch):
    monkeypatch.setattr("gamlp.explain.node.LIMIT", 4)
    story = explain_node(open_run(tiny_graph, run_of(tiny_graph)), "node-5")
    assert [ring.nodes for ring in story.rings] == [1, 1]  # ring 1 is node 4, which has 5 entries
    assert story.cut_at == 2


def test_an_unknown_id_is_answered_with_one_like_it(tiny_graph):
    with pytest.raises(IdError, match=r"no node 'nodde-3' among the 10\.\nDid you mean 'node-3'"):
        find_node(tiny_graph, "nodde-3")
    with pytest.raises(IdError, match="Ids look like this: node-0, node-1, node-2"):
        find_node(tiny_graph, "???")


def test_numbers_as_ids(tiny_graph):
    unnamed = replace(tiny_graph, names=None)
    assert find_node(unnamed, "7") == 7
    for text in ("10", "-1", "seven"):
        with pytest.raises(IdError, match="numbered from 0 to 9"):
            find_node(unnamed, text)
    numbered = replace(tiny_graph, names=np.arange(10) * 100)
    assert find_node(numbered, "700") == 7
    with pytest.raises(IdError, match="no node '7'"):
        find_node(numbered, "7")


def test_a_node_outside_the_predicted_rows(tiny_graph, run_of):
    shares = np.full((9, 3), 1 / 3)
    run = open_run(tiny_graph, run_of(tiny_graph, rows=np.arange(9), probabilities=shares, attention=shares))
    with pytest.raises(IdError, match="predicts only the 9 nodes of its split"):
        explain_node(run, "node-9")
