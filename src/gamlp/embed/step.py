"""One step of training: scores, gradients written out by hand, and an update of the touched rows.

A step takes chunks of c triples and n drawn entities per chunk, and replaces the tail (the head in every other step) by
each of them. With queries Q (chunks, c, d), drawn rows X (chunks, n, d) and G the gradient of their scores, the work is
three products of 2·c·n·d flops a chunk: the scores, G X and Gᵀ Q. Memory: O(B·(d + n)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gamlp.embed.adagrad import update_rows
from gamlp.embed.batches import Plan
from gamlp.embed.loss import loss, loss_gradients
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
    side = plan.side(tables.step)
    known, answers = (heads, tails) if side == "tail" else (tails, heads)
    drawn = torch.from_numpy(plan.drawn(tables.step))
    ends, links = tables.entities, tables.relations
    value, (of_known, of_relation, of_answer, of_drawn) = gradients_of(
        scoring, ends.index_select(0, known), links.index_select(0, relations), ends.index_select(0, answers),
        ends.index_select(0, drawn.flatten()).view(*drawn.shape, -1), side, settings, measured=measured,
    )  # fmt: skip
    arrays = tables.arrays()
    update_rows(
        arrays["entities"], arrays["entity_sums"], [known.numpy(), answers.numpy(), drawn.flatten().numpy()],
        [of_known.numpy(), of_answer.numpy(), of_drawn.flatten(0, 1).numpy()], rate=settings.learning_rate,
        regularization=settings.regularization,
    )  # fmt: skip
    update_rows(
        arrays["relations"], arrays["relation_sums"], [relations.numpy()], [of_relation.numpy()],
        rate=settings.learning_rate, regularization=settings.regularization,
    )  # fmt: skip
    if measured and not np.isfinite(value):
        raise NotFiniteError(
            f"The loss is {value} at step {tables.step:,}.\nLower learning_rate ({settings.learning_rate:g})."
        )
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
