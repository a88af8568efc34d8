"""Scale the features; where they are mostly zeros keep them sparse.

A bag of words has one entry in a hundred: X·W over the entries alone takes 1/30 of the dense product's time, and
dropout falls on the entries alone. The gradient Xᵀ·G needs the entries by columns: they are sorted once, not in every
step (that sorting was nearly half of a GCN step on Coauthor CS).

Dropout is by random bytes instead of one Bernoulli draw an element: about a quarter of the time on wide dense features.
An element is dropped if its byte is below 256·share; the share is thus rounded to 1/256, and the scale fits it exactly.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from gamlp.propagate.scaling import Scaling, row_sizes
from gamlp.storage.files import Array

SPARSE_BELOW = 0.1  # share of entries that are not zero


def scaled(features: Array, scaling: Scaling) -> Any:
    """Return the scaled (N, F) features: a scipy CSR matrix if mostly zeros, else a dense float32 array."""
    if scaling.mean is not None or np.count_nonzero(features) >= SPARSE_BELOW * features.size:
        return np.ascontiguousarray(scaling(features), dtype=np.float32)
    rows = sp.csr_array(features.astype(np.float32))
    sizes = row_sizes(features, scaling.kind)
    return (sp.diags_array(1 / sizes) @ rows).tocsr() if len(sizes) else rows


@dataclass(frozen=True, eq=False)
class Entries:
    """Sparse features (n, F): where their entries are, by rows and by columns, and the values by rows."""

    rows: tuple[torch.Tensor, torch.Tensor]  # offsets (n+1,), columns (entries,)
    columns: tuple[torch.Tensor, torch.Tensor]  # offsets (F+1,), rows (entries,)
    order: torch.Tensor  # (entries,): values[order] are the values by columns
    values: torch.Tensor
    shape: tuple[int, int]

    def to(self, device: str) -> Entries:
        """Return the same entries on `device`."""
        rows, columns = ((pair[0].to(device), pair[1].to(device)) for pair in (self.rows, self.columns))
        return Entries(rows, columns, self.order.to(device), self.values.to(device), self.shape)


Features = torch.Tensor | Entries


def features_of(matrix: Any) -> Features:
    """Return scaled features as a network reads them."""
    if not sp.issparse(matrix):
        return torch.from_numpy(np.ascontiguousarray(matrix, dtype=np.float32))
    rows = matrix.tocsr()
    numbered = sp.csr_array((np.arange(rows.nnz), rows.indices, rows.indptr), shape=rows.shape).tocsc()
    parts = (rows.indptr, rows.indices, numbered.indptr, numbered.indices, numbered.data)
    starts, columns, column_starts, places, order = (torch.from_numpy(each.astype(np.int64)) for each in parts)
    values = torch.from_numpy(rows.data.astype(np.float32))
    return Entries((starts, columns), (column_starts, places), order, values, rows.shape)


def csr_tensor(offsets: torch.Tensor, places: torch.Tensor, values: torch.Tensor, *, size: Any) -> torch.Tensor:
    """Build a CSR tensor; torch's notice that these are in beta state is not the user's concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(offsets, places, values, size=size, check_invariants=False)


class InputLinear(torch.nn.Module):
    """X ↦ dropout(X)·W (+ b): the layer that reads the features, dense or sparse."""

    def __init__(self, inputs: int, outputs: int, *, dropout: float, bias: bool = True) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(inputs, outputs))
        self.bias = torch.nn.Parameter(torch.zeros(outputs)) if bias else None
        self.dropout = dropout
        torch.nn.init.xavier_uniform_(self.weight)

    def forward(self, features: Features) -> torch.Tensor:
        """(n, F) → (n, outputs)."""
        if isinstance(features, Entries):
            values = drop(features.values, self.dropout, training=self.training)
            product: torch.Tensor = SparseProduct.apply(self.weight, replace(features, values=values))  # type: ignore
        else:
            product = drop(features, self.dropout, training=self.training) @ self.weight
        return product if self.bias is None else product + self.bias


class SparseProduct(torch.autograd.Function):
    """W ↦ X·W with the gradient Xᵀ·G."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, features: Entries) -> torch.Tensor:
        """(F, outputs) → (n, outputs)."""
        ctx.features = features
        return csr_tensor(*features.rows, features.values, size=features.shape) @ weight

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """(n, outputs) → (F, outputs)."""
        features: Entries = ctx.features
        transposed = csr_tensor(*features.columns, features.values[features.order], size=features.shape[::-1])
        return transposed @ gradient, None


def drop(values: torch.Tensor, share: float, *, training: bool) -> torch.Tensor:
    """Set a share of the elements to zero and scale up the others; when not training return them as they are."""
    if not training or share == 0:
        return values
    level = min(max(round(256 * share), 1), 255)
    count = values.numel()
    words = torch.empty(-(-count // 8), dtype=torch.int64, device=values.device).random_(-(2**63), None)
    dropped = words.view(torch.uint8)[:count].view(values.shape) < level
    return values.masked_fill(dropped, 0.0).mul_(256 / (256 - level))
