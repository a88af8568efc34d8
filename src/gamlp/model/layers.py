"""What stands between two matrix products, in one call: bias, batch norm, a skip, PReLU, dropout.

    activate(x) = dropout(PReLU(norm(x + bias) + skip))         every part but x can be left out; x (B, G·H)

One pass over memory instead of five is what makes a training step on a CPU quick; elsewhere these are plain torch
operations. PReLU has one slope for each of G equal groups of columns, so that the nets of all hops are one call.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gamlp.model.cpu import fused, runs_on
from gamlp.model.dropout import Dropout


class BatchNorm(nn.Module):
    """Batch norm over rows: statistics of the batch in training, running ones (momentum 0.1) in evaluation."""

    momentum = 0.1
    epsilon = 1e-5
    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(columns))
        self.bias = nn.Parameter(torch.zeros(columns))
        self.register_buffer("running_mean", torch.zeros(columns))
        self.register_buffer("running_variance", torch.ones(columns))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the columns of x (B, H)."""
        if self.training:
            variance, mean = torch.var_mean(x, dim=0, correction=0)
            self.track(mean.detach(), variance.detach(), rows=len(x))
        else:
            variance, mean = self.running_variance, self.running_mean
        return (x - mean) * (self.weight * torch.rsqrt(variance + self.epsilon)) + self.bias

    def track(self, mean: Tensor, variance: Tensor, *, rows: int) -> None:
        """Move the running statistics towards a batch's; the running variance is the unbiased one."""
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_variance.lerp_(variance * (rows / max(rows - 1, 1)), self.momentum)


def activate(
    x: Tensor,
    *,
    bias: Tensor | None = None,
    norm: BatchNorm | None = None,
    skip: Tensor | None = None,
    slope: Tensor | None = None,
    dropout: Dropout | None = None,
) -> Tensor:
    """Return dropout(PReLU(norm(x + bias) + skip)).  x, skip (B, G·H), bias (G·H,), slope (G,) → (B, G·H)."""
    if runs_on(x):
        return fused.activate(x, bias, skip, slope, norm, dropout, *(() if norm is None else (norm.weight, norm.bias)))
    if bias is not None:
        x = x + bias
    if norm is not None:
        x = norm(x)
    if skip is not None:
        x = x + skip
    if slope is not None:
        grouped = x.unflatten(1, (len(slope), -1))  # type: ignore[no-untyped-call]
        x = torch.where(grouped > 0, grouped, slope[:, None] * grouped).flatten(1)
    return x if dropout is None else dropout(x)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Return x W.  x (B, F), weight (F, H) → (B, H)."""
    return fused.product(x, weight) if runs_on(x) else x @ weight


def new_weight(*shape: int, gain: float = 2**0.5) -> nn.Parameter:
    """Return weights (…, inputs, outputs), drawn uniformly by Glorot's rule; the gain is the one for ReLU."""
    *_, inputs, outputs = shape
    bound = gain * (6 / (inputs + outputs)) ** 0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def new_slope(groups: int = 1) -> nn.Parameter:
    """Return PReLU slopes, 1/4 at the start."""
    return nn.Parameter(torch.full((groups,), 0.25))
