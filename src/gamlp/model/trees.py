"""Decision trees on the hops of a node, as a network: boosted trees laid out in plain tensors.

    logit_c(x)  =  b_c + Σ_{t of class c} leaf_t(x)          x (K+1)·F: all hops of a node, side by side

A tree is a walk from its root: at a node, left where x[feature] ≤ threshold, right elsewhere, until a leaf; a leaf
leads to itself, so all trees take `depth` steps together. What a hop weighs is its share of the trees' splits, the same
for every node. The trees are learned elsewhere (`methods.boosting`); here they are numbers that any file can hold.

Cost: O(B·T·depth) look-ups for T trees.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gamlp.errors import ShapeError
from gamlp.model.cpu import runs_on
from gamlp.model.cpu.tree_walk import walk
from gamlp.model.network import Output


class Trees(nn.Module):
    """T trees of at most M nodes each; every tree adds to one class.

    feature, left, right (T, M) int64, threshold, value (T, M) float32; target (T,) the class; start (C,) the b_c.
    """

    feature: Tensor
    left: Tensor
    right: Tensor
    threshold: Tensor
    value: Tensor
    target: Tensor
    start: Tensor

    def __init__(self, *, hops: int, features: int, depth: int, **tensors: Tensor) -> None:
        super().__init__()
        self.hops, self.features, self.depth = hops, features, depth
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    @classmethod
    def of(cls, state: Any, tensors: dict[str, Tensor]) -> Trees:
        """Return the trees of which these are the tensors and `state` the other facts."""
        return cls(hops=state["hops"], features=state["features"], depth=state["depth"], **tensors)

    def forward(self, hops: Tensor, labels: Tensor | None = None, stationary: Tensor | None = None) -> Output:
        """Classify.  hops (B, K+1, F) → logits (B, C), the share of each hop in the splits (B, K+1)."""
        if tuple(hops.shape[1:]) != (self.hops, self.features):
            raise ShapeError(
                f"A row of hops is {tuple(hops.shape[1:])}, the trees were grown on {(self.hops, self.features)}.\n"
                "Each row is (hops + 1, features)."
            )
        rows = hops.flatten(1).float()
        return Output(walk(rows, self) if runs_on(rows) else self.walked(rows), self.hop_shares().expand(len(rows), -1))

    def walked(self, rows: Tensor) -> Tensor:
        """Take every row to its leaf in every tree, and add up, a level at a time.  (B, (K+1)·F) → (B, C)."""
        tree = torch.arange(len(self.target), device=rows.device)
        place = torch.zeros(len(rows), len(tree), dtype=torch.long, device=rows.device)
        for _ in range(self.depth):
            below = rows.gather(1, self.feature[tree, place]) <= self.threshold[tree, place]
            place = torch.where(below, self.left[tree, place], self.right[tree, place])
        added = torch.zeros(len(rows), len(self.start), device=rows.device)
        return self.start + added.index_add_(1, self.target, self.value[tree, place])

    @property
    def leaves(self) -> int:
        """How many leaves all trees have: each one more than it has splits."""
        return int((self.left != self.right).sum()) + len(self.target)

    def hop_shares(self) -> Tensor:
        """Return the share of the splits that look at each hop, (K+1,)."""
        splits = self.left != self.right  # a leaf leads to itself, both ways
        counts = torch.bincount(self.feature[splits] // self.features, minlength=self.hops).float()
        return counts / counts.sum().clamp(min=1)
