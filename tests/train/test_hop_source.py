"""Hops are computed once for all that propagate alike, and are those of the settings."""

from typing import ClassVar

import numpy as np
import pytest

from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.spec import Propagation
from gamlp.settings import Settings
from gamlp.train.hop_source import HopSource


class Counted(LocalEngine):
    """Counts what it is asked for."""

    asked: ClassVar[list[int]] = []

    def propagate(self, adjacency, columns, spec):
        self.asked.append(spec.hops)
        return super().propagate(adjacency, columns, spec)


@pytest.fixture
def source():
    Counted.asked.clear()
    return HopSource(Counted())


def hops(graph, settings, source):
    return Pipeline(method_named("gamlp-jk"), settings, hop_source=source).hops(graph, graph.split)


def test_fewer_hops_of_the_same_kind_are_a_slice_of_what_is_there(planted, source):
    hops(planted, Settings(hops=4), source)
    fewer = hops(planted, Settings(hops=2, combiner="last"), source)
    expected = LocalEngine().propagate(planted.adjacency, planted.features, Propagation(2))
    np.testing.assert_array_equal(fewer.values, expected.values)
    assert Counted.asked == [4]


@pytest.mark.parametrize(
    "change",
    [{"hops": 5}, {"normalization": 0.0}, {"self_loops": False}, {"feature_scaling": "unit"}, {"storage": "float16"},
     {"rows": "labelled"}, {"combiner": "smoothing"}, {"components": 3}],
)  # fmt: skip
def test_anything_else_is_computed_anew(planted, source, change):
    hops(planted, Settings(hops=4), source)
    hops(planted, Settings(**{"hops": 4, **change}), source)
    assert len(Counted.asked) == 2


def test_other_labels_need_no_other_hops_and_another_graph_does(planted, make_planted, source):
    hops(planted, Settings(hops=2), source)
    hops(planted.with_labels(np.zeros_like(planted.labels)), Settings(hops=2), source)
    assert len(Counted.asked) == 1
    hops(make_planted(), Settings(hops=2), source)
    assert len(Counted.asked) == 2


def test_labelled_rows_are_those_of_the_split(planted, source):
    split = planted.split
    some = hops(planted, Settings(hops=1, rows="labelled"), source)
    assert some.rows.tolist() == sorted([*split.train, *split.valid, *split.test])
    whole = hops(planted, Settings(hops=1), source)
    np.testing.assert_array_equal(some.values, whole.values[some.rows])


def test_what_several_methods_want_in_turn_is_computed_once_each(planted, source):
    wanted = [Settings(hops=4), Settings(hops=2, self_loops=False), Settings(hops=1, components=3)]
    first = [hops(planted, settings, source) for settings in wanted]
    again = [hops(planted, settings, source) for settings in wanted]
    assert Counted.asked == [4, 2, 1]
    for one, other in zip(first, again, strict=True):
        assert np.shares_memory(one.values, other.values)


def test_longer_hops_replace_shorter_ones(planted, source):
    for count in (1, 3, 2):
        hops(planted, Settings(hops=count), source)
    assert Counted.asked == [1, 3]
    assert kept_hops(source) == [3]


def test_nothing_of_a_graph_before_is_kept(planted, make_planted, source):
    hops(planted, Settings(hops=1), source)
    hops(make_planted(), Settings(hops=2), source)
    assert kept_hops(source) == [2]


def test_the_largest_go_where_all_together_take_too_much(planted, source, monkeypatch):
    size = planted.features.nbytes
    monkeypatch.setattr("gamlp.train.hop_source.memory_bytes", lambda: 8 * 4 * size)
    for settings in (Settings(hops=3), Settings(hops=1, self_loops=False), Settings(hops=0, normalization=0.0)):
        hops(planted, settings, source)
    assert kept_hops(source) == [1, 0]  # four of the features' size, then two more, which are over it with the first


def test_within_a_memory_limit_only_the_last_are_kept(planted):
    source = HopSource(LocalEngine(memory=2**30))
    for settings in (Settings(hops=2), Settings(hops=1, self_loops=False)):
        hops(planted, settings, source)
    assert kept_hops(source) == [1]


def kept_hops(source):
    return [made.found.count for made in source._kept if made.what == "hops"]
