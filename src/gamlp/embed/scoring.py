"""How true a triple looks, as a comparison of two vectors, and the gradients of that.

One end of a triple and its relation make a query q; the score compares it with the other end x:

    ComplEx   s = ⟨q, x⟩           q = h·r for a tail, t·r̄ for a head (products of complex numbers)
    TransE    s = margin − ‖q − x‖   q = h + r for a tail, t − r for a head

Both models keep one contract, with a gradient for each part:

    query   the known end (B, d), the relation (B, d) → q (B, d); the gradient of q → those of the two
    pairs   q (B, d), x (B, d), row against row → (B,); the gradient of q is added to `of_query`, that of x returned
    table   q (…, m, d), x (…, n, d), all against all → (…, m, n); the gradient of the scores → those of q and x

So the scores of m queries against n entities are one (m, d)×(d, n) product for both: O(m·n·d), and nothing of the size
(m, n, d) is ever made. A row of d numbers has d/2 real parts first, then d/2 imaginary parts.

TransE uses the Euclidean norm, and entities keep their length (PyG's model brings them to length 1 first).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gamlp.embed.settings import EmbeddingSettings

Side = Literal["head", "tail"]  # the end that is asked for
NEAR = 1e-6  # squared distance below which TransE's gradient no longer grows


class ComplEx:
    """Trouillon et al. 2016, "Complex embeddings for simple link prediction": Re⟨h, r, t̄⟩."""

    def query(self, known: Tensor, relation: Tensor, side: Side) -> Tensor:
        """Multiply by r for a tail, by its conjugate for a head."""
        return times(known, relation, conjugate=side == "head")

    def query_gradient(self, known: Tensor, relation: Tensor, gradient: Tensor, side: Side) -> tuple[Tensor, Tensor]:
        """Return the gradients of both factors of the product."""
        first, second = (gradient, known) if side == "tail" else (known, gradient)
        return times(gradient, relation, conjugate=side == "tail"), times(first, second, conjugate=True)

    def pairs(self, query: Tensor, other: Tensor) -> Tensor:
        """Return ⟨q, x⟩."""
        return (query * other).sum(-1)

    def pairs_gradient(self, query: Tensor, other: Tensor, gradient: Tensor, of_query: Tensor) -> Tensor:
        """Add g·x and return g·q."""
        of_query.addcmul_(gradient[:, None], other)
        return gradient[:, None] * query

    def table(self, query: Tensor, other: Tensor) -> Tensor:
        """Return Q Xᵀ."""
        return query @ other.transpose(-1, -2)

    def table_gradient(self, query: Tensor, other: Tensor, scores: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return G X and Gᵀ Q."""
        return gradient @ other, gradient.transpose(-1, -2) @ query


@dataclass(frozen=True)
class TransE:
    """Bordes et al. 2013, "Translating embeddings for modeling multi-relational data": h + r ≈ t."""

    margin: float

    def query(self, known: Tensor, relation: Tensor, side: Side) -> Tensor:
        """Walk along r for a tail, against it for a head."""
        return known + relation if side == "tail" else known - relation

    def query_gradient(self, known: Tensor, relation: Tensor, gradient: Tensor, side: Side) -> tuple[Tensor, Tensor]:
        """Return the gradient itself, for the relation with the sign it went in with."""
        return gradient, gradient if side == "tail" else -gradient

    def pairs(self, query: Tensor, other: Tensor) -> Tensor:
        """Return margin − ‖q − x‖."""
        return self.margin - (query - other).square().sum(-1).clamp_min(NEAR).sqrt()

    def pairs_gradient(self, query: Tensor, other: Tensor, gradient: Tensor, of_query: Tensor) -> Tensor:
        """Take away and return g·(q − x) / ‖q − x‖."""
        difference = query - other
        distance = difference.square().sum(-1).clamp_min(NEAR).sqrt()
        along = difference.mul_((gradient / distance)[:, None])
        of_query -= along
        return along

    def table(self, query: Tensor, other: Tensor) -> Tensor:
        """Use ‖q − x‖² = ‖q‖² + ‖x‖² − 2⟨q, x⟩."""
        squares = query.square().sum(-1)[..., :, None] + other.square().sum(-1)[..., None, :]
        return self.margin - (squares - 2 * query @ other.transpose(-1, -2)).clamp_min_(NEAR).sqrt_()

    def table_gradient(self, query: Tensor, other: Tensor, scores: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """With W = G / distance: W X − q·ΣW, and Wᵀ Q − x·ΣWᵀ."""
        weights = gradient / (self.margin - scores)
        of_query = weights @ other - query * weights.sum(-1)[..., None]
        return of_query, weights.transpose(-1, -2) @ query - other * weights.sum(-2)[..., None]


Scoring = ComplEx | TransE


def scoring_for(settings: EmbeddingSettings) -> Scoring:
    """Return the model that the settings name."""
    return ComplEx() if settings.model == "complex" else TransE(settings.margin)


def times(left: Tensor, right: Tensor, *, conjugate: bool = False) -> Tensor:
    """Multiply complex rows by others, or by the conjugate of those."""
    (a, b), (c, d) = left.chunk(2, -1), right.chunk(2, -1)
    first, second, sign = ((b, c), (a, d), -1) if conjugate else ((a, d), (b, c), 1)
    product = torch.empty_like(left)
    real, imaginary = product.chunk(2, -1)
    torch.mul(a, c, out=real).addcmul_(b, d, value=-sign)
    torch.mul(*first, out=imaginary).addcmul_(*second, value=sign)
    return product
