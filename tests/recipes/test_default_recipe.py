"""The default recipe where it could fail: features that say nothing."""

from gamlp.runs.run import train_run
from gamlp.runs.spec import RunSpec


def test_edges_alone_are_enough(make_planted):
    graph = make_planted(nodes=200, classes=3, features=8, degree=4, noise=1000.0, labelled=10)
    spec = RunSpec.of(graph, overrides={"epochs": [10, 5]})
    assert spec.method == "gamlp-recursive+rlu+scr+cs"
    found = train_run(graph, spec, folder=None)
    spread = train_run(graph, RunSpec.of(graph, "label-propagation"), folder=None)
    assert found["test_accuracy"] >= spread["test_accuracy"] - 0.05  # which finds 99 %, and the network alone a third


def test_rows_that_are_not_all_go_without_smoothing(make_planted):
    assert RunSpec.of(make_planted(), overrides={"rows": "labelled"}).method == "gamlp-recursive+rlu+scr"
