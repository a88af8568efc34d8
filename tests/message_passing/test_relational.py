"""R-GCN and HGT: their layers are PyG's; here that types and relations reach them rightly, and that they learn."""

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
from gamlp.message_passing.pyg import layers
from gamlp.message_passing.relational import RGCN, Attention, typed_view
from gamlp.methods import method_named
from gamlp.propagate.scaling import Scaling


def options_for(name, options):
    return method_named(name).settings_from(options)


def fit(name, graph, split, *, options, seed):
    return fit_options(name, graph, split, options=options_for(name, options), seed=seed)


@pytest.fixture(scope="module")
def graph():
    """90 papers of three classes; author a writes in class a mod 3, and features say nothing."""
    random = np.random.default_rng(0)
    labels = np.arange(90) % 3
    ids = random.permutation(90)
    paper = TypeParts(
        90, random.normal(size=(90, 4)), labels, ("a", "b", "c"), Split(*np.split(np.sort(ids), [45, 60]))
    )
    authors = 3 * random.integers(0, 4, 90) + labels
    relations = {
        "writes": RelationParts("author", "paper", authors, np.arange(90)),
        "cites": RelationParts("paper", "paper", np.arange(90), random.permutation(90)),
    }
    return assemble_hetero({"paper": paper, "author": TypeParts(12, np.eye(12, 4))}, relations, target="paper")


def test_the_view_has_every_relation_both_ways_with_local_ids(graph):
    view = typed_view(graph, scaling=Scaling(), device="cpu")
    assert list(view.edges) == [
        ("author", "writes", "paper"),
        ("paper", "rev_writes", "author"),
        ("paper", "cites", "paper"),
        ("paper", "rev_cites", "paper"),
    ]
    writes, back = view.local["author", "writes", "paper"], view.local["paper", "rev_writes", "author"]
    assert writes[0].tolist() == (graph.relation("writes").heads - 90).tolist()
    assert torch.equal(back, writes.flip(0))
    assert view.ranges == {"paper": (0, 90), "author": (90, 102)}


def test_rgcn_by_loops(graph):
    view = typed_view(graph, scaling=Scaling(), device="cpu")
    torch.manual_seed(0)
    network = RGCN(view, 3, options_for("rgcn", {"layers": 1})).eval()
    layer = network.convolutions[0]
    with torch.no_grad():
        found = network(view).double().numpy()
    weight, root, bias = (part.detach().double().numpy() for part in (layer.weight, layer.root, layer.bias))
    features = graph.features.astype(np.float64)
    for node in (0, 7, 95):
        expected = features[node] @ root + bias
        for number, pairs in enumerate(view.edges.values()):
            near = pairs[0][pairs[1] == node].tolist()
            if near:
                expected = expected + features[near].mean(axis=0) @ weight[number]
        np.testing.assert_allclose(found[node], expected, atol=1e-5)


def test_attention_and_its_gradient_are_those_of_pyg(graph):
    view = typed_view(graph, scaling=Scaling(), device="cpu")
    metadata = list(view.ranges), list(view.edges)
    torch.manual_seed(0)
    ours, theirs = Attention(8, metadata, heads=2), layers.HGTConv(8, 8, metadata, heads=2)
    rows = {kind: torch.randn(last - first, 8) for kind, (first, last) in view.ranges.items()}
    ours(rows, view.local), theirs(rows, view.local)  # the first call makes the weights
    theirs.load_state_dict(ours.state_dict())
    found, expected = ours(rows, view.local), theirs(rows, view.local)
    for out in (found, expected):
        sum(out[kind].square().sum() for kind in rows).backward()
    for kind in rows:
        torch.testing.assert_close(found[kind], expected[kind])
    for (name, mine), (_, his) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        torch.testing.assert_close(mine.grad, his.grad, msg=name)
    assert ours.k_rel.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("name", ["rgcn", "hgt"])
def test_they_learn_from_relations(graph, name):
    options = {"hidden": 16, "epochs": 40, "dropout": 0.0, "feature_scaling": "none", "weight_decay": 0.0}
    fitted = fit(name, graph, graph.split, options=options, seed=0)
    test = graph.split.test
    assert fitted.probabilities.shape == (102, 3)
    assert (fitted.probabilities[test].argmax(axis=1) == graph.labels[test]).mean() > 0.6  # chance is 1/3
    again = fit(name, graph, graph.split, options=options, seed=0)
    np.testing.assert_array_equal(again.probabilities, fitted.probabilities)
