"""UniMP and DeeperGCN: a step on a sample that is all of the graph, and labels that are input in a sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gamlp.message_passing.fit import Training, fit
from gamlp.message_passing.network import build
from gamlp.message_passing.sampled import dealt, whole
from gamlp.methods import method_named
from gamlp.propagate.scaling import Scaling

PLAIN = {"feature_scaling": "none", "hidden": 4, "dropout": 0.0, "layers": 3}


def options_of(name, **more):
    return method_named(name).settings_from({**PLAIN, **more})


def built(name, graph, **more):
    torch.manual_seed(1)
    return build(name, graph, 2, options=options_of(name, **more), scaling=Scaling("none"), device="cpu")


def test_with_all_neighbours_a_step_of_unimp_is_that_on_the_whole_graph(planted, hidden):
    sampled, full = (
        fit("unimp", hidden, planted.split, seed=0, options=options_of("unimp", epochs=1, edge_dropout=0.0, **more))
        for more in ({"full_batch_up_to": 0, "batch_size": 16, "fanout": 120}, {})
    )
    assert sampled.history[0]["loss"] == pytest.approx(full.history[0]["loss"], rel=1e-5)
    for name, each in full.state.items():
        torch.testing.assert_close(sampled.state[name], each, atol=2e-4, rtol=1e-3, msg=name)
    np.testing.assert_allclose(sampled.probabilities, full.probabilities, atol=1e-3)


def test_labels_that_are_input_are_no_targets_whatever_is_sampled(planted, hidden, monkeypatch):
    """In every batch: all training labels but the epoch's targets are given, and no others."""
    seen = []
    monkeypatch.setattr(Training, "step", lambda self, batch, given: seen.append((batch, given)) or 0.0)
    sample = {"full_batch_up_to": 0, "batch_size": 3, "fanout": 4}
    fit("unimp", hidden, planted.split, seed=0, options=options_of("unimp", epochs=1, **sample))
    targets = np.concatenate([batch.nodes for batch, _ in seen])
    assert 0 < len(targets) < 16
    train = planted.split.train
    for batch, given in seen:
        is_input = np.isin(batch.ids, train) & ~np.isin(batch.ids, targets)
        np.testing.assert_array_equal(given, np.where(is_input, hidden.labels[batch.ids], -1))


def test_one_part_is_the_whole_graph(planted):
    network, source = built("deepergcn", planted)
    train = planted.split.train
    (one,) = dealt(source)(np.random.default_rng(0), train)
    (all_of_it,) = whole(source)(np.random.default_rng(0), train)
    for batch in (one, source.part(np.arange(120), train)):
        assert torch.equal(network.train()(batch.view), network.train()(all_of_it.view))
        for name in ("ids", "rows", "nodes", "weights"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(all_of_it, name))
