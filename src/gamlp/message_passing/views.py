"""The whole graph or a part of it, as a network sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gamlp.message_passing.features import Features, csr_tensor, features_of
from gamlp.message_passing.matrices import Matrix


@dataclass(frozen=True, eq=False)
class View:
    """n nodes with their normalised adjacency; holds no label but the ones that are input.

    features (n, F) dense or sparse; adjacency (n, n) CSR, row i weighs what node i receives; edges (2, E) the same
    entries as (source, target); given (n,) the labels that are input, −1 = none.
    """

    features: Features
    adjacency: torch.Tensor
    edges: torch.Tensor
    given: torch.Tensor

    def to(self, device: str) -> View:
        """Return the view on `device`."""
        features, adjacency = self.features.to(device), self.adjacency.to(device)
        return View(features, adjacency, self.edges.to(device), self.given.to(device))

    def with_given(self, given: torch.Tensor) -> View:
        """Return the view with other labels as input."""
        return replace(self, given=given.to(self.given.device))


@dataclass(frozen=True)
class Sizes:
    """F features in, C classes out."""

    features: int
    classes: int


def view_of(features: Any, matrix: Matrix) -> View:
    """Make a view from scaled features and a normalised matrix; no label is given."""
    offsets = torch.from_numpy(matrix.indptr.astype(np.int64))
    sources = torch.from_numpy(matrix.indices.astype(np.int64))
    nodes = matrix.shape[0]
    targets = torch.repeat_interleave(torch.arange(nodes), offsets.diff())
    adjacency = csr_tensor(offsets, sources, torch.from_numpy(matrix.data), size=(nodes, nodes))
    return View(features_of(features), adjacency, torch.stack([sources, targets]), torch.full((nodes,), -1))
