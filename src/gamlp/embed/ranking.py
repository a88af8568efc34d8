"""Whether embeddings learned anything: where the right end of a held-out triple ranks among all entities.

A held-out triple is drawn at random, but never so that an entity or relation would have none left to learn from. Rows
equal to a held-out one, should the file have doubles, are held out too. A question is one end and the relation of such
a triple; every other triple with the same end and relation is an answer as well, and ranks filter these out:

    rank = 1 + #(better) + ½ #(equal),   MRR = mean of 1 / rank,   hits@k = share of ranks up to k

Equal is what differs by less than rounding does, so embeddings that are all alike rank in the middle, not first.
Chance is what a random order of the same m candidates would give: (1 + ½ + … + 1/m) / m, and k/m.

Cost: O(questions · N · d), and one pass over the triples. Memory: N bytes, the answers, and 256 × 16,384 scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gamlp.embed.batches import shuffled
from gamlp.embed.scoring import Scoring, Side
from gamlp.embed.triples import Triples
from gamlp.progress import progress
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

HELD_OUT = 3  # its stream of randomness
LARGEST_SHARE = 20  # at most one in twenty is held out
CANDIDATES = 3  # drawn for each one wanted, as some are needed for training
QUESTIONS, ENTITIES = 256, 16_384  # a block of scores
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class Questions:
    """Q questions of one side: the known end, the relation, the answer (Q,), and all answers that are facts."""

    known: Array
    relations: Array
    answers: Array
    group: Array  # (Q,) the list of facts that each question has; questions with the same end and relation share one
    starts: Array  # (groups + 1,) where each list begins
    facts: Array  # entities, each list sorted, the answer included

    def facts_of(self, question: int) -> Array:
        """Return the entities that answer this question, sorted."""
        group = self.group[question]
        return self.facts[self.starts[group] : self.starts[group + 1]]

    def candidates(self, entities: int) -> Array:
        """Return among how many of all entities each answer is ranked, itself included; (Q,)."""
        return np.asarray(entities + 1 - np.diff(self.starts)[self.group])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Questions for tails and heads, and the rows of the triples, sorted, that training leaves out."""

    tails: Questions
    heads: Questions
    rows: Array


@dataclass(frozen=True)
class Ranking:
    """Mean reciprocal rank, and the share of answers among the first 1, 3 and 10."""

    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float


@dataclass(frozen=True)
class Scores(Ranking):
    """Filtered, over both ends of so many held-out triples, with the level of chance beside it."""

    triples: int
    chance: Ranking


