"""The least memory of a training and its most seconds, by hand, and what is said where a limit is less."""

from __future__ import annotations

import numpy as np
import pytest

from gamlp.cli.begin import announce
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.machine import training
from gamlp.machine.training import training_bytes, training_seconds
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.runs.spec import RunSpec
from gamlp.storage.memory import FLOOR

NODES = 200
RNG = np.random.default_rng(0)
GRAPH = Graph(
    adjacency_from_edges(*RNG.integers(0, NODES, (2, 400)), nodes=NODES),
    RNG.normal(size=(NODES, 10)).astype(np.float32),
    np.arange(NODES) % 5,
    tuple("abcde"),
    Split(np.arange(50), np.arange(50, 70), np.arange(70, 100)),
)


def spec(method="sgc", memory=None, **settings):
    """Return a run on this graph; SGC reads the last hop, and its head is all there is."""
    return RunSpec.of(GRAPH, method, "default", settings, engine=EngineChoice(memory=memory))


@pytest.mark.parametrize(("rows", "count"), [("all", 200), ("labelled", 100)])
def test_memory_by_hand(rows, count):
    found = training_bytes(GRAPH, spec(hops=2, head_layers=1, batch_size=64, residual=False, rows=rows, hidden=8))
    parameters = 10 * 5 + 5  # a linear layer with its bias
    batch = 64 * (3 * 6 * 10 + 14 * 8 + 4 * 5)
    assert found == FLOOR * 2 // 3 + 24 * NODES + 4 * (5 * parameters + batch + 4 * count * 5)


@pytest.mark.parametrize(("rows", "count"), [("all", 200), ("labelled", 100)])
def test_seconds_by_hand(monkeypatch, rows, count):
    monkeypatch.setattr(training, "operations_a_second", lambda: 1e6)
    spec_of = spec(hops=2, head_layers=1, residual=False, rows=rows, epochs=(30,), evaluate_every=2)
    passes = 30 * (6 * 50 + 2 * 20 / 2) + 2 * count
    seconds = passes * (10 * 5 + 5) / (training.SHARE * 1e6) + 30 * training.STEP
    assert training_seconds(GRAPH, spec_of) == pytest.approx(len(spec_of.seeds) * seconds)


def test_a_limit_that_a_step_breaks_is_doubted(caplog):
    announce(GRAPH, spec(memory=4 * FLOOR), named=True)
    assert "will not be kept" not in caplog.text
    announce(GRAPH, spec(memory=FLOOR // 2), named=True)
    assert "batches, network and predictions alone need about 5" in caplog.text
    assert "will not be kept" in caplog.text


def test_correct_and_smooth_is_left_out_by_default_where_the_memory_is_too_small():
    more = {"overrides": {"hidden": 8}}  # of one network
    assert RunSpec.of(GRAPH, engine=EngineChoice(memory=2**30), **more).method.endswith("+cs")
    assert not RunSpec.of(GRAPH, engine=EngineChoice(memory=24 * NODES * 5 - 1), **more).method.endswith("+cs")
