import numpy as np
import pytest
import torch

from gamlp.model import layers
from gamlp.model.cpu import fused, kernels
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
    "the least dropout": {"norm": False, "skip": False, "bias": False, "slope": True, "rate": 1 / 256},
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


@pytest.mark.parametrize(
    ("rows", "columns", "threads", "expected"),
    [
        (7 * 256, 512, 3, [(0, 2), (2, 4), (4, 7)]),
        (6 * 256 + 1, 512, 3, [(0, 2), (2, 4), (4, 7)]),  # the last chunk has one row
        (512, 256, 2, [(0, 1), (1, 2)]),  # 2¹⁷ elements are worth a second thread
        (511, 256, 2, [(0, 2)]),  # fewer are not
        (256, 512, 3, [(0, 1)]),  # one chunk cannot be shared
        (512, 256, 1, [(0, 2)]),
    ],
)
def test_every_chunk_is_dealt_to_one_thread(monkeypatch, rows, columns, threads, expected):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    calls, like = [], np.empty((rows, columns), np.float32)
    kernels.run(lambda first, last, *given: calls.append((first, last, *map(id, given))), like, calls)
    assert sorted(calls) == [(*bounds, id(like), id(calls)) for bounds in expected]


def test_what_fails_on_another_thread_is_told(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)

    def kernel(first, last, like):
        assert first == 0, "the second half"

    with pytest.raises(AssertionError, match="the second half"):
        kernels.run(kernel, np.empty((512, 256), np.float32))


def test_a_kernel_writes_the_rows_of_its_chunks_alone():
    """The second of three chunks of 600 rows, 256 … 511, compared with numpy in float64."""
    random, here = np.random.default_rng(0), slice(256, 512)

    def fresh_rows(*shape):
        return random.normal(size=shape).astype(np.float32)

    x, skip, grad = (fresh_rows(600, 5) for _ in range(3))
    a, b, c, mean = (fresh_rows(5) for _ in range(4))
    y, vectors, weights = fresh_rows(600, 2, 5), fresh_rows(2, 3, 5), fresh_rows(600, 2)
    linear = x.astype(np.float64) * a + b + skip
    drop = (0, np.float32(1), np.uint32(0), np.uint32(0))  # nothing is dropped
    cases = [
        (kernels.forward_rows, (x, skip, a, b, c, *drop), np.where(linear > 0, linear, c * linear)),
        (kernels.norm_backward_rows, (x, mean, a, b, c, grad), a * grad.astype(np.float64) + b * (x - mean) + c),
        (kernels.product_rows, (y, vectors), np.einsum("blc,lvc->blv", y.astype(np.float64), vectors)),
        (kernels.scale_rows, (y, weights), weights[:, :, None].astype(np.float64) * y),
    ]
    for kernel, given, expected in cases:
        out = np.full(expected.shape, 7, np.float32)
        kernel(1, 2, *given, out)
        np.testing.assert_allclose(out[here], expected[here], rtol=1e-4, atol=1e-5)
        assert (out[:256] == 7).all() and (out[512:] == 7).all()
    back, products = y[::-1].copy(), np.full((600, 2), 7, np.float32)
    kernels.scale_backward_rows(1, 2, y, weights, back, products)
    expected = (y[::-1].astype(np.float64) * y).sum(axis=2)
    np.testing.assert_allclose(products[here], expected[here], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(back[here], (weights[:, :, None] * y[::-1])[here], rtol=1e-5)
    assert (products[:256] == 7).all() and (back[:256] == y[:-257:-1]).all() and (products[512:] == 7).all()


def test_one_row_has_its_skip_too():
    given = parts(15, 3, rows=1, **CASES["no norm"])
    x = fresh((1, 15), 0)
    for a, b in zip(outcome(x, given, torch.float32), outcome(x, given, torch.float64), strict=True):
        torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-4)
