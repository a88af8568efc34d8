"""Mean attention by groups, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gamlp.errors import SettingsError
from gamlp.explain.figures.attention import by_class, by_degree, by_outcome, explain_attention, heat_map, name_of
from gamlp.explain.finished_run import open_run

WEIGHTS = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.2, 0.8], [0.4, 0.6]])
DEGREES = np.array([0, 1, 4, 5, 100])


def test_degree_ranges_by_hand():
    found = by_degree(WEIGHTS, DEGREES)
    assert found.groups == ("0", "1–4", "5–8", "100 and more")  # ranges without a node are left out
    assert found.nodes.tolist() == [1, 2, 1, 1]
    assert_allclose(found.mean, [[1.0, 0.0], [0.25, 0.75], [0.2, 0.8], [0.4, 0.6]])


def test_the_heat_map_is_relative_to_its_largest_mean():
    found = heat_map(WEIGHTS, DEGREES)
    assert found.groups == ("1–4", "5–8")
    assert_allclose(found.relative, [[0.25 / 0.8, 0.75 / 0.8], [0.25, 1.0]])


def test_the_heat_map_draws_twenty_nodes_of_a_range_by_its_seed():
    weights = np.random.default_rng(0).dirichlet(np.ones(3), size=500)
    degrees = np.repeat([3, 7], 250)
    found, again, other = (heat_map(weights, degrees, seed=seed) for seed in (1, 1, 2))
    assert found.nodes.tolist() == [20, 20]
    assert (found.mean == again.mean).all()
    assert (found.mean != other.mean).any()
    everyone = heat_map(weights, degrees, sample=250)
    assert_allclose(everyone.mean, [weights[:250].mean(axis=0), weights[250:].mean(axis=0)])


def test_classes_and_outcomes_by_hand():
    classes = by_class(WEIGHTS, np.array([1, 1, 0, -1, 0]), ("a", "b", "none"))
    assert classes.groups == ("a", "b")
    assert_allclose(classes.mean, [[0.2, 0.8], [0.75, 0.25]])
    outcome = by_outcome(WEIGHTS[:3], np.array([True, False, True]))
    assert_allclose(outcome.mean, [[0.5, 0.5], [0.5, 0.5]])
    assert outcome.nodes.tolist() == [2, 1]


def test_of_a_run_only_labelled_test_nodes_are_right_or_wrong(tiny_graph, run_of):
    run = open_run(tiny_graph, run_of(tiny_graph))
    outcome = explain_attention(run)[2]
    # test nodes 3, 4, 7, 8 have labels green, blue, green, blue and were given green, red, green, green
    assert outcome.groups == ("right", "wrong")
    assert_allclose(outcome.mean, [[0.375, 0.375, 0.25], [0.125, 0.5, 0.375]])


def test_rows_of_the_split_only(tiny_graph, run_of):
    rows = np.array([0, 1, 2, 3, 4, 5, 6, 8])
    shares = np.full((8, 3), 1 / 3)
    run = open_run(tiny_graph, run_of(tiny_graph, rows=rows, probabilities=shares, attention=shares))
    assert run.test.tolist() == [3, 4, 7]  # nodes 3, 4 and 8; node 7 was not predicted
    assert run.degrees.tolist() == [1, 2, 2, 2, 5, 1, 1, 1]


def test_a_method_without_attention_says_so(tiny_graph, run_of):
    run = open_run(tiny_graph, run_of(tiny_graph, attention=None, method="label-propagation"))
    with pytest.raises(SettingsError, match="label-propagation does not weigh hops"):
        explain_attention(run)


@pytest.mark.parametrize(("limits", "name"), [((0, 0), "0"), ((1, 4), "1–4"), ((1000, None), "1,000 and more")])
def test_ranges_are_named(limits, name):
    assert name_of(limits) == name
