"""Held-out triples and their filtered ranks, against loops over all entities."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.embed import Triples
from gamlp.embed.ranking import chance, evaluate, hold_out, rank
from gamlp.embed.scoring import ComplEx


def random_triples(entities=12, count=150, seed=0) -> Triples:
    """Small and dense, with doubles: most questions have several answers."""
    random = np.random.default_rng(seed)
    heads, tails = random.integers(0, entities, (2, count))
    return Triples(heads, random.integers(0, 2, count), tails, entities, ("likes", "knows"))


def facts(triples):
    return {tuple(row) for row in np.stack(triples.columns, 1).tolist()}


def test_what_is_held_out_is_not_trained_on():
    triples = random_triples()
    held = hold_out(triples, 5, seed=0)
    questions = held.tails
    asked = set(zip(questions.known.tolist(), questions.relations.tolist(), questions.answers.tolist(), strict=True))
    rest = np.setdiff1d(np.arange(len(triples)), held.rows)
    trained = set(zip(*(column[rest].tolist() for column in triples.columns), strict=True))
    assert len(questions.answers) == 5
    assert not asked & trained
    assert asked | trained == facts(triples)


def test_every_entity_keeps_a_triple_to_learn_from():
    """A chain: an inner entity has two triples, the first and last one have one each."""
    triples = Triples(np.arange(40), np.zeros(40, int), np.arange(1, 41), 41, ("next",))
    held = hold_out(triples, 1000, seed=0)
    assert 0 < len(held.rows) <= 2  # a twentieth of 40
    rest = np.setdiff1d(np.arange(40), held.rows)
    assert_array_equal(np.unique([triples.heads[rest], triples.tails[rest]]), np.arange(41))


@pytest.mark.parametrize("side", ["tail", "head"])
def test_filtered_ranks_against_a_loop(side):
    triples = random_triples()
    random = torch.Generator().manual_seed(0)
    entities, relations = torch.randn(12, 4, generator=random), torch.randn(2, 4, generator=random)
    held = hold_out(triples, 7, seed=1)
    questions = held.tails if side == "tail" else held.heads
    expected = []
    for known, relation, answer in zip(questions.known, questions.relations, questions.answers, strict=True):

        def score(other, known=known, relation=relation):
            head, tail = (known, other) if side == "tail" else (other, known)
            h, r, t = (torch.complex(row[:2], row[2:]) for row in (entities[head], relations[relation], entities[tail]))
            return float((h * r * t.conj()).sum().real)

        def is_fact(other, known=known, relation=relation):
            return ((known, relation, other) if side == "tail" else (other, relation, known)) in facts(triples)

        better = [other for other in range(12) if score(other) > score(answer) and not is_fact(other)]
        expected.append(1 + len(better))
    assert len(set(expected)) > 1
    assert_array_equal(rank(ComplEx(), entities, relations, questions, side), expected)


def test_embeddings_that_are_all_alike_are_no_better_than_chance():
    triples = random_triples(entities=200, count=2000)
    held = hold_out(triples, 50, seed=0)
    scores = evaluate(ComplEx(), torch.full((200, 8), 0.37), torch.full((2, 8), 0.21), held)
    assert scores.hits_at_10 == 0  # all in the middle, about rank 98
    assert scores.mrr < scores.chance.mrr
    assert scores.triples == 50


def test_chance_by_hand():
    """Two candidates: (1 + 1/2)/2; four: (1 + 1/2 + 1/3 + 1/4)/4 = 25/48."""
    level = chance(np.array([2, 4]))
    assert level.mrr == pytest.approx((3 / 4 + 25 / 48) / 2)
    assert level.hits_at_1 == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert level.hits_at_3 == pytest.approx((1 + 3 / 4) / 2)
    assert level.hits_at_10 == 1


def test_chance_is_what_random_scores_get():
    """With 4,000 questions among about 50 candidates the MRR has a standard error of 0.003."""
    triples = random_triples(entities=60, count=80_000 // 20)
    held = hold_out(triples, 200, seed=0)
    measured = [
        evaluate(ComplEx(), torch.randn(60, 8, generator=random), torch.randn(2, 8, generator=random), held)
        for random in (torch.Generator().manual_seed(seed) for seed in range(20))
    ]
    assert_allclose(np.mean([scores.mrr for scores in measured]), measured[0].chance.mrr, rtol=0.15)
