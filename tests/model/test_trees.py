"""Trees against a walk by hand, and the compiled walk against plain torch."""

import numpy as np
import pytest
import torch

from gamlp.errors import ShapeError
from gamlp.model.cpu import plain_torch
from gamlp.model.trees import Trees


def two_trees():
    """The first tree splits hop 1's only column at 0.5, then hop 0's at −1; the second is one leaf."""
    return Trees(
        hops=2, features=1, depth=2,
        feature=torch.tensor([[1, 0, 0, 0, 0], [0] * 5]),
        threshold=torch.tensor([[0.5, -1.0, 0, 0, 0], [0.0] * 5]),
        left=torch.tensor([[1, 2, 2, 3, 4], [0] * 5]), right=torch.tensor([[4, 3, 2, 3, 4], [0] * 5]),
        value=torch.tensor([[0, 0, 10.0, 20.0, 30.0], [7.0, 0, 0, 0, 0]]),
        target=torch.tensor([1, 0]), start=torch.tensor([1.0, 2.0, 3.0]),
    )  # fmt: skip


ROWS = torch.tensor([[[-1.0], [0.5]], [[0.0], [0.5]], [[-9.0], [0.6]]])  # (3, K+1 = 2, F = 1)


@pytest.mark.parametrize("way", ["compiled", "torch"])
def test_rows_end_in_the_leaves_that_a_walk_by_hand_finds(way):
    if way == "torch":
        with plain_torch():
            logits, shares = two_trees()(ROWS)
    else:
        logits, shares = two_trees()(ROWS)
    assert logits.tolist() == [[8, 12, 3], [8, 22, 3], [8, 32, 3]]  # ≤ goes left; the leaf of tree 2 is its root
    np.testing.assert_allclose(shares, np.full((3, 2), 0.5))  # one split on each hop


def test_no_rows_are_no_logits():
    assert two_trees()(ROWS[:0]).logits.shape == (0, 3)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ShapeError, match=r"\(2, 2\)"):
        two_trees()(torch.zeros(1, 2, 2))
