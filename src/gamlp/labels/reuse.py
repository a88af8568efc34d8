"""Label reuse (Wang et al. 2021): a network that reads labels gets its own predictions where a label is missing.

    Ŷ⁰ᵢ = one-hot(yᵢ) where a label is given,    softmax(f(X, Ŷ⁰))ᵢ elsewhere

There is no threshold, and nothing is trained on a prediction: the network runs again on the fuller input, in training
as in evaluation (`message_passing/networks.py` UniMP).
"""

from __future__ import annotations

import torch
from torch.nn.functional import one_hot


def reuse_labels(given: torch.Tensor, probabilities: torch.Tensor) -> torch.Tensor:
    """Return the label input Ŷ⁰ (n, C): labels that are given (n,), −1 = none, else a row of `probabilities` (n, C).

    >>> reuse_labels(torch.tensor([1, -1]), torch.tensor([[0.9, 0.1], [0.75, 0.25]])).tolist()
    [[0.0, 1.0], [0.75, 0.25]]
    """
    known = one_hot(given.clamp(min=0), probabilities.shape[1]).to(probabilities)
    return torch.where((given >= 0)[:, None], known, probabilities)
