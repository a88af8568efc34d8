"""The estimator under random settings: legal ones give probabilities, the same bits twice; others a clear error."""

import numpy as np
from graphs import edge_lists, features_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from gamlp import GAMLPClassifier
from gamlp.errors import GamlpError

METHODS = ["gamlp-jk", "gamlp-recursive+rlu", "gamlp-smoothing", "sgc", "sign", "mlp", "gbp", "no-such-method"]
LEGAL = {
    "method": st.sampled_from(METHODS),
    "hops": st.integers(-1, 3),
    "hidden": st.sampled_from([0, 1, 4]),
    "dropout": st.sampled_from([-0.1, 0.0, 0.5, 1.5]),
    "epochs": st.sampled_from([0, 1, 2, (1, 2)]),
    "learning_rate": st.sampled_from([0.0, 0.01, 1e9, float("nan")]),
    "weight_decay": st.sampled_from([-1.0, 0.0, 1e-3]),
    "valid_fraction": st.sampled_from([0.0, 0.2, 1.5]),
}


@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data(), edges=edge_lists(), chosen=st.fixed_dictionaries({}, optional=LEGAL), classes=st.integers(1, 3))
def test_any_settings_give_probabilities_or_one_clear_error(data, edges, chosen, classes):
    features = data.draw(features_of(edges.nodes))
    labels = np.arange(edges.nodes) % classes
    weights = np.ones(len(edges.source)) if edges.weights is None else edges.weights
    adjacency = coo_array((weights, (edges.source, edges.target)), shape=(edges.nodes,) * 2).tocsr()
    adjacency = adjacency.maximum(adjacency.T)
    chosen = {"epochs": 1, "hidden": 4, **chosen}
    try:
        fitted = GAMLPClassifier(**chosen).fit(features, labels, adjacency=adjacency)
    except GamlpError as error:
        assert "\n" in str(error), error  # what was found, and what to do
        return
    found = fitted.predict_proba(features, adjacency=adjacency)
    assert found.shape == (edges.nodes, classes)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    again = GAMLPClassifier(**chosen).fit(features, labels, adjacency=adjacency)
    np.testing.assert_array_equal(again.probabilities_, fitted.probabilities_)
