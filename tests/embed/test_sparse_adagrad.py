"""Updates of rows against a float64 loop and against torch's own Adagrad."""

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.embed.adagrad import update_rows


def test_a_row_by_hand():
    """Let g = (3, 4) of width 2: v = 25/2, x moves by 0.1·g/√12.5; a second step of the same g has v = 25."""
    table, sums = np.zeros((2, 2), np.float32), np.zeros(2, np.float32)
    gradient = np.array([[3, 4]], np.float32)
    for v in (12.5, 25):
        before = table[1].copy()
        update_rows(table, sums, [np.array([1])], [gradient], rate=0.1, regularization=0)
        assert_allclose(table[1] - before, -0.1 * gradient[0] / v**0.5, rtol=1e-6)
        assert sums[1] == v
    assert_array_equal(table[0], 0)


def test_width_one_is_torch_adagrad():
    """With one column, one number a row is Adagrad itself."""
    random = np.random.default_rng(0)
    table, sums = random.normal(size=(5, 1)).astype(np.float32), np.zeros(5, np.float32)
    weight = torch.from_numpy(table.copy()).requires_grad_()
    optimizer = torch.optim.Adagrad([weight], lr=0.1)
    for _ in range(4):
        ids, gradients = random.integers(0, 5, 7), random.normal(size=(7, 1)).astype(np.float32)
        weight.grad = torch.zeros(5, 1).index_add_(0, torch.from_numpy(ids), torch.from_numpy(gradients))
        optimizer.step()
        update_rows(table, sums, [ids], [gradients], rate=0.1, regularization=0)
    assert_allclose(table, weight.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_repeated_rows_in_three_lists_against_a_loop():
    random = np.random.default_rng(1)
    start, sums = random.normal(size=(9, 6)).astype(np.float32), random.random(9).astype(np.float32)
    ids = [random.integers(0, 7, size) for size in (4, 4, 10)]
    gradients = [random.normal(size=(len(part), 6)).astype(np.float32) for part in ids]
    expected, totals = start.astype(np.float64), sums.astype(np.float64)
    for row in range(9):
        total = sum(
            gradient[part == row].astype(np.float64).sum(0) for part, gradient in zip(ids, gradients, strict=True)
        )
        times = (ids[0] == row).sum() + (ids[1] == row).sum()  # the drawn ones are not regularized
        total = total + times * 3 * 0.01 * expected[row] * np.abs(expected[row])
        if row in np.concatenate(ids):
            totals[row] += (total**2).mean()
            expected[row] -= 0.1 * total / totals[row] ** 0.5
    table = start.copy()
    update_rows(table, sums, ids, gradients, rate=0.1, regularization=0.01)
    assert_allclose(table, expected, rtol=1e-5, atol=1e-6)
    assert_allclose(sums, totals, rtol=1e-5)
    untouched = np.setdiff1d(np.arange(9), np.concatenate(ids))
    assert len(untouched) >= 2
    assert_array_equal(table[untouched], start[untouched])
