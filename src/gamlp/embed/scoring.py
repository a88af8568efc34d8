"""How true a triple looks, as a comparison of two vectors, and the gradients of that.

One end of a triple and its relation make a query q; the score compares it with the other end x:

    ComplEx   s = ⟨q, x⟩           q = h·r for a tail, t·r̄ for a head (products of complex numbers)
    TransE    s = margin − ‖q − x‖   q = h + r for a tail, t − r for a head

So the scores of m queries against n entities are one (m, d)×(d, n) product for both: O(m·n·d), and nothing of the size
(m, n, d) is ever made. A row of d numbers has d/2 real parts first, then d/2 imaginary parts.

TransE uses the Euclidean norm, and entities keep their length (PyG's model brings them to length 1 first).
"""

from __future__ import annotations

from typing import Literal, Protocol

import torch
from torch import Tensor

from gamlp.embed.settings import EmbeddingSettings

Side = Literal["head", "tail"]  # the end that is asked for
NEAR = 1e-6  # squared distance below which TransE's gradient no longer grows


class Scoring(Protocol):
    """A way to score; both models keep this contract. q (…, m, d), x (…, n, d)."""

    def query(self, known: Tensor, relation: Tensor, side: Side) -> Tensor:
        """Return q (B, d) from the known end (B, d) and the relation (B, d)."""

    def query_gradient(self, known: Tensor, relation: Tensor, gradient: Tensor, side: Side) -> tuple[Tensor, Tensor]:
        """Return the gradients of the known end and the relation from that of q."""

    def pairs(self, query: Tensor, other: Tensor) -> Tensor:
        """Score row against row: (B, d), (B, d) → (B,)."""

    def pairs_gradient(self, query: Tensor, other: Tensor, gradient: Tensor, of_query: Tensor) -> Tensor:
        """Add the gradient of q to `of_query`, return that of x, from that of the scores (B,)."""

    def table(self, query: Tensor, other: Tensor) -> Tensor:
        """Score all against all: (…, m, d), (…, n, d) → (…, m, n)."""

    def table_gradient(self, query: Tensor, other: Tensor, scores: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of q and x from that of the scores (…, m, n)."""


class ComplEx:
    """Trouillon et al. 2016, "Complex embeddings for simple link prediction": Re⟨h, r, t̄⟩."""

    def query(self, known: Tensor, relation: Tensor, side: Side) -> Tensor:
        """Multiply by r for a tail, by its conjugate for a head."""
        return times(known, relation) if side == "tail" else times_conjugate(known, relation)

    def query_gradient(self, known: Tensor, relation: Tensor, gradient: Tensor, side: Side) -> tuple[Tensor, Tensor]:
        """Return the gradients of both factors of the product."""
        if side == "tail":
            return times_conjugate(gradient, relation), times_conjugate(gradient, known)
        return times(gradient, relation), times_conjugate(known, gradient)

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


class TransE:
    """Bordes et al. 2013, "Translating embeddings for modeling multi-relational data": h + r ≈ t."""

    def __init__(self, margin: float) -> None:
        self.margin = margin

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


def scoring_for(settings: EmbeddingSettings) -> Scoring:
    """Return the model that the settings name."""
    return ComplEx() if settings.model == "complex" else TransE(settings.margin)


def times(left: Tensor, right: Tensor) -> Tensor:
    """Multiply complex rows."""
    (a, b), (c, d) = left.chunk(2, -1), right.chunk(2, -1)
    product = torch.empty_like(left)
    real, imaginary = product.chunk(2, -1)
    torch.mul(a, c, out=real).addcmul_(b, d, value=-1)
    torch.mul(a, d, out=imaginary).addcmul_(b, c)
    return product


def times_conjugate(left: Tensor, right: Tensor) -> Tensor:
    """Multiply complex rows by the conjugate of others."""
    (a, b), (c, d) = left.chunk(2, -1), right.chunk(2, -1)
    product = torch.empty_like(left)
    real, imaginary = product.chunk(2, -1)
    torch.mul(a, c, out=real).addcmul_(b, d)
    torch.mul(b, c, out=imaginary).addcmul_(a, d, value=-1)
    return product
