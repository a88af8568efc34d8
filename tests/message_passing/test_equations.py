"""Every network on the whole graph, against its equation in float64: dense matrices, and node by node attention."""

from __future__ import annotations

from pkgutil import resolve_name

import pytest
import torch

from gamlp.message_passing.features import InputLinear
from gamlp.message_passing.views import matrix_of, view_of
from gamlp.methods import BASES, method_named

C = 3


def doubled(module):
    """Return W (inputs, outputs), or the weights of a norm, and b of a module in float64."""
    weight, bias = (0 if each is None else each.detach().double() for each in (module.weight, module.bias))
    return weight if isinstance(module, InputLinear | torch.nn.LayerNorm) else weight.T, bias


def affine(x, module):
    weight, bias = doubled(module)
    return x @ weight + bias


def convolutions(network, x, matrix):
    """Return H¹, H² … of Â H W + b, before anything else is done to them, as a function of what is done."""
    first, *more = network.convolutions
    yield matrix @ (x @ doubled(network.entry)[0]) + first.bias.detach().double()
    for convolve in more:
        yield lambda h, convolve=convolve: matrix @ affine(h, convolve.lin) + convolve.bias.detach().double()


def gcn(network, x, matrix):
    hidden, *more = convolutions(network, x, matrix)
    for convolve in more:
        hidden = convolve(hidden.relu())
    return hidden


def jknet(network, x, matrix):
    first, *more = convolutions(network, x, matrix)
    outputs = [first.relu()]
    for convolve in more:
        outputs.append(convolve(outputs[-1]).relu())
    return matrix @ affine(torch.cat(outputs, dim=1), network.last.lin) + network.last.bias.detach().double()


def resgcn(network, x, matrix):
    first, *more = convolutions(network, x, matrix)
    hidden = first.relu()
    for convolve in more:
        hidden = hidden + convolve(hidden).relu()
    return matrix @ affine(hidden, network.last.lin) + network.last.bias.detach().double()


def graphsage(network, x, matrix):
    near, own = affine(x, network.entry).chunk(2, dim=1)
    hidden = matrix @ near + own
    for of_near, of_own in zip(network.near, network.own, strict=True):
        hidden = hidden.relu()
        hidden = affine(matrix @ hidden, of_near) + affine(hidden, of_own)
    return hidden


def predicted(network, x):
    hidden = affine(x, network.predict.entry)
    for linear in network.predict.linears:
        hidden = affine(hidden.relu(), linear)
    return hidden


def appnp(network, x, matrix):
    start = spread = predicted(network, x)
    for _ in range(network.options.iterations):
        spread = (1 - network.options.teleport) * matrix @ spread + network.options.teleport * start
    return spread


def dagnn(network, x, matrix):
    hops = [predicted(network, x)]
    for _ in range(network.options.iterations):
        hops.append(matrix @ hops[-1])
    return sum(affine(hop, network.score).sigmoid() * hop for hop in hops)


def gat(network, x, matrix):
    hidden = x
    for number, layer in enumerate(network.attentions):
        linear = layer.lin if number else network.entry
        a, b = (vector.detach().double()[0] for vector in (layer.att_src, layer.att_dst))  # (heads, out)
        through = torch.nn.functional.elu(hidden) @ doubled(linear)[0] if number else affine(hidden, linear)
        through = through.view(len(x), *a.shape)
        rows = []
        for node in range(len(x)):
            near = matrix[node].nonzero().ravel()
            scores = (through[near] * a).sum(-1) + (through[node] * b).sum(-1)
            shares = torch.nn.functional.leaky_relu(scores, 0.2).softmax(dim=0)
            rows.append((shares[..., None] * through[near]).sum(0).ravel())
        hidden = torch.stack(rows) + layer.bias.detach().double()
    return hidden.view(len(x), *a.shape).mean(dim=1)


def unimp(network, x, matrix):
    hidden = affine(x, network.entry)  # the four maps of the first layer side by side
    for number, layer in enumerate(network.attentions):
        last = number == len(network.attentions) - 1
        maps = (layer.lin_query, layer.lin_key, layer.lin_value, layer.lin_skip)
        *mapped, own = (affine(hidden, each) if number else hidden[:, each.range] for each in maps)
        query, key, value = (each.reshape(len(x), layer.heads, -1) for each in mapped)
        rows = []
        for node in range(len(x)):
            near = matrix[node].nonzero().ravel()
            shares = ((query[node] * key[near]).sum(-1) / query.shape[-1] ** 0.5).softmax(dim=0)
            found = (shares[..., None] * value[near]).sum(0)
            rows.append(found.mean(0) if last else found.ravel())
        received = torch.stack(rows)
        gate = affine(torch.cat([received, own, received - own], dim=1), layer.lin_beta).sigmoid()
        hidden = gate * own + (1 - gate) * received
        if not last:
            hidden = normed(hidden, network.norms[number]).relu()
    return hidden


def normed(x, norm):
    """Layer norm: every row to mean 0 and variance 1, then scaled and moved."""
    weight, bias = doubled(norm)
    return (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + norm.eps).sqrt() * weight + bias


def deepergcn(network, x, matrix):
    def aggregated(given, layer):
        messages, rows = given.relu() + 1e-7, []
        for node in range(len(x)):
            near = messages[matrix[node].nonzero().ravel()]
            rows.append(((0.1 * near).softmax(dim=0) * near).sum(0))
        return affine(torch.stack(rows) + given, layer.mlp[0])

    def activated(hidden, norm):
        mean, variance, weight, bias = (
            each.detach().double() for each in (norm.running_mean, norm.running_var, norm.weight, norm.bias)
        )
        return ((hidden - mean) / (variance + norm.eps).sqrt() * weight + bias).relu()

    norms = [each.module for each in network.norms]
    hidden = aggregated(affine(x, network.entry), network.aggregations[0])
    for norm, layer in zip(norms, network.aggregations[1:], strict=False):
        hidden = hidden + aggregated(activated(hidden, norm), layer)
    return affine(activated(hidden, norms[-1]), network.last)


EQUATIONS = [gcn, jknet, resgcn, graphsage, appnp, dagnn, gat, unimp, deepergcn]
OWN = {"gat": {"output_heads": 3}}


@pytest.mark.parametrize("equation", EQUATIONS, ids=lambda equation: equation.__name__)
def test_a_network_is_its_equation(planted, equation):
    name = equation.__name__
    kind = resolve_name(f"gamlp.message_passing.{BASES[name].network}")
    matrix = kind.normalize(matrix_of(planted.adjacency))
    view = view_of(planted.features, matrix)
    torch.manual_seed(0)
    network = kind(view, C, method_named(name).settings_from({"layers": 3, "hidden": 4, **OWN.get(name, {})})).eval()
    for each in (*network.parameters(), *network.buffers()):  # biases begin as 0, running variances as 1
        if each.is_floating_point():
            each.data += 0.3 * torch.rand(each.shape, generator=torch.Generator().manual_seed(each.numel()))
    x = torch.from_numpy(planted.features).double()
    if name == "unimp":  # some nodes have a label, which is added to the features
        labelled = torch.arange(len(x)) < 16
        view = view.with_given(torch.where(labelled, torch.from_numpy(planted.labels), -1))
        x = torch.where(labelled[:, None], x + network.label.detach().double()[view.given], x)
    with torch.no_grad():
        found = network(view)
        expected = equation(network, x, torch.from_numpy(matrix.toarray()).double())
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
    assert found.std() > 1e-3
