"""PyTorch Geometric, imported here and nowhere else: its layers, or one clear error where it is not installed."""

from __future__ import annotations

import warnings

from gamlp.errors import MissingExtraError

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import sets off deprecation warnings of torch that are not ours to mend
        from torch_geometric import nn as layers
        from torch_geometric.utils import scatter, softmax
except ImportError as error:
    raise MissingExtraError("pyg", "Training a message-passing method") from error

__all__ = ["layers", "scatter", "softmax"]
