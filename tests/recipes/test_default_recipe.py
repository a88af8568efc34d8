"""The default recipe where it could fail: features that say nothing."""

from gamlp.methods import method_named
from gamlp.runs.run import Order
from gamlp.train.one_seed import Task, train_seed
from gamlp.train.prepare import Workshop


def test_edges_alone_are_enough(make_planted):
    graph = make_planted(nodes=200, classes=3, features=8, degree=4, noise=1000.0, labelled=10)
    order = Order(method="", recipe="default", overrides={"epochs": [10, 5]}, seeds=[0]).with_usual_method(graph)
    assert order.method == "gamlp-recursive+rlu+scr+cs"
    found = train_seed(Workshop(graph), order.task(graph), seed=0, folder=None)
    spread = train_seed(Workshop(graph), Task(method_named("label-propagation"), None), seed=0, folder=None)
    assert found["test_accuracy"] >= spread["test_accuracy"] - 0.05  # which finds 99 %, and the network alone a third


def test_rows_that_are_not_all_go_without_smoothing(make_planted):
    order = Order(method="", recipe="default", overrides={"rows": "labelled"}, seeds=[0])
    assert order.with_usual_method(make_planted()).method == "gamlp-recursive+rlu+scr"
