"""Fused operations for training on a CPU. Plain torch is their reference, and what runs everywhere else.

The switch is `runs_on`, and nothing else decides: float32 on the CPU takes the operations of `fused`; any other tensor
(a GPU's, or float64) takes the plain torch lines beside each call in `layers`, `dropout` and `hop_nets`. So does
everything within `plain_torch`: what is exported is made of torch's operations alone.

    fused         the operations with their gradients, as autograd functions
    kernels       their loops over rows, compiled by numba; compared with plain torch in the tests
    products      matrix products, by the library that uses all of the processor
    buffer_pool   memory for their results, used again from step to step
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_plain: ContextVar[bool] = ContextVar("plain torch only", default=False)


def runs_on(x: Tensor) -> bool:
    """Say whether the fused operations are for this tensor."""
    return not _plain.get() and x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() > 0


@contextmanager
def plain_torch() -> Iterator[None]:
    """Leave the fused operations out while the block runs."""
    before = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(before)
