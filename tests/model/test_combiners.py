"""Every combiner against a float64 loop over nodes and hops, written from the equations."""

import numpy as np
import pytest
import torch

from gamlp.errors import ShapeError
from gamlp.model.hop_nets import HopRows, LinearHopRows
from gamlp.model.registry import COMBINERS, combiner_named
from gamlp.settings import Settings

B, K, F = 6, 3, 5


def combiner(name, *, dtype=torch.float64, width=F, **settings):
    settings = Settings(combiner=name, hops=K, hidden=7, jk_layers=3, **settings)
    torch.manual_seed(1)
    built = combiner_named(name)(settings, hops=K + 1, width=width, features=F).to(dtype).eval()
    for parameter in built.parameters():  # biases start at 0, where a forgotten one would not be seen
        parameter.data += 0.1 * torch.randn_like(parameter)
    return built


def numbers(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def softmax(scores):
    powers = np.exp(np.array(scores) - max(scores))
    return powers / powers.sum()


def leaky(x):
    return x if x > 0 else 0.2 * x


def slow_weights(name, built, x, stationary):
    """Weights of one node.  x (K+1, F), stationary (F,)."""
    if name in ("last", "mean", "decay", "concat"):
        return {
            "last": [0, 0, 0, 1],
            "mean": [1 / 4] * 4,
            "concat": [1 / 4] * 4,
            "decay": np.array([1, 0.7, 0.49, 0.343]) / 2.533,  # β = 0.3
        }[name]
    s = np.concatenate([built.reference_vector.detach(), built.hop_vector.detach()])
    c = built.bias.item()
    if name in ("gate", "smoothing", "jk"):
        reference = (
            slow_mlp(built.net, x.reshape(-1)) if name == "jk" else {"gate": x[0], "smoothing": stationary}[name]
        )
        return softmax([leaky(s @ np.concatenate([reference, row]) + c) for row in x])
    scores = [leaky(s @ np.concatenate([x[0], x[0]]) + c)]
    for hop in range(1, len(x)):
        weights = softmax(scores)
        history = sum(weights[i] * x[i] for i in range(hop))
        scores.append(leaky(s @ np.concatenate([history, x[hop]]) + c))
    return softmax(scores)


def slow_mlp(net, x):
    """The JK reference: three layers, evaluation statistics mean 0 and variance 1."""
    weights = [w.detach().numpy() for w in net.weights]
    slope = net.slope.item()

    def norm(layer, v):
        gamma, beta = net.norms[layer].weight.detach().numpy(), net.norms[layer].bias.detach().numpy()
        return gamma * v / np.sqrt(1 + 1e-5) + beta

    def prelu(v):
        return np.where(v > 0, v, slope * v)

    first = norm(0, x @ weights[0])
    one = prelu(first)
    two = prelu(norm(1, (0.5 * one + 0.5 * first) @ weights[1]) + one)
    return prelu(norm(2, two @ weights[2]) + two)


@pytest.mark.parametrize("name", COMBINERS)
def test_the_contract_of_a_combiner(name):
    """What every combiner that is registered keeps: shapes, shares of a whole, and rows that never mix."""
    built, stationary = combiner(name), numbers(B, F, seed=1)
    x = numbers(B, 1 if name == "last" else K + 1, F)
    combined, weights = built(HopRows(x), stationary=stationary)
    assert combined.shape == (B, built.width)
    assert weights.shape == (B, K + 1)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(B, dtype=torch.float64))
    for node in range(B):
        alone = built(HopRows(x[node : node + 1]), stationary=stationary[node : node + 1])
        torch.testing.assert_close(alone.rows[0], combined[node])
        torch.testing.assert_close(alone.weights[0], weights[node])
    assert set(built.reads) <= Settings.model_fields.keys()


