"""Relation subsets: which are drawn, which are refused, and their hops against loops in float64."""

import numpy as np
import pytest

from gamlp.errors import SettingsError
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.splits import Split
from gamlp.propagate import LocalEngine, Normalization, Propagation
from gamlp.propagate.subsets import (
    Shelf,
    draw_subsets,
    first_hops,
    shelf_of,
    subset_hops,
    subsets_at_a_time,
    subsets_of,
)

MEAN = Normalization(r=0.0, self_loops=False)


def parts(source, target, *pairs):
    heads, tails = np.array(pairs).T
    return RelationParts(source, target, heads, tails)


@pytest.fixture
def graph():
    """Four papers, two authors, two topics and one institution that only authors know."""
    split = Split(np.array([0, 1]), np.array([2]), np.array([3]))
    types = {
        "paper": TypeParts(4, np.array([[1.0, 0], [2, 4], [4, 2], [8, 6]]), [0, 1, 0, 1], split=split),
        "author": TypeParts(2, np.array([[1.0, 1], [3, 5]])),
        "topic": TypeParts(2, np.array([[0.0, 2], [2, 0]])),
        "institution": TypeParts(1, np.array([[6.0, 6]])),
    }
    relations = {
        "writes": parts("author", "paper", (0, 0), (0, 1), (1, 1), (1, 2)),
        "cites": parts("paper", "paper", (0, 1), (1, 2), (2, 1)),
        "about": parts("paper", "topic", (0, 0), (1, 1), (2, 1)),
        "first": parts("author", "paper", (0, 0), (1, 2)),  # whoever is named first has written it, too
        "at": parts("author", "institution", (0, 0), (1, 0)),
    }
    return assemble_hetero(types, relations, target="paper")


def by_hand(graph, subset, hops):
    """For every hop, the sum over the neighbours of all relations, divided by the degree over all of them; loops."""
    neighbours = [[] for _ in range(graph.nodes)]
    for name in subset:
        relation = graph.relation(name)
        pairs = {frozenset(pair) for pair in zip(relation.heads.tolist(), relation.tails.tolist(), strict=True)}
        for first, second in map(sorted, pairs):
            neighbours[first].append(second)
            neighbours[second].append(first)
    values = [graph.features.astype(np.float64)]
    for _ in range(hops):
        now = np.zeros_like(values[0])
        for node, around in enumerate(neighbours):
            for other in around:
                now[node] += values[-1][other] / len(around)
        values.append(now)
    return np.stack(values, axis=1)


SUBSETS = [("writes", "first"), ("cites",), ("writes", "at"), ("writes", "cites", "about", "first", "at")]


@pytest.mark.parametrize("budget", [2**33, 100], ids=["in memory", "on disk"])
def test_hops_equal_loops_in_float64(graph, budget):
    rows = np.array([0, 2, 3])
    found = subset_hops(LocalEngine(), graph, graph.features, SUBSETS, Propagation(3, MEAN, rows=rows), budget=budget)
    values = found.values if budget > 100 else shelf_of(found).take(np.arange(3))
    assert isinstance(found.values, Shelf) == (budget == 100)
    assert values.shape == (3, 4, 4, 2)
    assert (found.subsets, found.count) == (4, 3)
    for number, subset in enumerate(SUBSETS):
        np.testing.assert_allclose(values[:, number], by_hand(graph, subset, 3)[rows], rtol=1e-6)


def test_a_memory_limit_gives_the_same(graph, tmp_path):
    wanted = (graph, graph.features, SUBSETS, Propagation(2, MEAN, rows=np.arange(4)))
    here = subset_hops(LocalEngine(), *wanted, budget=2**33)
    there = subset_hops(LocalEngine(2**27, tmp_path), *wanted, budget=2**33)
    np.testing.assert_array_equal(there.values, here.values)


def test_one_hop_by_hand(graph):
    spec = Propagation(1, MEAN, rows=np.arange(4))
    found = subset_hops(LocalEngine(), graph, graph.features, [("writes", "first")], spec, budget=2**33)
    # author 0 wrote papers 0 and 1 and is first on 0, author 1 wrote 1 and 2 and is first on 2
    expected = [[1, 1], [2, 3], [3, 5], [0, 0]]  # paper 0: author 0 twice; 1: both; 2: author 1 twice; 3: nobody
    assert found.values[:, 0, 1].tolist() == expected


def test_the_limit_is_the_mean_over_the_subsets(graph):
    spec = Propagation(1, MEAN, rows=np.arange(4), stationary=True)
    found = subset_hops(LocalEngine(), graph, graph.features, [("cites",), ("about",)], spec, budget=2**33)
    # cites: papers 0–1–2 in a row, degrees 1, 2, 1 of 4; about: 0 with topic 0; 1 and 2 with topic 1, degrees 1, 1, 2
    papers, topics = graph.features[:4], graph.features[6:8]
    cites = (papers[0] + 2 * papers[1] + papers[2]) / 4
    about = [(papers[0] + topics[0]) / 2, *[(papers[1] + papers[2] + 2 * topics[1]) / 4] * 2]
    np.testing.assert_allclose(found.stationary[:3], [(cites + one) / 2 for one in about], rtol=1e-6)
    assert found.stationary[3].tolist() == [0, 0]


def test_temporary_files_go_with_the_hops(graph, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spec = Propagation(2, MEAN, rows=np.arange(4))
    found = subset_hops(LocalEngine(), graph, graph.features, SUBSETS, spec, budget=100)
    assert len(list(tmp_path.glob(".gamlp-hops-*"))) == 1
    fewer = first_hops(found, 2)
    del found
    assert fewer.take(np.arange(4)).shape == (4, 4, 2, 2)
    del fewer
    assert not list(tmp_path.glob(".gamlp-hops-*"))


@pytest.mark.parametrize("seed", range(5))
def test_drawn_subsets_cover_all_relations_and_hang_together(graph, seed):
    found = draw_subsets(graph, 6, seed=seed)
    assert found == draw_subsets(graph, 6, seed=seed)
    assert len(set(found)) == 6
    assert set().union(*found) == {"writes", "cites", "about", "first", "at"}
    for subset in found:
        assert subset != ("at",)  # authors and institutions alone never reach a paper
        assert "at" not in subset or {"writes", "first"} & set(subset)


def test_seeds_draw_different_subsets(graph):
    assert len({draw_subsets(graph, 6, seed=seed) for seed in range(5)}) > 1


def test_no_more_subsets_than_there_are(graph):
    # of 31, those without 'at' are 15; with 'at' they need writes or first: 3 of 4 choices, times 4 of the other two
    assert len(draw_subsets(graph, 100, seed=0)) == 15 + 12


def test_given_subsets_are_put_in_order_and_checked(graph):
    assert subsets_of(graph, [["cites", "writes", "cites"]]) == (("writes", "cites"),)
    with pytest.raises(SettingsError, match=r"\{at\} never reaches a node of 'paper'.\nAdd a relation"):
        subsets_of(graph, [["writes"], ["at"]])
    with pytest.raises(SettingsError, match="Did you mean 'cites'"):
        subsets_of(graph, [["cite"]])
    with pytest.raises(SettingsError, match="No relation subset"):
        subsets_of(graph, [])


def test_how_many_subsets_fit():
    shape = (1024, 8, 4, 256)  # 4 MiB of float32 a subset
    assert subsets_at_a_time(shape, 16 / 1024) == 3  # of four places one is the sum over the others
    assert subsets_at_a_time(shape, 1.0) == 8
    with pytest.raises(SettingsError, match="subset_memory"):
        subsets_at_a_time(shape, 4 / 1024)
