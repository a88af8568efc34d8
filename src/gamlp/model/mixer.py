"""Mix the hops of several relation subsets into one: NARS, for heterogeneous graphs.

    mixed[l, f] = Σ_s weight_s[l, f] · hops[s, l, f]            S·(K+1)·F numbers to learn, O(B·S·K·F)

The weights start at 1/S, the mean of the subsets. Where the hops of all subsets do not fit in memory, some are `open`
at a time: a batch then holds these alone and, last, the sum over the closed ones, weighted beforehand. Closed subsets
keep their weights (they have no gradient), so the sum stays what it was, and the output is that of all subsets.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class SubsetMixer(nn.Module):
    """One weight for each subset, hop and feature."""

    def __init__(self, *, hops: int, subsets: int, features: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList(torch.full((hops, features), 1 / subsets) for _ in range(subsets))
        self.open: tuple[int, ...] | None = None

    def read(self, subsets: Sequence[int] | None) -> None:
        """Say which subsets the next batches hold; None = all of them."""
        self.open = None if subsets is None else tuple(subsets)

    @property
    def blocks(self) -> int:
        """How many (K+1, F) blocks a row has: all subsets, or the open ones and the sum over the others."""
        return len(self.weights) if self.open is None else len(self.open) + 1

    def forward(self, hops: Tensor) -> Tensor:
        """Return the sum over the subsets.  hops (B, S, K+1, F) → (B, K+1, F)."""
        if self.open is None:
            return self.weighted(hops, range(len(self.weights)))
        return hops[:, -1] + self.weighted(hops, self.open)

    def weighted(self, hops: Tensor, subsets: Sequence[int]) -> Tensor:
        """Return Σ weight_s · hops[:, i] where block i is subset s = subsets[i]."""
        total: Tensor = hops[:, 0] * self.weights[subsets[0]]
        for block, subset in enumerate(subsets[1:], start=1):
            total = torch.addcmul(total, hops[:, block], self.weights[subset])
        return total
