"""Kept states: hops made of them have the bits of a propagation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.errors import SettingsError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate import LocalEngine, Normalization, Propagation, Restart
from gamlp.propagate.states import PREFIX, keep_states

KINDS = list(product(("float32", "float16"), (0.0, 0.3, 0.5, 1.0), (True, False)))


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "weighted"])
def adjacency(request):
    """9,000 nodes around a hub of more entries than one thread sums in one go."""
    random = np.random.default_rng(0)
    source = np.concatenate([np.zeros(8_900, np.int64), random.integers(0, 9_000, 9_000)])
    target = np.concatenate([np.arange(50, 8_950), random.integers(0, 9_000, 9_000)])
    weights = random.random(len(source)).astype(np.float32) if request.param else None
    return adjacency_from_edges(source, target, nodes=9_000, weights=weights)


@pytest.mark.parametrize(("storage", "r", "loops"), KINDS)
def test_hops_of_kept_states_have_the_bits_of_a_propagation(adjacency, tmp_path, storage, r, loops):
    features = np.random.default_rng(1).standard_normal((adjacency.nodes, 5)).astype(np.float32)
    rows = np.array([7, 0, 8_999, 12])
    spec = Propagation(3, Normalization(r, loops), storage=storage, stationary=r == 0.5)
    fresh = LocalEngine().propagate(adjacency, features, spec)
    engine = LocalEngine(cache=tmp_path)
    states = keep_states(engine, adjacency, features, spec)
    assert [path.name.startswith(PREFIX) for path in tmp_path.iterdir()] == [True]
    assert_array_equal(states.hops(rows), fresh.values[rows])
    made = engine.propagate(adjacency, features, spec)
    assert made.values.tobytes() == fresh.values.tobytes()
    if spec.stationary:
        assert_array_equal(made.stationary, fresh.stationary)
    some = Propagation(3, Normalization(r, loops), rows, keep="last", storage=storage)
    assert engine.propagate(adjacency, features, some).values.tobytes() == fresh.values[rows][:, 3:].tobytes()


def test_states_are_found_again_and_only_for_their_own_graph(adjacency, tmp_path, monkeypatch):
    features = np.ones((adjacency.nodes, 2), np.float32)
    engine = LocalEngine(cache=tmp_path)
    first = keep_states(engine, adjacency, features, Propagation(2))
    monkeypatch.setattr(LocalEngine, "run", lambda *_: pytest.fail("computed again"))
    assert keep_states(engine, adjacency, features, Propagation(2)).key == first.key
    engine.propagate(adjacency, features, Propagation(2))  # made of the states
    with pytest.raises(pytest.fail.Exception):
        engine.propagate(adjacency, 2 * features, Propagation(2))


def test_within_a_memory_limit(adjacency, tmp_path):
    features = np.random.default_rng(1).standard_normal((adjacency.nodes, 40)).astype(np.float32)
    limited = LocalEngine(memory=8 * 2**20, cache=tmp_path)
    states = keep_states(limited, adjacency, features, Propagation(2))
    assert_array_equal(states.values, keep_states(LocalEngine(), adjacency, features, Propagation(2)).values)
    fresh = LocalEngine().propagate(adjacency, features, Propagation(2))
    assert_array_equal(limited.propagate(adjacency, features, Propagation(2)).values, fresh.values)


def test_a_restart_keeps_no_states(adjacency):
    with pytest.raises(SettingsError, match="returns to its start"):
        keep_states(LocalEngine(), adjacency, np.ones((9_000, 1)), Propagation(2, restart=Restart(0.5)))
