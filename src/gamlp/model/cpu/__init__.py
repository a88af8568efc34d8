"""Fused operations for training on a CPU. Plain torch is their reference, and what runs everywhere else.

The switch is `runs_on`, and nothing else decides: float32 on the CPU takes the operations of `fused`; any other tensor
(a GPU's, or float64) takes the plain torch lines beside each call in `layers`, `dropout` and `hop_nets`.

    fused         the operations with their gradients, as autograd functions
    kernels       their loops over rows, compiled by numba; compared with plain torch in the tests
    buffer_pool   memory for their results, used again from step to step
"""

from __future__ import annotations

import torch
from torch import Tensor


def runs_on(x: Tensor) -> bool:
    """Say whether the fused operations are for this tensor."""
    return x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() > 0
