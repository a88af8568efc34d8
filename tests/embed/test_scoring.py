"""Scores against PyG's models and by hand, gradients against float64 autograd."""

import warnings

import pytest
import torch
from torch.testing import assert_close

from gamlp.embed.scoring import ComplEx, TransE
from gamlp.embed.settings import EmbeddingSettings
from gamlp.embed.step import gradients_of, loss, loss_gradients

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the library's own, while it is imported
    kge = pytest.importorskip("torch_geometric.nn.kge")

SCORINGS = {"complex": ComplEx(), "transe": TransE(margin=10.0)}
SIDES = ("tail", "head")


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def ends(side, head, tail):
    """Return the known end and the one asked for."""
    return (head, tail) if side == "tail" else (tail, head)


@pytest.mark.parametrize("side", SIDES)
def test_complex_scores_by_hand(side):
    """(1 + 2i)·(3 − i)·conj(2 + 4i) = (5 + 5i)(2 − 4i) = 30 − 10i."""
    head, relation, tail = (torch.tensor([row]) for row in ([1.0, 2.0], [3.0, -1.0], [2.0, 4.0]))
    known, answer = ends(side, head, tail)
    assert ComplEx().pairs(ComplEx().query(known, relation, side), answer).item() == 30


@pytest.mark.parametrize("side", SIDES)
def test_transe_scores_by_hand(side):
    """The sum h + r − t = (3, 4): distance 5, so 10 − 5."""
    head, relation, tail = (torch.tensor([row]) for row in ([1.0, 2.0], [3.0, 3.0], [1.0, 1.0]))
    known, answer = ends(side, head, tail)
    assert TransE(10.0).pairs(TransE(10.0).query(known, relation, side), answer).item() == 5


@pytest.mark.parametrize("side", SIDES)
def test_complex_scores_equal_pyg(side):
    oracle = kge.ComplEx(20, 3, 8).double()
    entities = torch.cat([oracle.node_emb.weight, oracle.node_emb_im.weight], 1).detach()
    relations = torch.cat([oracle.rel_emb.weight, oracle.rel_emb_im.weight], 1).detach()
    head, relation, tail = torch.arange(0, 6), torch.arange(6) % 3, torch.arange(9, 15)
    known, answer = ends(side, head, tail)
    query = ComplEx().query(entities[known], relations[relation], side)
    assert_close(ComplEx().pairs(query, entities[answer]), oracle(head, relation, tail).detach())


@pytest.mark.parametrize("side", SIDES)
def test_transe_scores_equal_pyg_on_entities_of_length_one(side):
    """PyG brings entities to length 1 first; rows that have it are compared."""
    oracle = kge.TransE(20, 3, 8, p_norm=2.0).double()
    entities = torch.nn.functional.normalize(oracle.node_emb.weight, dim=-1).detach()
    relations = oracle.rel_emb.weight.detach()
    head, relation, tail = torch.arange(0, 6), torch.arange(6) % 3, torch.arange(9, 15)
    known, answer = ends(side, head, tail)
    query = TransE(10.0).query(entities[known], relations[relation], side)
    assert_close(TransE(10.0).pairs(query, entities[answer]) - 10, oracle(head, relation, tail).detach())


@pytest.mark.parametrize("name", SCORINGS)
def test_a_table_of_scores_is_all_pairs(name):
    query, others = draw(2, 3, 8), draw(2, 5, 8, seed=1)
    table = SCORINGS[name].table(query, others)
    for chunk in range(2):
        for row in range(3):
            pairs = SCORINGS[name].pairs(query[chunk, row].expand(5, 8), others[chunk])
            assert_close(table[chunk, row], pairs)


def test_loss_of_one_triple_by_hand():
    """With s = 0, f = (0, ln 3): w = (1/4, 3/4), so L = ½ (ln 2 + ¼ ln 2 + ¾ ln 4) = 1.375 ln 2."""
    value = loss(torch.zeros(1), torch.tensor([[0.0, torch.tensor(3.0).log()]]), temperature=1.0)
    assert_close(value, 1.375 * torch.tensor(2.0).log())


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.5])
def test_gradients_of_the_loss_equal_autograd(temperature):
    true, false = (3 * draw(4)).requires_grad_(), (3 * draw(4, 6, seed=1)).requires_grad_()
    expected = torch.autograd.grad(loss(true, false, temperature=temperature), (true, false))
    ours = loss_gradients(true.detach(), false.detach(), temperature=temperature)
    assert_close(ours, expected)


def slow_loss(name, known, relation, answer, drawn, side):
    """The loss of a step with PyG's formulas, triple by triple."""
    real, imaginary = (lambda row: row[: len(row) // 2]), (lambda row: row[len(row) // 2 :])

    def score(end, middle, other):
        head, tail = (end, other) if side == "tail" else (other, end)
        if name == "transe":
            return 10 - (head + middle - tail).norm()
        h, r, t = (torch.complex(real(row), imaginary(row)) for row in (head, middle, tail))
        return (h * r * t.conj()).sum().real

    total = 0
    chunk = len(known) // len(drawn)
    for at, (end, middle, other) in enumerate(zip(known, relation, answer, strict=True)):
        false = torch.stack([score(end, middle, row) for row in drawn[at // chunk]])
        weights = false.softmax(0).detach()
        total = total - score(end, middle, other).sigmoid().log() - (weights * (-false).sigmoid().log()).sum()
    return total / 2


@pytest.mark.parametrize("name", SCORINGS)
@pytest.mark.parametrize("side", SIDES)
def test_gradients_of_a_step_equal_autograd(name, side):
    rows = [draw(6, 4), draw(6, 4, seed=1), draw(6, 4, seed=2), draw(2, 5, 4, seed=3)]
    leaves = [row.clone().requires_grad_() for row in rows]
    expected = slow_loss(name, *leaves, side)
    value, ours = gradients_of(SCORINGS[name], *rows, side, EmbeddingSettings(model=name), measured=True)
    assert value == pytest.approx(expected.item() / 6, rel=1e-9)
    assert_close(ours, torch.autograd.grad(expected, leaves))
