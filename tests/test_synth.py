"""Generated graphs: the sizes asked for, planted classes, communities and hubs, the same in any pieces and again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gamlp.errors import SettingsError
from gamlp.graph import load_graph
from gamlp.synth import draw
from gamlp.synth.draw import SHAPES, Drawing, shape_named
from gamlp.synth.write import write_synth

SMALL = replace(shape_named("products"), nodes=20_000, edges=100_000, features=8, classes=7)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth") / "g"
    facts = write_synth(folder, SMALL, seed=3, memory=2**20)
    loaded = load_graph(folder)
    assert facts["nodes"] == loaded.nodes == 20_000
    assert facts["entries"] == loaded.adjacency.entries
    return loaded


def test_known_shapes_have_the_published_sizes():
    papers = shape_named("PAPERS100m")
    assert (papers.nodes, papers.edges, papers.features, papers.classes) == (111_059_956, 1_615_685_872, 128, 172)
    assert papers.scaled(0.01).nodes == 1_110_600
    video = shape_named("video")  # the paper's dataset table: 1,000,000 nodes, 1,434,382 edges, 5K/10K/30K labelled
    assert (video.nodes, video.edges, video.features, video.classes) == (1_000_000, 1_434_382, 64, 253)
    assert [round(share * video.nodes) for share in (video.train, video.valid, video.test)] == [5_000, 10_000, 30_000]
    assert set(SHAPES) == {"products", "papers100M", "video", "mag"}
    with pytest.raises(SettingsError, match="Did you mean 'products'"):
        shape_named("product")


def test_degrees_are_skewed_and_classes_are_planted(graph):
    degree = np.diff(graph.adjacency.indptr)
    assert 150_000 < graph.adjacency.entries <= 200_000  # doubles and loops go
    assert degree.max() > 10 * degree.mean()
    drawing = Drawing(SMALL, 3)
    labels = drawing.labels(np.arange(graph.nodes))
    assert len(np.unique(labels)) == 7
    rows = np.repeat(np.arange(graph.nodes), degree)
    alike = labels[rows] == labels[graph.adjacency.indices]
    assert 0.75 < alike.mean() < 0.9  # 0.6 inside, 0.2 of the class, 0.2/7 by chance, less for doubles
    near = rows // 200 == graph.adjacency.indices // 200
    assert 0.45 < near.mean() < 0.65


def test_labels_split_and_features_fit_together(graph):
    split = graph.split
    assert abs(len(split.train) / 20_000 - 0.08) < 0.01
    everyone = np.concatenate([split.train, split.valid, split.test])
    assert (graph.labels[everyone] >= 0).all()
    assert (np.delete(graph.labels, everyone) == -1).all()
    means = np.array([graph.features[graph.labels == c].mean(axis=0) for c in range(7)])
    guess = ((graph.features[everyone, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.3 < (guess == graph.labels[everyone]).mean() < 0.95  # 1/7 by chance: a signal, and a faint one


def test_a_seed_is_a_graph(tmp_path, graph):
    write_synth(tmp_path / "again", SMALL, seed=3, memory=2**27)
    write_synth(tmp_path / "other", SMALL, seed=4)
    assert load_graph(tmp_path / "again").fingerprint == graph.fingerprint
    assert load_graph(tmp_path / "other").fingerprint != graph.fingerprint


def test_edges_can_be_drawn_from_anywhere_on(monkeypatch):
    monkeypatch.setattr(draw, "BATCH", 1000)
    whole = np.concatenate([np.stack(batch[:2]) for batch in Drawing(SMALL).batches(0)], axis=1)
    assert whole.shape == (2, 100_000)
    assert 0 <= whole.min() <= whole.max() < 20_000
    rest = np.concatenate([np.stack(batch[:2]) for batch in Drawing(SMALL).batches(98_765)], axis=1)
    np.testing.assert_array_equal(rest, whole[:, 98_765:])


@pytest.mark.parametrize("nodes", [2, 97, 10**6, 2**31 + 11, 10**11])
def test_the_shuffling_keeps_nodes_apart(nodes):
    """Ranks become different nodes, those that a·i mod N gives with integers of any length."""
    drawing = Drawing(replace(SMALL, nodes=nodes, skew=1.0))
    ranks = np.unique(np.linspace(0, nodes - 1, 50).astype(np.int64))
    found = drawing._anywhere((ranks + 0.5) / nodes)
    factor = draw._coprime(int(nodes * 0.6180339887), nodes)
    exact = [int((nodes * ((int(rank) + 0.5) / nodes)) // 1) * factor % nodes for rank in ranks]
    assert found.tolist() == exact
    assert len(set(exact)) == len(exact)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_homophily_is_the_share_of_edges_within_a_class(share):
    shape = replace(shape_named("products"), nodes=2_000, edges=20_000, classes=5).with_homophily(share)
    drawing = Drawing(shape)
    source, target, _ = next(drawing.batches(0))
    ends = drawing.labels(source), drawing.labels(target)
    assert set(ends[0]) == set(range(5))
    assert np.mean(ends[0] == ends[1]) == pytest.approx(share, abs=0.01)
    astray = (ends[0] != ends[1]) & ((ends[0] + 1) % 5 != ends[1])
    assert astray.mean() < 0.02  # a class is looked for in twenty communities