def hold_out(triples: Triples, wanted: int, *, seed: int) -> HeldOut:
    """Keep `wanted` triples from training, or as many as can be spared."""
    chosen = choose(triples, min(wanted, len(triples) // LARGEST_SHARE), seed=seed)
    heads, relations, tails = triples.rows(chosen)
    asked_tails, rows = questions(triples, 0, heads, relations, tails)
    return HeldOut(asked_tails, questions(triples, 2, tails, relations, heads)[0], rows)


def choose(triples: Triples, wanted: int, *, seed: int) -> Array:
    """Return the rows of the held-out triples, sorted."""
    places = np.arange(min(CANDIDATES * wanted, len(triples)))
    candidates = shuffled(places, len(triples), key=[seed, HELD_OUT])
    heads, relations, tails = triples.rows(candidates)
    entities, ends = np.unique([heads, tails], return_inverse=True)
    left, left_of_relation = count_entities(triples, entities), triples.relation_counts()
    chosen: list[int] = []
    for row, relation, head, tail in zip(candidates, relations, *ends.reshape(2, -1), strict=True):
        if len(chosen) == wanted:
            break
        left[[head, tail]] -= 1
        left_of_relation[relation] -= 1
        if left[head] < 1 or left[tail] < 1 or left_of_relation[relation] < 1:
            left[[head, tail]] += 1
            left_of_relation[relation] += 1
        else:
            chosen.append(row)
    return np.sort(np.array(chosen, dtype=np.int64))


def count_entities(triples: Triples, entities: Array) -> Array:
    """Return in how many triples each of these entities (sorted ids) is an end."""
    wanted = np.zeros(triples.entities, bool)
    wanted[entities] = True
    counts = np.zeros(len(entities), np.int64)
    for _, heads, _, tails in triples.blocks():
        for column in (heads, tails):
            counts += np.bincount(np.searchsorted(entities, column[wanted[column]]), minlength=len(entities))
    return counts


def questions(triples: Triples, side: int, known: Array, relations: Array, answers: Array) -> tuple[Questions, Array]:
    """Collect the facts of questions whose known end is column `side`; also the rows of the questions themselves."""
    count = len(triples.relation_names)
    keys, group = np.unique(known * count + relations, return_inverse=True)
    own = np.unique(group * triples.entities + answers)
    wanted = np.zeros(triples.entities, bool)
    wanted[known] = True
    facts, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start, *columns in triples.blocks():
        at = np.flatnonzero(wanted[columns[side]])
        ends, relation, others = (columns[column][at].astype(np.int64) for column in (side, 1, 2 - side))
        asked = np.isin(ends * count + relation, keys)
        pairs = np.searchsorted(keys, (ends * count + relation)[asked]) * triples.entities + others[asked]
        facts.append(pairs)
        rows.append(start + at[asked][np.isin(pairs, own)])
    pairs = np.unique(np.concatenate(facts))
    starts = np.searchsorted(pairs, np.arange(len(keys) + 1) * triples.entities)
    return Questions(known, relations, answers, group, starts, pairs % triples.entities), np.concatenate(rows)


def evaluate(scoring: Scoring, entities: Tensor, relations: Tensor, held_out: HeldOut) -> Scores | None:
    """Rank both ends of the held-out triples; None where there are none."""
    if not len(held_out.tails.answers):
        return None
    asked: list[tuple[Questions, Side]] = [(held_out.tails, "tail"), (held_out.heads, "head")]
    ranks = np.concatenate([rank(scoring, entities, relations, questions, side) for questions, side in asked])
    level = chance(np.concatenate([questions.candidates(len(entities)) for questions, _ in asked]))
    at_1, at_3, at_10 = (float((ranks <= k).mean()) for k in (1, 3, 10))
    return Scores(float((1 / ranks).mean()), at_1, at_3, at_10, len(held_out.tails.answers), level)


def rank(scoring: Scoring, entities: Tensor, relations: Tensor, questions: Questions, side: Side) -> Array:
    """Return the filtered rank of each question's answer, (Q,) float64."""
    ranks = np.empty(len(questions.answers))
    blocks = ranges(len(ranks), QUESTIONS)
    with progress(f"rank {side}s", total=len(blocks)) as advance:
        for start, stop in blocks:
            block = slice(start, stop)
            query = scoring.query(entities[questions.known[block]], relations[questions.relations[block]], side)
            right = scoring.pairs(query, entities[questions.answers[block]])[:, None]
            slack = ROUNDING * (1 + right.abs())
            facts = [questions.facts_of(question) for question in range(start, stop)]
            above = torch.zeros(stop - start)
            for first, last in ranges(len(entities), ENTITIES):
                scores = scoring.table(query, entities[first:last])
                forget(scores, facts, first, last)
                above += ((scores > right + slack).sum(1) + (scores >= right - slack).sum(1)) / 2
            ranks[block] = 1 + above.double().numpy()
            advance()
    return ranks


def forget(scores: Tensor, facts: list[Array], first: int, last: int) -> None:
    """Take the facts among the entities first … last−1 out of the ranking, the answer with them."""
    for row, entities in enumerate(facts):
        begin, end = np.searchsorted(entities, (first, last))
        scores[row, entities[begin:end] - first] = -torch.inf


def chance(candidates: Array) -> Ranking:
    """Return what a random order of so many candidates gives on average."""
    sums = np.cumsum(1 / np.arange(1, candidates.max() + 1))
    hits = [float(np.minimum(1, k / candidates).mean()) for k in (1, 3, 10)]
    return Ranking(float((sums[candidates - 1] / candidates).mean()), *hits)
