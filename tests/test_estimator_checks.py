"""scikit-learn's own checks, for every method that has a name."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import parametrize_with_checks

from gamlp import GAMLPClassifier
from gamlp.methods import BASES, method_named

NEEDS_A_GRAPH = {name for name in BASES if method_named(name).without_edges().needs_relations}
CANNOT_APPLY = {  # docs/methods.md has the same list
    "label-propagation": {"check_classifiers_train": "it learns nothing from rows, and these have no edges"}
}


def quick(name):
    takes = method_named(name).without_edges().takes
    return GAMLPClassifier(name, epochs=20 if takes("epochs") else None, hidden=16 if takes("hidden") else None)


SAME_WITHOUT_EDGES = {name for name in BASES if method_named(name).without_edges() is not method_named(name)}
NAMES = [name for name in BASES if name not in NEEDS_A_GRAPH | SAME_WITHOUT_EDGES]
ESTIMATORS = [quick(name) for name in [*NAMES, "gamlp-jk+rlu+scr+cs"]]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda one: CANNOT_APPLY.get(one.method, {}))
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_dagnn_says_the_same_in_any_order_of_the_rows():
    random = np.random.default_rng(0)
    rows = random.uniform(0, 3, (20, 3))
    fitted = quick("dagnn").fit(rows, rows[:, 0].astype(int))
    said = fitted.decision_function(rows)
    for _ in range(50):
        order = random.permutation(len(rows))
        assert_allclose(fitted.decision_function(rows[order]), said[order], rtol=1e-7)


def test_the_methods_that_need_relations_are_few():
    assert {"rgcn", "hgt", "r-gsn", "hgconv", "r-hgnn"} == NEEDS_A_GRAPH
