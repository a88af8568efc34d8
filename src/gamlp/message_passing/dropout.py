"""Dropout by random bytes instead of one Bernoulli draw an element: about a quarter of the time on wide dense features.

An element is dropped if its byte is below 256·share; the share is thus rounded to 1/256, and the scale fits it exactly.
"""

from __future__ import annotations

import torch


def drop(values: torch.Tensor, share: float, *, training: bool) -> torch.Tensor:
    """Set a share of the elements to zero and scale up the others; when not training return them as they are."""
    if not training or share == 0:
        return values
    level = min(max(round(256 * share), 1), 255)
    count = values.numel()
    words = torch.empty(-(-count // 8), dtype=torch.int64, device=values.device).random_(-(2**63), None)
    dropped = words.view(torch.uint8)[:count].view(values.shape) < level
    return values.masked_fill(dropped, 0.0).mul_(256 / (256 - level))
