"""Parts of a heterogeneous graph: which nodes they take, and which edges come with them."""

import warnings

import numpy as np
import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric")

from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.splits import Split
from gamlp.message_passing.fit import fit as fit_options
from gamlp.message_passing.relational import Sources, TypedSource, drawn, reached, subgraph, subgraphs, typed_view
from gamlp.methods import method_named
from gamlp.propagate.scaling import Scaling

PAPERS, AUTHORS = 200, 30


def options_for(name, options):
    return method_named(name).settings_from(options)


def fit(name, graph, split, *, options, seed):
    return fit_options(name, graph, split, options=options_for(name, options), seed=seed)


@pytest.fixture(scope="module")
def graph():
    """Papers of two classes, each with an author of its class and one who writes for both; nobody has features."""
    random = np.random.default_rng(0)
    labels = np.arange(PAPERS) % 2
    split = Split(np.arange(100), np.arange(100, 150), np.arange(150, PAPERS))
    paper = TypeParts(PAPERS, np.zeros((PAPERS, AUTHORS)), labels, ("a", "b"), split)
    own = 2 * random.integers(0, AUTHORS // 2 - 1, PAPERS) + labels
    shared = np.full(PAPERS, AUTHORS - 1)
    writes = RelationParts("author", "paper", np.r_[own, shared], np.r_[np.arange(PAPERS), np.arange(PAPERS)])
    cites = RelationParts("paper", "paper", np.arange(PAPERS), random.permutation(PAPERS))
    types = {"paper": paper, "author": TypeParts(AUTHORS, np.eye(AUTHORS))}
    return assemble_hetero(types, {"writes": writes, "cites": cites}, target="paper")


@pytest.fixture(scope="module")
def view(graph):
    return typed_view(graph, scaling=Scaling(), device="cpu")


def sources_of(view):
    return {key: Sources(pairs.numpy(), len(view.features)) for key, pairs in view.edges.items()}


def test_sources_by_a_loop(view):
    targets = np.array([0, 5, 5, PAPERS + 3, 199])
    for key, pairs in view.edges.items():
        near, which = sources_of(view)[key].of(targets)
        for at, target in enumerate(targets):
            expected = pairs[0][pairs[1] == target].tolist()
            assert sorted(near[which == at].tolist()) == sorted(expected)


def test_a_part_has_all_edges_between_its_nodes_and_no_others(view):
    nodes = np.array([0, 1, 2, 50, 120, PAPERS, PAPERS + 1, PAPERS + 29])
    found = subgraph(view, sources_of(view), nodes)
    assert found.ranges == {"paper": (0, 5), "author": (5, 8)}
    assert torch.equal(found.features, view.features[nodes])
    for key, pairs in view.edges.items():
        expected = {(a, b) for a, b in pairs.T.tolist() if a in nodes and b in nodes}
        assert {tuple(nodes[pair]) for pair in found.edges[key].T.tolist()} == expected
        assert found.edges[key].shape[1] == len(expected)
        local, (first, last) = found.local[key], found.ranges[key[0]]
        assert ((local[0] >= 0) & (local[0] < last - first)).all()


def test_each_type_gives_its_share_and_only_neighbours_come(view):
    into, random = sources_of(view), np.random.default_rng(1)
    options = options_for("hgt", {"rounds": 1, "nodes_a_type": 4})
    seeds = np.array([3, 10, 77])
    nodes = reached(view.ranges, into, seeds, options=options, random=random)
    near = {int(a) for pairs in view.edges.values() for a, b in pairs.T.tolist() if b in seeds}
    assert set(seeds.tolist()) <= set(nodes.tolist()) <= near | set(seeds.tolist())
    assert (nodes < PAPERS).sum() <= 3 + 4
    assert (nodes >= PAPERS).sum() == min(4, len([node for node in near if node >= PAPERS]))
    twice = options_for("hgt", {"rounds": 2, "nodes_a_type": 4})
    assert len(reached(view.ranges, into, seeds, options=twice, random=random)) > len(nodes)


def test_budgets_by_hand():
    """Node 2 neighbours both seeds: ½ + 1; node 3 one of them: ½. Squared, it is nine times as likely."""
    pairs = np.array([[2, 3, 2], [0, 0, 1]])
    options = options_for("hgt", {"rounds": 1, "nodes_a_type": 1})
    counts = np.zeros(4)
    for seed in range(2000):
        random = np.random.default_rng(seed)
        counts[
            reached(
                {"x": (0, 4)}, {("x", "r", "x"): Sources(pairs, 4)}, np.array([0, 1]), options=options, random=random
            )
        ] += 1
    assert counts[0] == counts[1] == 2000
    assert counts[2] + counts[3] == 2000
    assert counts[2] / 2000 == pytest.approx(0.9, abs=0.03)  # four standard deviations


def test_few_candidates_are_all_taken():
    assert drawn(np.array([0.0, 1.0, 0.0, 2.0]), 3, np.random.default_rng(0)).tolist() == [1, 3]
    assert drawn(np.zeros(4), 3, np.random.default_rng(0)).tolist() == []


def test_every_training_node_is_in_one_batch_and_small_graphs_are_taken_whole(view):
    train = np.arange(100)
    options = options_for("hgt", {"batch_size": 30, "nodes_a_type": 5, "rounds": 2, "full_batch_up_to": 10})
    batches = list(subgraphs(TypedSource(view, options))(np.random.default_rng(0), train))
    assert np.sort(np.concatenate([batch.nodes for batch in batches])).tolist() == train.tolist()
    for batch in batches:
        assert torch.equal(batch.view.features[batch.rows], view.features[batch.nodes])
        assert batch.weights.sum() == pytest.approx(1)
    (only,) = subgraphs(TypedSource(view, options_for("hgt", {})))(np.random.default_rng(0), train)
    assert only.view is view


def test_hgt_learns_from_parts(graph):
    options = {
        "hidden": 16,
        "epochs": 15,
        "dropout": 0.0,
        "feature_scaling": "none",
        "weight_decay": 0.0,
        "batch_size": 20,
        "nodes_a_type": 10,
        "rounds": 2,
        "full_batch_up_to": 0,
    }
    fitted = fit("hgt", graph, graph.split, options=options, seed=0)
    test = graph.split.test
    assert (fitted.probabilities[test].argmax(axis=1) == graph.labels[test]).mean() > 0.9  # chance is ½
    again = fit("hgt", graph, graph.split, options=options, seed=0)
    np.testing.assert_array_equal(again.probabilities, fitted.probabilities)
