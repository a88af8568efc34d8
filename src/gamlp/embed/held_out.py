"""The triples that are held out of training and ranked afterwards, and what is known about their questions.

A held-out triple is drawn at random, but never so that an entity or relation would have none left to learn from. Rows
equal to a held-out one, should the file have doubles, are held out too.

A question is one end and the relation of a held-out triple; every other triple with the same end and relation is an
answer as well, and ranks filter these out. One pass over the triples finds them all. Memory: N bytes, and the answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.embed.batches import shuffled
from gamlp.embed.triples import Triples
from gamlp.storage.files import Array

HELD_OUT = 3  # its stream of randomness
LARGEST_SHARE = 20  # at most one in twenty
CANDIDATES = 3  # drawn for each one wanted, as some are needed for training


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


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Questions for tails and heads, and the rows of the triples, sorted, that training leaves out."""

    tails: Questions
    heads: Questions
    rows: Array


def hold_out(triples: Triples, wanted: int, *, seed: int) -> HeldOut:
    """Keep `wanted` triples from training, or as many as can be spared."""
    chosen = choose(triples, min(wanted, len(triples) // LARGEST_SHARE), seed=seed)
    heads, relations, tails = triples.rows(chosen)
    asked_tails, rows = questions(triples, 0, heads, relations, tails)
    asked_heads, _ = questions(triples, 2, tails, relations, heads)
    return HeldOut(asked_tails, asked_heads, rows)


def choose(triples: Triples, wanted: int, *, seed: int) -> Array:
    """Return the rows of the held-out triples, sorted."""
    places = np.arange(min(CANDIDATES * wanted, len(triples)))
    candidates = shuffled(places, len(triples), key=[seed, HELD_OUT])
    heads, relations, tails = triples.rows(candidates)
    entities, ends = np.unique([heads, tails], return_inverse=True)
    left = count_entities(triples, entities)
    left_of_relation = count_relations(triples)
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


def count_relations(triples: Triples) -> Array:
    """Return how many triples each relation has."""
    counts = np.zeros(len(triples.relation_names), np.int64)
    for _, _, relations, _ in triples.blocks():
        counts += np.bincount(relations, minlength=len(counts))
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
