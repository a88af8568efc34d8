"""Whether embeddings learned anything: where the right end of a held-out triple ranks among all entities.

For both ends of each held-out triple, with every other entity that makes a fact filtered out,

    rank = 1 + #(better) + ½ #(equal),   MRR = mean of 1 / rank,   hits@k = share of ranks up to k

Equal is what differs by less than rounding does, so embeddings that are all alike rank in the middle, not first.
Chance is what a random order of the same m candidates would give: (1 + ½ + … + 1/m) / m, and k/m.

Cost: O(questions · N · d); memory: a block of 256 × 16,384 scores at a time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gamlp.embed.held_out import HeldOut, Questions
from gamlp.embed.scoring import Scoring, Side
from gamlp.progress import progress
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges

QUESTIONS, ENTITIES = 256, 16_384  # a block of scores
ROUNDING = 1e-5


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

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def scores_from(values: dict[str, Any]) -> Scores:
    """Read what as_dict gave."""
    return Scores(**{**values, "chance": Ranking(**values["chance"])})


def evaluate(scoring: Scoring, entities: Tensor, relations: Tensor, held_out: HeldOut) -> Scores | None:
    """Rank both ends of the held-out triples; None where there are none."""
    if not len(held_out.tails.answers):
        return None
    asked: list[tuple[Questions, Side]] = [(held_out.tails, "tail"), (held_out.heads, "head")]
    ranks = np.concatenate([rank(scoring, entities, relations, questions, side) for questions, side in asked])
    candidates = np.concatenate([count_candidates(questions, len(entities)) for questions, _ in asked])
    return Scores(
        mrr=float((1 / ranks).mean()),
        hits_at_1=float((ranks <= 1).mean()),
        hits_at_3=float((ranks <= 3).mean()),
        hits_at_10=float((ranks <= 10).mean()),
        triples=len(held_out.tails.answers),
        chance=chance(candidates),
    )


def rank(scoring: Scoring, entities: Tensor, relations: Tensor, questions: Questions, side: Side) -> Array:
    """Return the filtered rank of each question's answer, (Q,) float64."""
    ranks = np.empty(len(questions.answers))
    blocks = ranges(len(ranks), QUESTIONS)
    with progress(f"rank {side}s", total=len(blocks)) as advance:
        for start, stop in blocks:
            query = scoring.query(
                entities[questions.known[start:stop]], relations[questions.relations[start:stop]], side
            )
            right = scoring.pairs(query, entities[questions.answers[start:stop]])[:, None]
            slack = ROUNDING * (1 + right.abs())
            facts = [questions.facts_of(question) for question in range(start, stop)]
            above = torch.zeros(stop - start)
            for first, last in ranges(len(entities), ENTITIES):
                scores = scoring.table(query, entities[first:last])
                forget(scores, facts, first, last)
                above += ((scores > right + slack).sum(1) + (scores >= right - slack).sum(1)) / 2
            ranks[start:stop] = 1 + above.double().numpy()
            advance()
    return ranks


def forget(scores: Tensor, facts: list[Array], first: int, last: int) -> None:
    """Take the facts among the entities first … last−1 out of the ranking, the answer with them."""
    for row, entities in enumerate(facts):
        begin, end = np.searchsorted(entities, (first, last))
        scores[row, entities[begin:end] - first] = -torch.inf


def count_candidates(questions: Questions, entities: int) -> Array:
    """Return among how many entities each answer is ranked, itself included."""
    lengths = np.diff(questions.starts)
    return entities + 1 - lengths[questions.group]


def chance(candidates: Array) -> Ranking:
    """Return what a random order of so many candidates gives on average."""
    sums = np.cumsum(1 / np.arange(1, candidates.max() + 1))
    hits = [float(np.minimum(1, k / candidates).mean()) for k in (1, 3, 10)]
    return Ranking(float((sums[candidates - 1] / candidates).mean()), *hits)
