import numpy as np
import pytest

import gamlp.train.prepare as prepare
from gamlp.propagate import Normalization, propagate
from gamlp.settings import Settings
from gamlp.train.prepare import Workshop


@pytest.fixture
def counted(monkeypatch):
    calls = []
    real = prepare.cached_propagate
    monkeypatch.setattr(prepare, "cached_propagate", lambda *a, **k: calls.append(k["hops"]) or real(*a, **k))
    return calls


def test_fewer_hops_of_the_same_kind_are_a_slice_of_what_is_there(planted, counted):
    workshop = Workshop(planted)
    workshop.hops(Settings(hops=4), planted.split)
    fewer = workshop.hops(Settings(hops=2, combiner="last"), planted.split)
    expected = propagate(planted.adjacency, planted.features, hops=2, normalization=Normalization(0.5, True))
    np.testing.assert_array_equal(fewer.values, expected.values)
    assert counted == [4]


@pytest.mark.parametrize(
    "change",
    [{"hops": 5}, {"normalization": 0.0}, {"self_loops": False}, {"feature_scaling": "unit"}, {"storage": "float16"},
     {"rows": "labelled"}, {"combiner": "smoothing"}],
)  # fmt: skip
def test_anything_else_is_computed_anew(planted, counted, change):
    workshop = Workshop(planted)
    workshop.hops(Settings(hops=4), planted.split)
    workshop.hops(Settings(**{"hops": 4, **change}), planted.split)
    assert len(counted) == 2


def test_labelled_rows_are_those_of_the_split(planted):
    split = planted.split
    hops = Workshop(planted).hops(Settings(hops=1, rows="labelled"), split)
    assert hops.rows.tolist() == sorted([*split.train, *split.valid, *split.test])
    whole = Workshop(planted).hops(Settings(hops=1), split)
    np.testing.assert_array_equal(hops.values, whole.values[hops.rows])
