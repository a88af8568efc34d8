import pytest
import torch

from gamlp.model.cpu import products
from gamlp.model.cpu.products import multiply, multiply_transposed

ONEDNN = pytest.mark.skipif(not products.has_onednn(), reason="this torch has no oneDNN")
LIBRARIES = [False, pytest.param(True, marks=ONEDNN)]


@pytest.fixture(params=LIBRARIES, ids=["torch", "oneDNN"])
def library(request, monkeypatch):
    monkeypatch.setattr(products, "by_onednn", lambda: request.param)


def numbers(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def close(found, exact):
    return torch.allclose(found.double(), exact, rtol=1e-5, atol=1e-5 * float(exact.abs().max()))


def hop(x):
    """The same numbers with gaps between the rows, as one hop of several has them."""
    several = torch.full((len(x), 3, x.shape[1]), float("nan"))
    several[:, 1] = x
    return several[:, 1]


LAYOUTS = {"rows": lambda x: x, "columns": lambda x: x.T.contiguous().T, "with gaps": hop}


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 1433, 64), (3000, 40, 700), (2049, 5, 1)])
def test_products_of_all_layouts_are_those_of_float64(shape, layout, other):
    rows, inner, columns = shape
    x, weight, grad = numbers(rows, inner), numbers(inner, columns), numbers(rows, columns)
    a, b = LAYOUTS[layout](x), LAYOUTS[other](weight)
    exact = x.double() @ weight.double()
    assert close(multiply(a, b), exact)
    out = hop(torch.zeros(rows, columns))
    assert multiply(a, b, out) is out
    assert close(out, exact)
    assert close(multiply(a, LAYOUTS[other](weight.T.contiguous()).T), exact)
    assert close(multiply_transposed(a, LAYOUTS[other](grad)), x.double().T @ grad.double())


@pytest.mark.usefixtures("library")
def test_a_gradient_that_is_one_number_for_all_rows():
    x = numbers(3000, 20)
    one = torch.ones(()).expand(3000, 4)  # as the sum of an output gives it
    assert close(multiply_transposed(x, one), x.double().T @ one.double())
    assert close(multiply(one, numbers(4, 20)), one.double() @ numbers(4, 20).double())


@ONEDNN
def test_with_onednn_a_row_has_the_same_bits_whatever_is_beside_it(monkeypatch):
    monkeypatch.setattr(products, "by_onednn", lambda: True)
    x, weight = numbers(3000, 300), numbers(300, 600)
    whole = multiply(x, weight)
    for rows in (2, 90, 437, 1500):
        assert torch.equal(multiply(x[:rows], weight), whole[:rows])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert torch.equal(multiply(x, weight), whole)
    finally:
        torch.set_num_threads(threads)


@ONEDNN
@pytest.mark.parametrize(
    ("name", "features", "expected"),
    [("znver4", {"avx2", "avx512f"}, True), ("znver2", {"avx2"}, False), ("cascadelake", {"avx512f"}, False)],
)
def test_onednn_is_for_processors_that_mkl_does_not_use_in_full(monkeypatch, name, features, expected):
    monkeypatch.setattr(products, "cpu_name", lambda: name)
    monkeypatch.setattr(products, "cpu_features", lambda: frozenset(features))
    products.by_onednn.cache_clear()
    try:
        assert products.by_onednn() is expected
    finally:
        products.by_onednn.cache_clear()
