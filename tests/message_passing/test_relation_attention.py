"""HGConv, R-HGNN and R-GSN against loops over nodes written from their equations; what they learn, and refuse."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric")

from gamlp.errors import InputError
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.splits import Split
from gamlp.message_passing.fit import fit
from gamlp.message_passing.relation_attention import RHGNN, HGConv
from gamlp.message_passing.relational import Sources, subgraph, typed_view
from gamlp.message_passing.similar import RGSN
from gamlp.methods import method_named
from gamlp.propagate.scaling import Scaling

KINDS = {"hgconv": HGConv, "r-hgnn": RHGNN, "r-gsn": RGSN}
HEADS, WIDTH = 2, 3


@pytest.fixture(scope="module")
def graph():
    """90 papers of three classes; author a writes in class a mod 3, some papers cite and two neither."""
    random = np.random.default_rng(0)
    labels = np.arange(90) % 3
    split = Split(*np.split(np.sort(random.permutation(90)), [45, 60]))
    paper = TypeParts(90, random.normal(size=(90, 12)), labels, ("a", "b", "c"), split)
    authors = 3 * random.integers(0, 4, 88) + labels[:88]
    relations = {
        "writes": RelationParts("author", "paper", authors, np.arange(88)),
        "cites": RelationParts("paper", "paper", np.arange(60), random.permutation(60)),
    }
    return assemble_hetero({"paper": paper, "author": TypeParts(12, np.eye(12))}, relations, target="paper")


@pytest.fixture(scope="module")
def view(graph):
    return typed_view(graph, scaling=Scaling(), device="cpu")


def options_for(name, **options):
    own = method_named(name)
    quick = {"hidden": WIDTH, "heads": HEADS, "layers": 1}
    return own.settings_from({key: value for key, value in quick.items() if own.takes(key)} | options)


def network_of(name, view, **options):
    torch.manual_seed(0)
    network = KINDS[name](view, 3, options_for(name, **options)).eval()
    with torch.no_grad():
        for weights in network.parameters():  # gates, scales and biases are all alike at first
            weights.add_(0.3 * torch.randn(weights.shape))
    return network


def numbers(weights):
    return weights.detach().double().numpy()


def linear(module, row):
    return numbers(module.weight) @ row + numbers(module.bias)


def layer_norm(module, row):
    return (row - row.mean()) / np.sqrt(row.var() + module.eps) * numbers(module.weight) + numbers(module.bias)


def softmax(scores):
    powers = np.exp(np.array(scores) - max(scores))
    return powers / powers.sum()


def leaky(value):
    return value if value > 0 else 0.2 * value


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def unit(row):
    size = np.linalg.norm(row)
    return row / size if size else row


def sources(view, number, node):
    """The neighbours of a node in a relation, by their numbers within their type."""
    pairs = list(view.local.values())[number]
    return pairs[0][pairs[1] == node].tolist()


def entered(network, view):
    """The rows of each type after its linear map."""
    return {
        kind: np.array([linear(network.entry[at], row) for row in numbers(view.features[slice(*view.ranges[kind])])])
        for at, kind in enumerate(network.kinds)
    }


def over_neighbours(own, near, vector):
    """relu(Σ softmax(leaky(a·[own ‖ near])) near), one head after another; no neighbours give zeros."""
    heads = []
    for head in range(HEADS):
        part = slice(head * WIDTH, (head + 1) * WIDTH)
        shares = softmax([leaky(vector[head] @ np.r_[own[part], row[part]]) for row in near]) if near else []
        heads.append(sum((share * row[part] for share, row in zip(shares, near, strict=True)), np.zeros(WIDTH)))
    return np.maximum(np.concatenate(heads), 0)


def over_relations(score, rows):
    """Σ softmax(leaky(score(row, head))) row, one head after another."""
    heads = []
    for head in range(HEADS):
        part = slice(head * WIDTH, (head + 1) * WIDTH)
        shares = softmax([leaky(score(number, head, row[part])) for number, row in enumerate(rows)])
        heads.append(sum(share * row[part] for share, row in zip(shares, rows, strict=True)))
    return np.concatenate(heads)


def test_hgconv_by_loops(view):
    network = network_of("hgconv", view)
    layer, rows, place = network.layers[0], entered(network, view), {"paper": 0, "author": 1}
    maps, near, own, transform, macro, gates = map(
        numbers, (layer.maps, layer.near, layer.own, layer.transform, layer.macro[0], layer.gates)
    )
    found = network(view).detach().numpy()
    for node in (0, 7, 60, 89):  # the last has no neighbours at all
        mine, relations = rows["paper"][node], []
        for number, (source, _, target) in enumerate(view.edges):
            if target == "paper":
                others = [rows[source][other] @ maps[place[source]] for other in sources(view, number, node)]
                micro = over_neighbours(mine @ maps[0], others, near[place[source]])
                relations.append(micro @ transform[number])
        central = (mine @ own[0]).reshape(HEADS, WIDTH)
        merged = over_relations(lambda _, head, row: macro[head] @ np.r_[central[head], row], relations)  # noqa: B023
        gate = sigmoid(gates[0])
        expected = linear(network.last, gate * merged + (1 - gate) * linear(layer.past[0], mine))
        np.testing.assert_allclose(found[node], expected, atol=1e-4)
    assert not found[90:].any()


def test_r_hgnn_by_loops(view):
    network = network_of("r-hgnn", view)
    layer, rows, place = network.layers[0], entered(network, view), {"paper": 0, "author": 1}
    maps, query, cross, gates, fuse, queries, start = map(
        numbers,
        (layer.maps, layer.query, layer.cross, layer.gates, network.fuse, network.queries, network.relations[0]),
    )
    into = [number for number, key in enumerate(view.edges) if key[2] == "paper"]
    kinds = list(view.edges)
    found = network(view).detach().numpy()
    for node in (0, 7, 60, 89):
        mine, passed = rows["paper"][node], []
        for number in into:
            source = kinds[number][0]
            others = [rows[source][other] @ maps[place[source]] for other in sources(view, number, node)]
            vector = (start[number] @ query[number]).reshape(HEADS, 2 * WIDTH)
            within = over_neighbours(mine @ maps[0], others, vector)
            gate = sigmoid(gates[0])
            passed.append(gate * within + (1 - gate) * linear(layer.past[0], mine))
        mapped, wanted = [], []
        for at, number in enumerate(into):
            crossed = over_relations(lambda _, head, row: cross[number][head] @ row, passed)  # noqa: B023
            crossed = layer_norm(layer.norms[0], crossed).reshape(HEADS, WIDTH)
            mapped.append(np.concatenate([crossed[head] @ fuse[at][head] for head in range(HEADS)]))
            wanted.append((linear(layer.onward[number], start[number]) @ queries[at]).reshape(HEADS, WIDTH))
        fused = over_relations(lambda at, head, row: wanted[at][head] @ row, mapped)  # noqa: B023
        np.testing.assert_allclose(found[node], linear(network.last, fused), atol=1e-4)


def test_r_hgnn_reads_sources_by_the_reverse_relation(view):
    """Of the second layer on rows differ by relation: what a paper reads of its authors is what `writes` gave them."""
    network = network_of("r-hgnn", view)
    layer = network.layers[0]
    rows = {key: torch.randn(view.ranges[key[2]][1] - view.ranges[key[2]][0], HEADS * WIDTH) for key in view.edges}
    before, _ = layer(rows, network.relations[0], view)
    author_rows = ("paper", "rev_writes", "author")
    changed, _ = layer({**rows, author_rows: rows[author_rows] + 1}, network.relations[0], view)
    assert not torch.allclose(before["author", "writes", "paper"], changed["author", "writes", "paper"])
    only = ("paper", "cites", "paper")
    changed, _ = layer({**rows, only: rows[only] + 1}, network.relations[0], view)
    assert torch.equal(before[author_rows], changed[author_rows])  # authors have no part in citations


def test_r_gsn_by_loops(view):
    network = network_of("r-gsn", view)
    layer = network.layers[0]
    attention, transform = numbers(layer.attention), numbers(layer.transform)
    rows = {
        kind: np.array([layer_norm(network.norm, row) for row in numbers(view.features[slice(*view.ranges[kind])])])
        for kind in network.kinds
    }
    messages = []
    for number, (source, _, target) in enumerate(view.edges):
        if target != "paper":
            continue
        each = []
        for node in range(90):
            near = [rows[source][other] for other in sources(view, number, node)]
            shares = softmax([unit(row) @ attention[number][:, 0] for row in near]) if near else []
            each.append(
                unit(sum((s * (r @ transform[number]) for s, r in zip(shares, near, strict=True)), np.zeros(3)))
            )
        messages.append(each)
    means = np.mean(messages, axis=1)
    shares = softmax([unit(mean) @ unit(means.mean(axis=0)) for mean in means])
    merged = np.einsum("r,rnd->nd", shares, messages)
    found = network(view).detach().numpy()
    for node in (0, 7, 60, 89):
        own = linear(layer.own[0], rows["paper"][node])
        scale = layer.scales[0].scale.item()
        expected = layer_norm(layer.norms[0], own + scale * np.linalg.norm(own) * unit(merged[node]))
        np.testing.assert_allclose(found[node], expected, atol=1e-4)


@pytest.mark.parametrize("parts", [False, True], ids=["whole", "in parts"])
@pytest.mark.parametrize("name", KINDS)
def test_they_learn_from_relations_and_repeat_themselves(graph, name, parts):
    quick = {"hidden": 8, "epochs": 30, "dropout": 0.0, "feature_scaling": "none", "layers": 2, "learning_rate": 0.02}
    some = {"full_batch_up_to": 0, "batch_size": 15, "nodes_a_type": 10, "rounds": 2, "epochs": 15} if parts else {}
    options, test = options_for(name, **{**quick, **some}), graph.split.test
    graph = replace(graph, features=np.where(np.arange(102)[:, None] < 90, 1, graph.features))  # papers are all alike
    fitted = fit(name, graph, graph.split, options=options, seed=0)
    assert (fitted.probabilities[test].argmax(axis=1) == graph.labels[test]).mean() > 0.7  # chance is 1/3
    again = fit(name, graph, graph.split, options=options, seed=0)
    np.testing.assert_array_equal(again.probabilities, fitted.probabilities)


@pytest.mark.parametrize("name", KINDS)
def test_a_part_may_have_no_nodes_of_a_type(view, name):
    into = {key: Sources(pairs.numpy(), len(view.features)) for key, pairs in view.edges.items()}
    part = subgraph(view, into, np.array([5, 88, 89]))  # papers only
    network = network_of(name, view)
    found = network(part)
    found.sum().backward()
    assert found.shape == (3, 3) and found.isfinite().all()
    assert all(weights.grad is None or weights.grad.isfinite().all() for weights in network.parameters())


@pytest.mark.parametrize("name", KINDS)
def test_a_target_type_without_relations_is_refused(name):
    paper = TypeParts(3, np.eye(3), np.array([0, 1, 0]), ("a", "b"), Split(*map(np.array, ([0], [1], [2]))))
    likes = {"likes": RelationParts("author", "author", np.array([0]), np.array([1]))}
    graph = assemble_hetero({"paper": paper, "author": TypeParts(2, np.eye(2, 3))}, likes, target="paper")
    with pytest.raises(InputError, match=r"No relation has an end of type 'paper'.*\n.*add one"):
        fit(name, graph, graph.split, options=options_for(name), seed=0)
