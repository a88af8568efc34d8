"""Attention over the edges of each node (GAT, Veličković et al. 2018), in one pass over them.

    sᵢⱼ = leaky_relu(a·hᵢ + b·hⱼ),   αᵢⱼ = softmax over the neighbours j of i (sᵢⱼ),   outᵢ = Σ_j dropout(αᵢⱼ) hⱼ

for each head. A layer by layer computation writes E·heads·width numbers several times over; here a node's row stays in
the cache, and only α (E, heads) is kept for the gradient, which reads the edges twice: by targets for α, by sources for
h. On Amazon Computers an epoch takes two fifths of the time that it takes with PyG's layer. Elsewhere than on a CPU
plain torch does it.
"""

# Compiled functions take plain positional arguments, and autograd functions are untyped in torch.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, override"

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from gamlp.message_passing.sparse import SparseMatrix, new_site
from gamlp.model.cpu import runs_on
from gamlp.model.cpu.kernels import CHUNK, compiled, run

SLOPE = 0.2  # of the leaky ReLU


class EdgeAttention(nn.Module):
    """H ↦ what each node receives of H W from its neighbours, heads side by side, + b."""

    def __init__(self, inputs: int, outputs: int, heads: int, *, dropout: float) -> None:
        super().__init__()
        self.heads, self.share = heads, dropout
        self.lin = nn.Linear(inputs, heads * outputs, bias=False)
        self.att_src, self.att_dst = (nn.Parameter(torch.empty(1, heads, outputs)) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(heads * outputs))
        for weights in (self.lin.weight, self.att_src, self.att_dst):
            nn.init.xavier_uniform_(weights)

    def forward(self, hidden: Tensor, adjacency: SparseMatrix) -> Tensor:
        """(n, inputs) → (n, heads · outputs)."""
        rows = self.lin(hidden).contiguous()
        by_head = rows.view(len(rows), self.heads, -1)
        to, of = ((by_head * vector).sum(dim=2) for vector in (self.att_dst, self.att_src))
        keep = self.kept(adjacency)
        received: Tensor = (Attend.apply if runs_on(rows) else attend_plainly)(rows, to, of, adjacency, keep)
        return received + self.bias

    def kept(self, adjacency: SparseMatrix) -> Tensor | None:
        """Return by what the weights (E, heads) are multiplied, None where nothing is dropped."""
        if not self.training or self.share == 0:
            return None
        return new_site(self.share).mask((len(adjacency.values), self.heads), adjacency.values)


def attend_plainly(rows: Tensor, to: Tensor, of: Tensor, adjacency: SparseMatrix, keep: Tensor | None) -> Tensor:
    """Return what the nodes receive, (n, heads · width); to and of (n, heads) are a·h and b·h."""
    offsets, sources = adjacency.rows
    targets = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), offsets.diff().long())
    scores = functional.leaky_relu(to[targets] + of[sources.long()], SLOPE)
    place = targets[:, None].expand_as(scores)
    top = torch.full_like(to, -torch.inf).scatter_reduce(0, place, scores.detach(), "amax")
    weights = (scores - top[targets]).exp()
    weights = weights / torch.zeros_like(to).index_add(0, targets, weights)[targets]
    weights = weights if keep is None else weights * keep
    messages = weights[:, :, None] * rows[sources.long()].view(len(sources), to.shape[1], -1)
    return torch.zeros_like(rows).index_add(0, targets, messages.flatten(1))


