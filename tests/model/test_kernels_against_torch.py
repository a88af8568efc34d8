import numpy as np
import pytest
import torch

from gamlp.model import layers
from gamlp.model.cpu import fused
from gamlp.model.dropout import Dropout, keystream
from gamlp.model.hop_nets import LinearHopRows


def fresh(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def parts(columns, groups, *, norm, skip, bias, slope, rate, rows):
    batch_norm = layers.BatchNorm(columns) if norm else None
    if batch_norm is not None:
        batch_norm.weight.data = 1 + 0.3 * fresh(columns, 1)
        batch_norm.bias.data = fresh(columns, 2)
    dropout = Dropout(rate)
    dropout.key = 0x0123456789ABCDEF
    return {
        "bias": fresh(columns, 3).requires_grad_() if bias else None,
        "norm": batch_norm,
        "skip": fresh((rows, columns), 4).requires_grad_() if skip else None,
        "slope": fresh(groups, 5).requires_grad_() if slope else None,
        "dropout": dropout,
    }


def outcome(x, given, dtype):
    """The result, gradients and running statistics, computed in `dtype`: plain torch unless float32."""
    x = x.detach().to(dtype).requires_grad_()
    own = {k: v.detach().to(dtype).requires_grad_() if isinstance(v, torch.Tensor) else v for k, v in given.items()}
    norm = given["norm"]
    if norm is not None:
        norm.zero_grad()
        norm.to(dtype)
        norm.running_mean.zero_()
        norm.running_variance.fill_(1)
    out = layers.activate(x, **own)
    out.backward(fresh(out.shape, 9).to(dtype))
    leaves = [x, *(v for v in own.values() if isinstance(v, torch.Tensor))]
    results = [out, *(leaf.grad for leaf in leaves)]
    if norm is not None:
        results += [norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_variance]
    return [r.detach().double().clone() for r in results]


CASES = {
    "hop nets": {"norm": True, "skip": False, "bias": True, "slope": True, "rate": 0.5},
    "head": {"norm": True, "skip": True, "bias": False, "slope": True, "rate": 0.2},
    "logits": {"norm": True, "skip": False, "bias": False, "slope": False, "rate": 0},
    "no norm": {"norm": False, "skip": True, "bias": True, "slope": True, "rate": 0.5},
    "dropout alone": {"norm": False, "skip": False, "bias": False, "slope": False, "rate": 0.3},
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("rows", "columns"), [(7, 5 * 3), (700, 3 * 21)])
def test_fused_equals_plain_torch_in_float64(case, rows, columns, training):
    given = parts(columns, 3, rows=rows, **CASES[case])
    for module in (given["norm"], given["dropout"]):
        if module is not None:
            module.train(training)
    x = 3 + 2 * fresh((rows, columns), 0)
    ours, plain = outcome(x, given, torch.float32), outcome(x, given, torch.float64)
    assert len(ours) == len(plain) >= 2
    for a, b in zip(ours, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-4)


def test_batch_norm_equals_torch_own():
    ours, theirs = layers.BatchNorm(4), torch.nn.BatchNorm1d(4)
    for seed in range(3):
        x = 5 + 2 * fresh((30, 4), seed)
        torch.testing.assert_close(layers.activate(x, norm=ours), theirs(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_variance, theirs.running_var)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(layers.activate(x, norm=ours), theirs(x))


def test_large_offset_does_not_destroy_the_variance():
    x = 10_000 + fresh((1000, 3), 0)
    expected = (x.double() - x.double().mean(0)) / x.double().var(0, correction=0).sqrt()
    torch.testing.assert_close(layers.activate(x, norm=layers.BatchNorm(3)).double(), expected, rtol=1e-2, atol=1e-2)


def test_the_two_generators_agree():
    key = 0xFEDCBA9876543210
    torch.testing.assert_close(fused.keystream(1000, key), keystream(4000, key=key, device=torch.device("cpu")))


def test_keystream_by_hand():
    def mix(x):  # MurmurHash3 fmix32, as its author states it
        x ^= x >> 16
        x = x * 0x85EBCA6B % 2**32
        x ^= x >> 13
        x = x * 0xC2B2AE35 % 2**32
        return x ^ x >> 16

    key = 0xFFFFFFFE_00000003
    key = key >> 32 | (key & 0xFFFFFFFF) << 32  # low half next to the wrap
    words = [mix(mix((j + (key & 0xFFFFFFFF)) % 2**32) ^ key >> 32) for j in range(5)]
    expected = np.array(words, dtype="<u4").view(np.uint8)
    np.testing.assert_array_equal(keystream(20, key=key, device=torch.device("cpu")).numpy(), expected)


@pytest.mark.parametrize("rows", [3, 600])
def test_hop_sums_equal_einsum_in_float64(rows):
    y, vectors, weights = fresh((rows, 4, 10), 1), fresh((4, 2, 10), 2), fresh((rows, 4), 3)
    matrix = fresh((4, 10, 6), 6)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaves = [t.detach().clone().to(dtype).requires_grad_() for t in (y, vectors, weights, matrix)]
        if dtype == torch.float32:
            products = fused.hop_products(leaves[0], leaves[1])
            total = fused.hop_sum(leaves[0], leaves[2], leaves[3])
        else:
            products = torch.einsum("blh,lvh->blv", leaves[0], leaves[1])
            total = torch.einsum("blh,bl,lhw->bw", leaves[0], leaves[2], leaves[3])
        loss = (products * fresh(products.shape, 4)).sum() + (total * fresh(total.shape, 5)).sum()
        loss.backward()
        results.append([t.double() for t in (products.detach(), total.detach(), *(leaf.grad for leaf in leaves))])
    for ours, plain in zip(*results, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("first", ["products", "weighted"])
def test_hop_rows_do_not_depend_on_the_order_of_calls(first):
    y, weight, bias = (fresh(shape, seed) for seed, shape in enumerate([(5, 3, 4), (3, 4, 6), (3, 6)]))
    own, vectors, weights = y.clone().requires_grad_(), fresh((2, 6), 4), fresh((5, 3), 5)
    rows = LinearHopRows(own, weight, bias)
    calls = {"products": lambda: rows.products(vectors), "weighted": lambda: rows.weighted(weights)}
    results = {name: calls[name]() for name in sorted(calls, key=lambda name: name != first)}
    assert rows.y is own
    gradients = {name: fresh(result.shape, 6) for name, result in results.items()}
    given = {name: gradient.clone() for name, gradient in gradients.items()}
    torch.autograd.backward(list(results.values()), [gradients[name] for name in results])
    h = torch.einsum("blh,lhw->blw", y, weight) + bias
    torch.testing.assert_close(results["products"], h @ vectors.T)
    torch.testing.assert_close(results["weighted"], (h * weights[:, :, None]).sum(1))
    d_h = given["products"] @ vectors + weights[:, :, None] * given["weighted"][:, None]
    torch.testing.assert_close(own.grad, torch.einsum("blw,lhw->blh", d_h, weight))
    assert all(torch.equal(gradients[name], given[name]) for name in given)


def test_hop_linear_equals_einsum_and_reads_strided_hops():
    x = fresh((9, 5, 6), 1)[:, 2:]
    results = []
    for linear in (fused.hop_linear, lambda a, b: torch.einsum("blf,lfh->blh", a, b)):
        own, weight = x.detach().clone().requires_grad_(), fresh((3, 6, 7), 2).requires_grad_()
        out = linear(own, weight)
        out.backward(fresh(out.shape, 3))
        results.append([out.detach(), own.grad, weight.grad])
    for ours, plain in zip(*results, strict=True):
        torch.testing.assert_close(ours, plain)


def test_bits_do_not_depend_on_threads():
    before = torch.get_num_threads()
    given = parts(512, 1, rows=1500, **CASES["head"])
    x = fresh((1500, 512), 0)
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(outcome(x, given, torch.float32))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
