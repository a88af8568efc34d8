"""Hops that are added up before the network: which ones, to which rows, and that a memory limit changes no bit."""

import numpy as np
import pytest
import torch

from gamlp.model import build_network
from gamlp.model.combiners import shares_beforehand
from gamlp.propagate.hops import Hops
from gamlp.settings import Settings
from gamlp.train.inputs import CombinedInputs, Inputs, added_up, predict
from gamlp.train.subset_rotation import inputs_for

PLAIN = {"hops": 3, "hop_layers": 0, "residual": False, "labels": False, "hidden": 8, "head_layers": 2}
HOPS = np.random.default_rng(0).normal(size=(40, 4, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("combiner", "weights"),
    [
        ("last", [0, 0, 0, 1]),
        ("mean", [0.25, 0.25, 0.25, 0.25]),
        ("decay", [8 / 15, 4 / 15, 2 / 15, 1 / 15]),  # β = 1/2
    ],
)
def test_rows_are_the_sums_of_the_hops(combiner, weights):
    settings = Settings(**PLAIN, combiner=combiner, decay=0.5)
    inputs = inputs_for(Hops(HOPS), None, "cpu", settings)
    assert isinstance(inputs, CombinedInputs)
    ids = np.array([7, 3, 39])
    expected = np.einsum("rkf,k->rf", HOPS[ids].astype(np.float64), weights)
    np.testing.assert_allclose(inputs.gather(ids)[0][:, 0], expected, atol=1e-6)
    within = inputs_for(Hops(HOPS), None, "cpu", settings, memory=2**30)
    np.testing.assert_array_equal(inputs.gather(ids)[0], within.gather(ids)[0])


@pytest.mark.parametrize("combiner", ["last", "mean", "decay"])
def test_the_network_says_of_sums_what_it_says_of_hops(combiner):
    settings = Settings(**PLAIN, combiner=combiner, combined_dropout=0.4)
    network = build_network(settings, features=5, classes=3).double().eval()
    by_hops = network(torch.from_numpy(HOPS))
    by_sums = network(torch.from_numpy(added_up(HOPS, shares_beforehand(settings).numpy())))
    np.testing.assert_allclose(by_hops.logits.detach(), by_sums.logits.detach(), atol=1e-5)
    np.testing.assert_array_equal(by_hops.weights, by_sums.weights)
    np.testing.assert_array_equal(
        network.embed(torch.from_numpy(HOPS)).shape, network.embed(torch.from_numpy(HOPS[:, :1])).shape
    )


@pytest.mark.parametrize(
    "other",
    [
        {"combiner": "recursive"},
        {"combiner": "concat"},
        {"combiner": "mean", "hop_layers": 1},
        {"combiner": "mean", "input_dropout": 0.1},
        {"combiner": "mean", "residual": True},
        {"combiner": "mean", "head_residual": "features"},
        {"combiner": "mean", "relations": "subsets"},
        {"combiner": "last", "hops": 0},
    ],
)
def test_hops_that_something_else_reads_stay_apart(other):
    settings = Settings(**{**PLAIN, **other})
    assert shares_beforehand(settings) is None
    if "relations" not in other:
        rows = HOPS[:, : settings.hops + 1]
        inputs = inputs_for(Hops(rows), None, "cpu", settings)
        assert type(inputs) is Inputs
        network = build_network(settings, features=5, classes=3)
        assert predict(network, inputs, np.arange(40))[0].shape == (40, 3)
