"""Mean attention by groups, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gamlp.errors import SettingsError
from gamlp.explain.figures.attention import (
    Trend,
    by_class,
    by_degree,
    by_outcome,
    charts,
    degree_trends,
    explain_attention,
    heat_map,
    name_of,
    rank_correlation,
    seed_trends,
    trend_sentence,
)
from gamlp.explain.finished_run import open_run
from gamlp.storage.files import write_array

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


def ranks(values):
    """1 for the smallest; equal values share the mean of their ranks."""
    return np.array([1 + (values < value).sum() + ((values == value).sum() - 1) / 2 for value in values])


def test_trends_with_the_degree_by_hand():
    weights = np.array([[0.5, 0.3, 0.2], [0.6, 0.1, 0.3], [0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.0, 0.0, 1.0]])
    degrees = np.array([9, 4, 4, 1, 0])  # the last node has no neighbour: it is left out
    found = degree_trends(weights, degrees)
    far = weights @ [0, 1, 2]
    for name, values in {"mean hop": far, **{f"hop {hop}": weights[:, hop] for hop in range(3)}}.items():
        a, b = ranks(degrees[:4]), ranks(values[:4])
        slope = ((a - a.mean()) * (b - b.mean())).sum()
        expected = slope / np.sqrt(((a - a.mean()) ** 2).sum() * ((b - b.mean()) ** 2).sum())
        assert found[name][:2] == (4, pytest.approx(expected)), name
    assert degree_trends(weights, np.ones(5, int)) == {}  # all degrees are the same
    assert degree_trends(np.full((5, 3), 1 / 3), degrees) == {}  # … or all weights


def test_p_is_the_share_of_permutations_at_least_as_correlated():
    random = np.random.default_rng(0)
    degrees = random.integers(1, 30, 60)
    weights = random.dirichlet(np.ones(3), 60)
    weights[:, 2] += 0.01 * degrees  # a weak trend
    _, found, p = degree_trends(weights, degrees)["hop 2"]
    a, b = ranks(degrees), ranks(weights[:, 2])
    shuffled = [np.corrcoef(random.permutation(a), b)[0, 1] for _ in range(4000)]
    assert 0.001 < p < 0.9
    assert p == pytest.approx(np.mean(np.abs(shuffled) >= abs(found)), abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_rank_correlation_is_scipys(seed):
    from scipy.stats import spearmanr

    random = np.random.default_rng(seed)
    x = random.integers(0, 5, 40)  # with ties
    for y in (random.normal(size=40) + 0.2 * x, x, -x):
        expected = spearmanr(x, y)
        assert rank_correlation(x, y) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9, abs=1e-12)


def test_a_trend_says_no_more_than_its_numbers():
    clear = Trend("mean hop", 1000, (-0.1, -0.3), (0.01, 0.0))
    assert (clear.mean, clear.p, clear.seeds, clear.clear) == (pytest.approx(-0.2), "0.010", "2 of 2", True)
    assert "-0.200 (p = 0.010, of this sign in 2 of 2 seeds): nodes with more neighbours look slightly less far" in (
        trend_sentence(clear)
    )
    assert "(p < 0.001, of this sign in 1 of 1 seeds): nodes with more neighbours look more far" in (
        trend_sentence(Trend("mean hop", 1000, (0.4,), (1e-9,)))
    )
    for doubtful in (Trend("mean hop", 9, (-0.1, 0.3), (0.01, 0.0)), Trend("mean hop", 9, (0.3,), (0.2,))):
        assert trend_sentence(doubtful).endswith("no clear trend.")


def test_the_trend_of_a_run_is_over_all_its_seeds(tiny_graph, run_of):
    folder = run_of(tiny_graph)
    run = open_run(tiny_graph, folder)
    own = degree_trends(run.needed_attention(), run.degrees)
    write_array(folder / "seed-1" / "rows.npy", run.rows)
    write_array(folder / "seed-1" / "attention.npy", run.needed_attention()[::-1])
    trends = seed_trends(replace(run, record={**run.record, "seeds": [0, 1]}))
    assert [trend.measure for trend in trends] == ["mean hop", "hop 0", "hop 1", "hop 2"]
    assert trends[0].correlations[0] == own["mean hop"][1] != trends[0].correlations[1]
    titles = {chart.title: chart.note for chart in charts(run)}
    assert "of this sign in 1 of 1 seeds" in titles["Attention by degree, all nodes"]
    assert "not independent" in titles["Degree against attention"]
