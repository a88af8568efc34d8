"""The label branch: what the propagated labels of a node add to its logits.

C → hidden → … → C:   linear with bias, batch norm, PReLU (one slope), dropout; the last layer is linear alone.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from gamlp.model.dropout import Dropout
from gamlp.model.layers import BatchNorm, activate, new_bias, new_slope, new_weight, product
from gamlp.settings import Settings


class LabelBranch(nn.Module):
    """MLP of the propagated labels."""

    def __init__(self, settings: Settings, *, classes: int) -> None:
        super().__init__()
        between = settings.label_layers - 1
        widths = [classes] + [settings.hidden] * between + [classes]
        self.weights = nn.ParameterList(new_weight(*pair) for pair in pairwise(widths))
        self.biases = nn.ParameterList(new_bias(width) for width in widths[1:])
        self.norms = nn.ModuleList(BatchNorm(settings.hidden) for _ in range(between if settings.batch_norm else 0))
        self.dropouts = nn.ModuleList(Dropout(settings.dropout) for _ in range(between))
        self.slope = new_slope() if between else None

    def forward(self, labels: Tensor) -> Tensor:
        """Return what is added to the logits.  labels (B, C) → (B, C)."""
        x = labels
        for layer, dropout in enumerate(self.dropouts):
            norm = self.norms[layer] if len(self.norms) else None
            assert isinstance(dropout, Dropout)
            assert norm is None or isinstance(norm, BatchNorm)
            x = product(x, self.weights[layer])
            x = activate(x, bias=self.biases[layer], norm=norm, slope=self.slope, dropout=dropout)
        return activate(product(x, self.weights[-1]), bias=self.biases[-1])