class Attend(torch.autograd.Function):
    """The same on a CPU."""

    @staticmethod
    def forward(ctx: Any, rows, to, of, adjacency: SparseMatrix, keep):
        """Return what the nodes receive."""
        starts, sources = (part.numpy() for part in adjacency.rows)
        weights = np.empty((len(sources), to.shape[1]), np.float32)
        out = torch.empty_like(rows)
        arrays = [each.detach().contiguous().numpy() for each in (rows, to, of)]
        ctx.keep = np.empty((0, 0), np.float32) if keep is None else keep.numpy()
        run(attend_rows, out.numpy(), starts, sources, *arrays, ctx.keep, weights)
        ctx.arrays, ctx.weights, ctx.adjacency = arrays, weights, adjacency
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient):
        """Return the gradients of rows, to and of."""
        (rows, to, of), weights, matrix = ctx.arrays, ctx.weights, ctx.adjacency
        gradient = gradient.contiguous().numpy()
        scores, d_to, d_of, d_rows = (np.empty_like(like) for like in (weights, to, of, rows))
        starts, sources = (part.numpy() for part in matrix.rows)
        run(score_gradients, gradient, starts, sources, rows, to, of, ctx.keep, weights, scores, d_to)
        column_starts, targets = (part.numpy() for part in matrix.columns)
        places = matrix.order.numpy()
        run(source_gradients, d_rows, column_starts, targets, places, gradient, ctx.keep, weights, scores, d_of)
        return (*map(torch.from_numpy, (d_rows, d_to, d_of)), None, None)


@compiled
def attend_rows(first, last, out, starts, sources, rows, to, of, keep, weights):
    """Compute the weights α (E, heads) and out (n, heads · width); keep (E, heads), or none."""
    nodes, columns = out.shape
    heads = to.shape[1]
    width = columns // heads
    for node in range(first * CHUNK, min(last * CHUNK, nodes)):
        begin, end = starts[node], starts[node + 1]
        for head in range(heads):
            top = np.float32(-3e38)
            for edge in range(begin, end):
                score = to[node, head] + of[sources[edge], head]
                score = score if score > 0 else score * np.float32(SLOPE)
                weights[edge, head] = score
                top = max(top, score)
            total = np.float32(0)
            for edge in range(begin, end):
                weights[edge, head] = np.exp(weights[edge, head] - top)
                total += weights[edge, head]
            for edge in range(begin, end):
                weights[edge, head] /= total
        out[node] = 0
        for edge in range(begin, end):
            source = sources[edge]
            for head in range(heads):
                weight = weights[edge, head]
                if len(keep) > 0:
                    weight *= keep[edge, head]
                for c in range(head * width, (head + 1) * width):
                    out[node, c] += weight * rows[source, c]


@compiled
def score_gradients(first, last, gradient, starts, sources, rows, to, of, keep, weights, scores, d_to):
    """Compute the gradients of the sums a·hᵢ + b·hⱼ, scores (E, heads), and of a·hᵢ, d_to (n, heads)."""
    nodes, columns = gradient.shape
    heads = to.shape[1]
    width = columns // heads
    for node in range(first * CHUNK, min(last * CHUNK, nodes)):
        begin, end = starts[node], starts[node + 1]
        for edge in range(begin, end):
            source = sources[edge]
            for head in range(heads):
                dot = np.float32(0)
                for c in range(head * width, (head + 1) * width):
                    dot += gradient[node, c] * rows[source, c]
                scores[edge, head] = dot * keep[edge, head] if len(keep) > 0 else dot
        for head in range(heads):
            mean = np.float32(0)
            for edge in range(begin, end):
                mean += weights[edge, head] * scores[edge, head]
            total = np.float32(0)
            for edge in range(begin, end):
                slope = np.float32(1) if to[node, head] + of[sources[edge], head] > 0 else np.float32(SLOPE)
                scores[edge, head] = slope * weights[edge, head] * (scores[edge, head] - mean)
                total += scores[edge, head]
            d_to[node, head] = total


@compiled
def source_gradients(first, last, d_rows, starts, targets, places, gradient, keep, weights, scores, d_of):
    """Compute the gradients of hⱼ through the sum, d_rows (n, heads · width), and of b·hⱼ, d_of (n, heads)."""
    nodes, columns = d_rows.shape
    heads = d_of.shape[1]
    width = columns // heads
    for node in range(first * CHUNK, min(last * CHUNK, nodes)):
        d_rows[node] = 0
        d_of[node] = 0
        for at in range(starts[node], starts[node + 1]):
            edge, target = places[at], targets[at]
            for head in range(heads):
                weight = weights[edge, head]
                if len(keep) > 0:
                    weight *= keep[edge, head]
                d_of[node, head] += scores[edge, head]
                for c in range(head * width, (head + 1) * width):
                    d_rows[node, c] += weight * gradient[target, c]
