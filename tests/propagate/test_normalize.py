"""Degrees and their powers by hand; held or made where they are needed, they are the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import SettingsError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Adjacency
from gamlp.propagate.normalize import NodeScales, Normalization, degrees, power, row_sums

# 0 – 1, 0 – 2, 4 – 5; node 3 is alone, and so is the last
SOURCE, TARGET, NODES = np.array([0, 0, 4]), np.array([1, 2, 5]), 7
WEIGHTS = np.array([0.5, 2.0, 3.0])
ROW_SUMS = {"plain": [2, 1, 1, 0, 1, 1, 0], "weighted": [2.5, 0.5, 2, 0, 3, 3, 0]}
GRAPHS = {
    "plain": adjacency_from_edges(SOURCE, TARGET, nodes=NODES),
    "weighted": adjacency_from_edges(SOURCE, TARGET, nodes=NODES, weights=WEIGHTS),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_degrees_by_hand(name):
    without, within = (degrees(GRAPHS[name], self_loops=own) for own in (False, True))
    assert within.dtype == np.float64
    assert_array_equal(without, ROW_SUMS[name])
    assert_array_equal(within, np.add(ROW_SUMS[name], 1))


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_row_sums_read_some_rows_at_a_time(monkeypatch, rows):
    monkeypatch.setattr("gamlp.propagate.normalize.ROWS_A_STEP", rows)
    sums = row_sums(GRAPHS["weighted"])
    assert sums.dtype == np.float64
    assert_array_equal(sums, ROW_SUMS["weighted"])


def test_row_sums_are_added_in_float64():
    """2²⁴ and a one: float32 has no number between 16,777,216 and 16,777,218."""
    weights = np.array([2**24, 1, 1], np.float32)
    row = Adjacency(np.array([0, 3, 3, 3]), np.array([0, 1, 2], np.int32), weights)
    assert row_sums(row).tolist() == [2**24 + 2, 0, 0]


def test_powers_by_hand():
    degree = np.array([0.0, 1.0, 4.0])
    assert power(degree, -0.5).tolist() == [0, 1, 1 / 2]
    assert power(degree, -1).tolist() == [0, 1, 1 / 4]
    assert power(degree, 0.5).tolist() == [0, 1, 2]
    assert power(degree, 0).tolist() == [1, 1, 1]
    assert power(np.array([0.25]), -0.5).tolist() == [2]


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("step", [1, 3, 2**20])
@pytest.mark.parametrize("name", GRAPHS)
def test_scales_of_nodes_are_powers_of_their_degrees(name, step, hold, self_loops):
    scales = NodeScales(GRAPHS[name], Normalization(0.25, self_loops), hold=hold, step=step)
    assert scales.nodes == NODES
    offsets = GRAPHS[name].indptr
    for exponent in (-1, -0.25, 0.25):
        degree = [total + self_loops for total in ROW_SUMS[name]]
        expected = np.array([d**exponent if d else 0.0 for d in degree], np.float32)
        for first, last in ((0, NODES), (1, 4), (6, 7)):
            found = scales.power(first, last, exponent)
            assert found.dtype == np.float32
            assert_allclose(found, expected[first:last], rtol=1e-6)
            assert_array_equal(scales.power(first, last, exponent, offsets[first : last + 1]), found)
        for rows in ([0, 1, 2, 3, 4, 5, 6], [2, 2, 5], [6], []):
            assert_allclose(scales.of(np.array(rows, np.int64), exponent), expected[rows], rtol=1e-6)
    scales.close()


def test_what_is_held_is_what_was_asked_for():
    """Within a limit nothing but the sums of weights, which cost a pass over them."""
    assert NodeScales(GRAPHS["weighted"], Normalization(), hold=False)._held == {}
    assert NodeScales(GRAPHS["plain"], Normalization(), hold=False)._row_sums is None
    held = NodeScales(GRAPHS["weighted"], Normalization(), hold=True)
    assert sorted(held._held) == [-1, -0.5, 0.5]
    assert held._row_sums is None


def test_the_default_is_symmetric_with_self_loops():
    assert Normalization() == Normalization(r=0.5, self_loops=True)


def test_the_exponent_lies_between_0_and_1():
    assert [Normalization(r).r for r in (0, 1)] == [0, 1]
    for r in (-0.01, 1.01, float("nan")):
        with pytest.raises(SettingsError, match="Expected a number between 0 and 1"):
            Normalization(r)
