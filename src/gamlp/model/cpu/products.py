"""Matrix products of float32, by the library that uses all of the processor.

torch multiplies by MKL, which keeps to half of the vectors of AMD's processors with AVX-512; oneDNN, which torch brings
along, does not, and takes half of the time there (`benchmarks/products.py`). On Intel's the two are alike. A product of
oneDNN cannot be written into memory that is there, and fresh memory is slow: so large ones are made a piece of rows at
a time, each small enough for a cache, and copied to where they belong.

By oneDNN the bits of a row of x W depend neither on how many rows are beside it, as long as there is one, nor on the
number of threads.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from gamlp.model.cpu.buffer_pool import empty_tensor
from gamlp.propagate.kernels import cpu_features, cpu_name
from gamlp.storage import memory
from gamlp.storage.threads import ranges

PIECE = memory.LARGE // 4 - 2**12  # numbers of a product made at a time, so that it is no mapping of its own
COLUMNS = 512  # of a piece, at most
SUMMED = 1024  # rows that a gradient adds up at a time: they are copied first, transposed


@cache
def by_onednn() -> bool:
    """Say whether oneDNN is the quicker one here, and can be called."""
    return cpu_name().startswith("znver") and "avx512f" in cpu_features() and has_onednn()


def has_onednn() -> bool:
    """Say whether this torch has its product."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(available) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def multiply(x: Tensor, weight: Tensor, out: Tensor | None = None) -> Tensor:
    """Return x W, in `out` if it is given.  x (B, F), weight (F, H) → (B, H)."""
    rows, columns = len(x), weight.shape[1]
    if by_onednn() and out is None and rows * columns <= PIECE:
        return _onednn(x, _dense(weight.T))
    if out is None:
        out = empty_tensor((rows, columns))
    if not by_onednn():
        return torch.mm(x, weight, out=out)
    step = PIECE // min(columns, COLUMNS)
    for left, right in ranges(columns, COLUMNS):
        weights = _dense(weight.T[left:right])
        for first, last in ranges(rows, step):
            out[first:last, left:right] = _onednn(x[first:last], weights)
    return out


def multiply_transposed(x: Tensor, grad: Tensor) -> Tensor:
    """Return xᵀ·grad.  x (B, F), grad (B, H) → (F, H)."""
    if not by_onednn():
        return x.T @ grad
    if grad.shape[1] < x.shape[1]:  # oneDNN copies what stands on the left: the narrower one
        return multiply_transposed(grad, x).T
    total = _onednn(x[:SUMMED].T, _dense(grad[:SUMMED].T))
    for first, last in ranges(len(x), SUMMED)[1:]:
        total += _onednn(x[first:last].T, _dense(grad[first:last].T))
    return total


def _dense(weight: Tensor) -> Tensor:
    """Return the same without gaps, by rows or columns: for others oneDNN has nothing but a slow loop."""
    return weight if weight.is_contiguous() or weight.T.is_contiguous() else weight.T.contiguous().T


def _onednn(x: Tensor, weight: Tensor) -> Tensor:
    """Return x Wᵀ."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")  # type: ignore[no-any-return]
