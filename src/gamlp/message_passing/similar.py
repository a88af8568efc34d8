"""R-GSN: relations that resemble each other count more (Wu et al. 2021).

For the relations r that lead to the nodes i of one type, x̂ = x / |x|:

    within   z_ri = unit(Σ_{j ∈ N_r(i)} softmax_j(a_r·x̂_j) W_r x_j)
    between  m_i = Σ_r softmax_r(cos(z̄_r, z̄)) z_ri,   z̄_r the mean of z_ri over the nodes, z̄ that over the relations
    update   x'_i = LayerNorm(y_i + s |y_i| m_i / |m_i|),   y_i = W x_i + b, weights and s of the type

The authors' score within a relation has a second term, of i alone, which softmax cancels; it is left out. Relations
that do not lead to a type do not enter its softmax. The features of featureless types are filled, not learned.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, normalize

from gamlp.message_passing.pyg import layers
from gamlp.message_passing.relation_attention import OverRelations, Rows, attended, stacked
from gamlp.message_passing.relational import TypedView
from gamlp.message_passing.settings import Options


class Similar(nn.Module):
    """One layer."""

    def __init__(self, inputs: int, outputs: int, kinds: int, relations: int) -> None:
        super().__init__()
        self.attention, self.transform = stacked(relations, inputs, 1), stacked(relations, inputs, outputs)
        self.own = nn.ModuleList(nn.Linear(inputs, outputs) for _ in range(kinds))
        self.scales = nn.ModuleList(layers.MessageNorm(learn_scale=True) for _ in range(kinds))
        self.norms = nn.ModuleList(nn.LayerNorm(outputs) for _ in range(kinds))

    def forward(self, rows: Rows, view: TypedView) -> Rows:
        """Rows of each type (n, inputs) → (n, outputs)."""
        found: dict[str, list[torch.Tensor]] = {kind: [] for kind in rows}
        for number, ((source, _, target), pairs) in enumerate(view.local.items()):
            scores = (normalize(rows[source]) @ self.attention[number])[pairs[0]]
            messages = attended(scores, (rows[source] @ self.transform[number])[:, None], pairs, len(rows[target]))
            found[target].append(normalize(messages[:, 0]))
        parts = zip(rows.items(), self.own, self.scales, self.norms, strict=True)
        return {
            kind: norm(own(each) + scale(own(each), between(torch.stack(found[kind]))))
            for (kind, each), own, scale, norm in parts
        }


def between(found: torch.Tensor) -> torch.Tensor:
    """Add up the relations by how much each resembles their mean.  (R, n, outputs) → (n, outputs)."""
    means = found.mean(dim=1)
    shares = cosine_similarity(means, means.mean(dim=0, keepdim=True)).softmax(dim=0)
    return torch.einsum("r,rnd->nd", shares, found)


class RGSN(OverRelations):
    """The relation-based graph similar network."""

    def __init__(self, view: TypedView, classes: int, options: Options) -> None:
        super().__init__(view, options)
        widths = [view.features.shape[1], *[options.hidden] * (options.layers - 1), classes]
        self.norm = nn.LayerNorm(widths[0])
        self.layers = nn.ModuleList(Similar(*pair, len(self.kinds), len(view.edges)) for pair in pairwise(widths))

    @property
    def entry(self) -> Any:
        """The layer that reads the features."""
        return self.layers[0]

    def forward(self, view: TypedView) -> torch.Tensor:
        """View of N nodes → (N, C), zeros for nodes of other types than the target."""
        rows = {kind: self.norm(self.drop_features(each)) for kind, each in self.features(view).items()}
        for number, layer in enumerate(self.layers):
            rows = layer({kind: self.drop(each.relu()) for kind, each in rows.items()} if number else rows, view)
        return self.padded(rows[self.kinds[0]], view)
