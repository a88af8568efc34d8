"""Mix the hops of several relation subsets into one: NARS, for heterogeneous graphs.

    mixed[l, f] = Σ_s weight[l, s, f] · hops[s, l, f]            (K+1)·S·F numbers to learn, O(B·S·K·F)

The weights start at 1/S, the mean of the subsets.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SubsetMixer(nn.Module):
    """One weight for each hop, subset and feature."""

    def __init__(self, *, hops: int, subsets: int, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((hops, subsets, features), 1 / subsets))

    def forward(self, hops: Tensor) -> Tensor:
        """Return the sum over the subsets.  hops (B, S, K+1, F) → (B, K+1, F)."""
        return torch.einsum("bslf,lsf->blf", hops, self.weight)
