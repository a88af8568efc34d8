import pytest
import torch

from gamlp.model import build_network
from gamlp.model.dropout import Dropout, byte_threshold
from gamlp.settings import Settings

N = 100_000


def masks(network, shape=(N,)):
    sites = (module for module in network.modules() if isinstance(module, Dropout))
    return {site: dropout.mask(shape, torch.zeros(1)) for site, dropout in enumerate(sites)}


@pytest.fixture(scope="module")
def network():
    return build_network(
        Settings(combiner="recursive", hops=2, hidden=8, input_dropout=0.5, attention_dropout=0.5),
        features=3,
        classes=2,
    )


def keyed(network, seed, step):
    network.set_step(seed, step)
    network.train()(torch.zeros(2, 3, 3), torch.zeros(2, 2))
    return {site: mask > 0 for site, mask in masks(network).items()}


def agreement(a, b):
    return (a == b).double().mean().item()


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.9])
def test_rate_and_mean(rate):
    dropout = Dropout(rate)
    dropout.key = 2**63 + 11
    out = dropout(torch.ones(N // 100, 100))
    assert (out == 0).double().mean().item() == pytest.approx(rate, abs=1 / 512 + 0.008)
    assert out.double().mean().item() == pytest.approx(1, abs=5 * (rate / (1 - rate) / N) ** 0.5)


def test_rates_are_not_rounded_away():
    assert [byte_threshold(rate) for rate in (0, 0.0001, 0.5, 0.9999)] == [0, 1, 128, 255]


def test_evaluation_drops_nothing():
    x = torch.randn(10, 10)
    assert torch.equal(Dropout(0.5).eval()(x), x)


def test_sites_and_steps_and_seeds_are_independent(network):
    """Two fair independent masks agree in half of the places, within five standard deviations, also when shifted."""
    runs = [keyed(network, 0, 0), keyed(network, 0, 1), keyed(network, 1, 0)]
    found = [mask for run in runs for mask in run.values()]
    assert len(found) == 3 * len(runs[0]) >= 3 * 8
    for i, a in enumerate(found):
        assert a.double().mean().item() == pytest.approx(0.5, abs=0.008)
        assert agreement(a[1:], a[:-1]) == pytest.approx(0.5, abs=0.008)
        assert agreement(a[8:], a[:-8]) == pytest.approx(0.5, abs=0.008)
        for b in found[:i]:
            assert agreement(a, b) == pytest.approx(0.5, abs=0.008)


def test_same_step_same_masks_whatever_was_run_before(network):
    first = keyed(network, 4, 7)
    keyed(network, 4, 8)
    again = keyed(network, 4, 7)
    assert all(torch.equal(first[site], again[site]) for site in first)


def test_a_loop_that_sets_no_step_still_drops_afresh(network):
    network.set_step(0, 0)
    x, labels = torch.randn(20, 3, 3), torch.rand(20, 2)
    first, second = network.train()(x, labels).logits, network(x, labels).logits
    assert not torch.equal(first, second)
    network.set_step(0, 0)
    assert torch.equal(network(x, labels).logits, first)
