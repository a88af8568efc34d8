"""AP-GCN: every node halts when the paper's sums say so, and pays for its steps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gamlp.message_passing.adaptive import APGCN
from gamlp.message_passing.views import matrix_of, symmetric, view_of
from gamlp.methods import method_named


def network_on(matrix, features, classes=2, **options):
    view = view_of(features, matrix)
    torch.manual_seed(0)
    return APGCN(view, classes, method_named("ap-gcn").settings_from(options)).eval(), view


def slow(predicted, matrix, weight, bias, most):
    """One node after another, from the equations: logits, K and R."""
    spread = [predicted]
    for _ in range(most):
        spread.append(matrix @ spread[-1])
    logits, steps, rests = [], [], []
    for node in range(len(predicted)):
        halts = [1 / (1 + np.exp(-(spread[k][node] @ weight + bias))) for k in range(1, most + 1)]
        step = next((k for k in range(1, most + 1) if sum(halts[:k]) >= 0.99), most)
        rest = 1 - sum(halts[: step - 1])
        shares = [sum(halts[:k]) for k in range(1, step)] + [rest]
        rows = [p * spread[k][node] + (1 - p) * spread[k - 1][node] for k, p in enumerate(shares, start=1)]
        logits.append(sum(rows) / step), steps.append(step), rests.append(rest)
    return np.array(logits), np.array(steps), np.array(rests)


def test_against_a_loop_over_nodes(planted):
    matrix = symmetric(matrix_of(planted.adjacency))
    network, view = network_on(matrix, planted.features, iterations=6, ponder_cost=0.1)
    torch.nn.init.constant_(network.halt.weight, 30.0)
    torch.nn.init.zeros_(network.halt.bias)
    with torch.no_grad():
        found, predicted = network(view), network.predict(view.features)
    weight, bias = (each.detach().double().numpy() for each in (network.halt.weight[0], network.halt.bias[0]))
    logits, steps, rests = slow(predicted.double().numpy(), matrix.astype(np.float64), weight, bias, 6)
    assert len(set(steps.tolist())) > 2  # nodes stop at different steps
    np.testing.assert_allclose(found.numpy(), logits, atol=1e-5)
    np.testing.assert_allclose(network.penalty.numpy(), 0.1 * (steps + rests), atol=1e-5)


@pytest.mark.parametrize(("most", "steps", "rest"), [(10, 3, 0.2), (2, 2, 0.6), (1, 1, 1.0)])
def test_a_node_alone_by_hand(most, steps, rest):
    """It halts with 0.4, 0.8, 1.2: after three steps with 1 − 0.8 left, or when there are no more. z stays as it is."""
    network, view = network_on(sp.eye_array(1, format="csr", dtype=np.float32), np.ones((1, 3), np.float32),
                               iterations=most, ponder_cost=1.0)  # fmt: skip
    torch.nn.init.zeros_(network.halt.weight)
    torch.nn.init.constant_(network.halt.bias, np.log(0.4 / 0.6))
    found = network(view)
    torch.testing.assert_close(found, network.predict(view.features))
    assert network.penalty.item() == pytest.approx(steps + rest, abs=1e-5)


def test_the_ponder_cost_teaches_to_halt(planted):
    network, view = network_on(symmetric(matrix_of(planted.adjacency)), planted.features)
    network(view)
    network.penalty.sum().backward()
    assert network.halt.bias.grad.item() < 0  # down the gradient the bias rises, and with it the chance to halt
