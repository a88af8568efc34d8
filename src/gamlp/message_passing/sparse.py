"""A sparse matrix that is multiplied with in every step: features that are mostly zeros, and the adjacency.

    matrix @ H          M H, differentiable in H: the gradient Mᵀ G reads the entries by columns

The entries are sorted by columns once, not in every backward pass as torch does by itself: on Amazon Computers that
sorting was a fifth of a GCN step and more than half of an APPNP step. Places are int32 where they fit, which the
product reads as they are.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from gamlp.model.dropout import Dropout

Places = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """Where the entries of (n, m) are, by rows and by columns, and the values by rows."""

    rows: Places  # offsets (n+1,), columns (entries,)
    columns: Places  # offsets (m+1,), rows (entries,)
    order: torch.Tensor  # (entries,): values[order] are the values by columns
    values: torch.Tensor
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: Any) -> SparseMatrix:
        """Copy a scipy matrix."""
        rows = matrix.tocsr()
        numbered = sp.csr_array((np.arange(rows.nnz), rows.indices, rows.indptr), shape=rows.shape).tocsc()
        width = np.int32 if max(rows.nnz, *rows.shape) < 2**31 else np.int64
        parts = (rows.indptr, rows.indices, numbered.indptr, numbered.indices)
        starts, columns, column_starts, places = (torch.from_numpy(each.astype(width)) for each in parts)
        values = torch.from_numpy(rows.data.astype(np.float32))
        return cls((starts, columns), (column_starts, places), torch.from_numpy(numbered.data), values, rows.shape)

    def to(self, device: str) -> SparseMatrix:
        """Return the same matrix on `device`."""
        rows, columns = ((pair[0].to(device), pair[1].to(device)) for pair in (self.rows, self.columns))
        return SparseMatrix(rows, columns, self.order.to(device), self.values.to(device), self.shape)

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        """(n, m) @ (m, H) → (n, H)."""
        return Product.apply(dense, self)  # type: ignore[no-any-return, no-untyped-call]

    def dropped(self, share: float, *, training: bool) -> SparseMatrix:
        """Drop a share of the entries while training, and scale up the others."""
        return replace(self, values=drop(self.values, share, training=training))

    def to_dense(self) -> torch.Tensor:
        """Return all of it, (n, m)."""
        return csr_tensor(self.rows, self.values, self.shape).to_dense()


class Product(torch.autograd.Function):
    """H ↦ M H with the gradient Mᵀ G."""

    @staticmethod
    def forward(ctx: Any, dense: torch.Tensor, matrix: SparseMatrix) -> torch.Tensor:
        """(m, H) → (n, H)."""
        ctx.matrix = matrix
        return csr_tensor(matrix.rows, matrix.values, matrix.shape) @ dense

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """(n, H) → (m, H)."""
        matrix: SparseMatrix = ctx.matrix
        transposed = csr_tensor(matrix.columns, matrix.values[matrix.order], matrix.shape[::-1])
        return transposed @ gradient, None


def csr_tensor(places: Places, values: torch.Tensor, shape: Any) -> torch.Tensor:
    """Build a CSR tensor; torch's notice that these are in beta state is not the user's concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(*places, values, size=shape, check_invariants=False)


def drop(values: torch.Tensor, share: float, *, training: bool) -> torch.Tensor:
    """Set a share of the elements to zero and scale up the others; when not training return them as they are."""
    if not training or share == 0:
        return values
    return new_site(share)(values)  # type: ignore[no-any-return]


def new_site(share: float) -> Dropout:
    """Return a dropout that is keyed by torch's own random state."""
    site = Dropout(share)
    site.key = int(torch.randint(2**63 - 1, ()))
    return site
