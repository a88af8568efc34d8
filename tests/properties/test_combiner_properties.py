"""Every combiner on hops of any size and scale, against float64 written from the paper's equations (section 3.2)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gamlp.model.hop_nets import HopRows
from gamlp.model.registry import combiner_named
from gamlp.settings import Settings


def softmax(scores):
    powers = np.exp(np.asarray(scores) - np.max(scores))
    return powers / powers.sum()


def leaky(x):
    return np.where(x > 0, x, 0.2 * x)


def shares(name, built, x, stationary):
    """The weights of one node, from the equations.  x (K+1, F)."""
    count = len(x)
    if name in ("mean", "concat"):
        return np.full(count, 1 / count)
    if name == "last":
        return np.eye(count)[-1]
    if name == "decay":
        powers = 0.7 ** np.arange(count)
        return powers / powers.sum()
    a, b, c = (part.detach().numpy() for part in (built.reference_vector, built.hop_vector, built.bias))
    if name == "recursive":
        scores = [leaky(a @ x[0] + b @ x[0] + c)]
        for hop in range(1, count):
            history = softmax(np.ravel(scores)) @ x[:hop]
            scores.append(leaky(a @ history + b @ x[hop] + c))
        return softmax(np.ravel(scores))
    reference = {"gate": x[0], "smoothing": stationary}[name]
    return softmax(np.ravel([leaky(a @ reference + b @ row + c) for row in x]))


@pytest.mark.parametrize("name", ["last", "mean", "decay", "concat", "gate", "smoothing", "recursive"])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(rows=st.integers(1, 5), hops=st.integers(0, 6), width=st.integers(1, 6), scale=st.sampled_from([0, 1e-3, 1, 50]),
       seed=st.integers(0, 2**31))  # fmt: skip
def test_combiners_follow_their_equations(name, rows, hops, width, scale, seed):
    torch.manual_seed(seed)
    built = combiner_named(name)(
        Settings(combiner=name, hops=hops, decay=0.3), hops=hops + 1, width=width, features=width
    )
    built = built.to(torch.float64).eval()
    for parameter in built.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    x = scale * torch.randn(rows, hops + 1, width, dtype=torch.float64)
    stationary = scale * torch.randn(rows, width, dtype=torch.float64)
    combined, weights = built(HopRows(x[:, -1:] if name == "last" else x), stationary=stationary)
    for node in range(rows):
        expected = shares(name, built, x[node].numpy(), stationary[node].numpy())
        np.testing.assert_allclose(weights[node].detach(), expected, rtol=1e-5, atol=1e-7)
        wanted = x[node].numpy().reshape(-1) if name == "concat" else expected @ x[node].numpy()
        np.testing.assert_allclose(combined[node].detach(), wanted, rtol=1e-5, atol=1e-6 * max(1, scale))


@settings(max_examples=10, deadline=None, derandomize=True)
@given(rows=st.integers(1, 5), hops=st.integers(0, 5), seed=st.integers(0, 2**31))
def test_jk_weighs_with_shares_of_one_that_do_not_depend_on_other_rows(rows, hops, seed):
    torch.manual_seed(seed)
    built = combiner_named("jk")(
        Settings(combiner="jk", hops=hops, hidden=4), hops=hops + 1, width=3, features=3
    ).eval()
    x = torch.randn(rows, hops + 1, 3)
    combined, weights = built(HopRows(x))
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(rows))
    torch.testing.assert_close(combined, (weights[..., None] * x).sum(dim=1))
    torch.testing.assert_close(built(HopRows(x[:1])).rows, combined[:1])
