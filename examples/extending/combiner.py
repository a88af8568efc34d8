"""A combiner of one's own: the mean of the last two hops.

Register it by one line in `gamlp/model/registry.py`:

    "last-two": "gamlp.model.last_two:LastTwo",

and use it: gamlp train debian --method gamlp --set combiner=last-two
"""

from __future__ import annotations

import torch

from gamlp.model.combiners import FixedCombiner
from gamlp.settings import Settings


class LastTwo(FixedCombiner):
    """z = (hᴷ⁻¹ + hᴷ) / 2."""

    def fixed_weights(self, settings: Settings) -> torch.Tensor:
        """Return 0, …, 0, ½, ½."""
        weights = torch.zeros(self.hops)
        weights[-2:] = 1 / len(weights[-2:])
        return weights