@pytest.mark.parametrize("name", ["last", "mean", "decay", "concat", "gate", "smoothing", "recursive", "jk"])
def test_combiner_equals_a_loop_over_nodes(name):
    built = combiner(name, decay=0.3)
    x, stationary = numbers(B, K + 1, F), numbers(B, F, seed=1)
    rows = x[:, -1:] if name == "last" else x
    combined, weights = built(HopRows(rows), stationary=stationary)
    assert weights.shape == (B, K + 1)
    assert combined.shape == (B, built.width)
    for node in range(B):
        expected = slow_weights(name, built, x[node].numpy(), stationary[node].numpy())
        np.testing.assert_allclose(weights[node].detach(), expected, rtol=1e-6)
        if name == "concat":
            np.testing.assert_array_equal(combined[node], x[node].reshape(-1))
        else:
            total = sum(w * row for w, row in zip(expected, x[node].numpy(), strict=True))
            np.testing.assert_allclose(combined[node].detach(), total, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("hop_layers", [0, 1, 2])
def test_two_linear_maps_never_meet_behind_concat(hop_layers):
    """PReLU and dropout behind nets that end in a linear map, nothing behind those that do not."""
    built = combiner("concat", hop_layers=hop_layers, residual=False, dropout=0.5)
    x = numbers(B, K + 1, F)
    rows = x.flatten(1)
    if hop_layers == 2:
        slope = built.slope.item()
        assert slope not in (0, 1)
        rows = torch.where(rows > 0, rows, slope * rows)
        assert (built.train()(HopRows(x)).rows == 0).float().mean() > 0.3
    torch.testing.assert_close(built.eval()(HopRows(x)).rows, rows)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", COMBINERS)
def test_folding_the_second_layer_changes_nothing(name, dtype):
    built = combiner(name, dtype=dtype)
    hops = 1 if name == "last" else K + 1
    y, weight, bias = numbers(B, hops, 4), numbers(hops, 4, F, seed=2), numbers(hops, F, seed=3)
    stationary = numbers(B, F, seed=4).to(dtype)
    plain = HopRows((torch.einsum("blh,lhf->blf", y, weight) + bias).to(dtype))
    folded = LinearHopRows(y.to(dtype), weight.to(dtype), bias.to(dtype))
    expected, found = built(plain, stationary=stationary), built(folded, stationary=stationary)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(found.rows, expected.rows, **tolerance)
    torch.testing.assert_close(found.weights, expected.weights, **tolerance)


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("relu", lambda x: np.maximum(x, 0)),
        ("tanh", np.tanh),
        ("identity", lambda x: x),
    ],
)
def test_activations_of_the_scores(activation, function):
    built = combiner("gate", attention_activation=activation)
    x = numbers(1, K + 1, F)
    a, b = built.reference_vector.detach().numpy(), built.hop_vector.detach().numpy()
    scores = [function(a @ x[0, 0].numpy() + b @ row.numpy() + built.bias.item()) for row in x[0]]
    np.testing.assert_allclose(built(HopRows(x)).weights[0].detach(), softmax(scores), rtol=1e-6)


def test_attention_dropout_falls_on_the_weights_and_is_not_reported():
    built = combiner("gate", attention_dropout=0.5).train()
    built.dropout.key = 12345
    x = numbers(200, K + 1, F)
    combined, weights = built(HopRows(x))
    torch.testing.assert_close(weights.sum(1), torch.ones(200, dtype=torch.float64))
    mask = built.dropout.mask((200, K + 1), x)
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    torch.testing.assert_close(combined, torch.einsum("bl,blf->bf", weights * mask, x))


def test_decay_zero_is_the_mean_and_one_the_first_hop():
    x = HopRows(numbers(1, K + 1, F))
    np.testing.assert_allclose(combiner("decay", decay=0.0)(x).weights[0], [0.25] * 4)
    np.testing.assert_allclose(combiner("decay", decay=1.0)(x).weights[0], [1, 0, 0, 0])


def test_smoothing_without_a_stationary_state_says_what_is_missing():
    with pytest.raises(ShapeError, match="stationary"):
        combiner("smoothing")(HopRows(numbers(B, K + 1, F)))


@pytest.mark.parametrize("reference", ["steps", "features", "none"])
def test_the_references_of_jk_by_a_loop(reference):
    built = combiner("jk", jk_reference=reference)
    x = numbers(B, K + 1, F)
    a, b, c = built.reference_vector.detach().numpy(), built.hop_vector.detach().numpy(), built.bias.item()
    for node, found in enumerate(built(HopRows(x)).weights.detach().numpy()):
        rows = x[node].numpy()
        against = {
            "steps": lambda rows: a @ slow_mlp(built.net, rows[1:].reshape(-1)),
            "features": lambda rows: a @ rows[0],
            "none": lambda _: 0.0,
        }[reference](rows)
        np.testing.assert_allclose(found, softmax([leaky(against + b @ row + c) for row in rows]), rtol=1e-6)


def test_noise_is_the_nodes_own_and_tells_nothing():
    built = combiner("jk", jk_reference="noise")
    x = numbers(B, K + 1, F)
    alone, together = built(HopRows(x[2:3])).weights, built(HopRows(x)).weights
    torch.testing.assert_close(alone[0], together[2])
    near = built.reference_products(HopRows(x + 1e-3)) - built.reference_products(HopRows(x))
    assert near.abs().max() > 0.1  # rows that are nearly alike have nothing in common


def test_the_paper_leaves_hop_0_out_of_the_net():
    assert combiner("jk", jk_reference="steps").net.weights[0].shape == (K * F, 7)
    assert combiner("jk").net.weights[0].shape == ((K + 1) * F, 7)
