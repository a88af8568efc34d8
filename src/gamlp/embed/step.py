"""One step of training: scores, gradients written out by hand, and an update of the touched rows.

A step takes chunks of c triples and n drawn entities per chunk, and replaces the tail (the head in every other step) by
each of them. With queries Q (chunks, c, d), drawn rows X (chunks, n, d) and G the gradient of their scores, the work is
three products of 2·c·n·d flops a chunk: the scores, G X and Gᵀ Q. Memory: O(B·(d + n)).

Self-adversarial loss (Sun et al. 2019) of true scores s and false scores f, one row of f for each s: the most
convincing false triples count most,

    L = ½ Σᵢ [ −log σ(sᵢ) − Σⱼ wᵢⱼ log σ(−fᵢⱼ) ],   w = softmax over j of temperature · f, taken as constant
    ∂L/∂sᵢ = −½ σ(−sᵢ),   ∂L/∂fᵢⱼ = ½ wᵢⱼ σ(fᵢⱼ)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from gamlp.embed.adagrad import update_rows
from gamlp.embed.batches import Plan
from gamlp.embed.scoring import Scoring, Side
from gamlp.embed.settings import EmbeddingSettings
from gamlp.errors import NotFiniteError
from gamlp.storage.files import Array


@dataclass(eq=False)
class Tables:
    """All that training changes: rows (N, d) and (R, d), Adagrad's sums (N,) and (R,), and the next step."""

    entities: Tensor
    relations: Tensor
    entity_sums: Tensor
    relation_sums: Tensor
    step: int = 0

    def arrays(self) -> dict[str, Array]:
        """Return the tensors as arrays on the same memory."""
        return {name: value.numpy() for name, value in vars(self).items() if isinstance(value, Tensor)}


def take_step(
    tables: Tables, batch: tuple[Array, Array, Array], plan: Plan, scoring: Scoring, settings: EmbeddingSettings,
    *, measured: bool,
) -> float:  # fmt: skip
    """Move the tables by one step; return the loss per triple, or 0 where it is not measured."""
    heads, relations, tails = (torch.from_numpy(ids) for ids in batch)
    side: Side = "head" if tables.step % 2 else "tail"
    known, answers = (heads, tails) if side == "tail" else (tails, heads)
    drawn = torch.from_numpy(plan.drawn(tables.step))
    ends, links = tables.entities, tables.relations
    value, (of_known, of_relation, of_answer, of_drawn) = gradients_of(
        scoring, ends.index_select(0, known), links.index_select(0, relations), ends.index_select(0, answers),
        ends.index_select(0, drawn.flatten()).view(*drawn.shape, -1), side, settings, measured=measured,
    )  # fmt: skip
    rate = settings.learning_rate
    update = partial(update_rows, rate=rate, regularization=settings.regularization)
    ids, moves = (known, answers, drawn.flatten()), (of_known, of_answer, of_drawn.flatten(0, 1))
    update(ends.numpy(), tables.entity_sums.numpy(), [one.numpy() for one in ids], [one.numpy() for one in moves])
    update(links.numpy(), tables.relation_sums.numpy(), [relations.numpy()], [of_relation.numpy()])
    if measured and not np.isfinite(value):
        raise NotFiniteError(f"The loss is {value} at step {tables.step:,}.\nLower learning_rate ({rate:g}).")
    return value


def gradients_of(
    scoring: Scoring, known: Tensor, relation: Tensor, answer: Tensor, drawn: Tensor, side: Side,
    settings: EmbeddingSettings, *, measured: bool = False,
) -> tuple[float, tuple[Tensor, Tensor, Tensor, Tensor]]:  # fmt: skip
    """Return the loss per triple and four gradients; known, relation, answer (B, d), drawn (chunks, n, d)."""
    temperature = settings.temperature
    query = scoring.query(known, relation, side)
    chunked = query.view(len(drawn), -1, query.shape[1])
    true, false = scoring.pairs(query, answer), scoring.table(chunked, drawn)
    value = float(loss(true, false.flatten(0, 1), temperature=temperature)) / len(true) if measured else 0.0
    of_true, of_false = loss_gradients(true, false, temperature=temperature)
    of_query, of_drawn = scoring.table_gradient(chunked, drawn, false, of_false)
    of_query = of_query.view_as(query)
    of_answer = scoring.pairs_gradient(query, answer, of_true, of_query)
    of_known, of_relation = scoring.query_gradient(known, relation, of_query, side)
    return value, (of_known, of_relation, of_answer, of_drawn)


def loss(true: Tensor, false: Tensor, *, temperature: float) -> Tensor:
    """Return L, a scalar; true (…, m), false (…, m, n)."""
    weights = (temperature * false).softmax(-1).detach()
    return -(logsigmoid(true).sum() + (weights * logsigmoid(-false)).sum()) / 2


def loss_gradients(true: Tensor, false: Tensor, *, temperature: float) -> tuple[Tensor, Tensor]:
    """Return the gradients of L, of the shapes of true and false."""
    weights = (false if temperature == 1 else temperature * false).softmax(-1)
    return true.neg().sigmoid_().mul_(-0.5), weights.mul_(false.sigmoid()).mul_(0.5)
