"""The scikit-learn face: its own checks, and what is ours: graphs, unknown labels, saving without pickle."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gamlp import GAMLPClassifier
from gamlp.errors import (
    FormatError,
    IdError,
    InputError,
    LabelError,
    NotFiniteError,
    SettingsError,
    ShapeError,
    SplitError,
)
from gamlp.storage.files import read_json, write_json

QUICK = {"hidden": 16, "epochs": 15, "learning_rate": 0.03}
PLAIN = {"head_layers": 2, "batch_norm": False}
LONGER = {
    "hidden": 16,
    "epochs": 60,
    "learning_rate": 0.01,
    "settings": {"head_layers": 2, "labels": True, "label_layers": 2},
}


@parametrize_with_checks([GAMLPClassifier("mlp", settings=PLAIN, **QUICK)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def scipy_of(adjacency) -> sparse.csr_array:
    ones = np.ones(adjacency.entries, np.float32)
    return sparse.csr_array((ones, adjacency.indices, adjacency.indptr), shape=(adjacency.nodes, adjacency.nodes))


def training_labels(graph):
    """Labels of train and valid, −1 elsewhere."""
    y = np.full(graph.nodes, -1)
    known = np.concatenate([graph.split.train, graph.split.valid])
    y[known] = graph.labels[known]
    return y


@pytest.fixture(scope="module")
def world(make_planted):
    """A graph whose edges tell far more than its features, and a classifier fitted on it."""
    graph = make_planted()
    A = scipy_of(graph.adjacency)
    y = training_labels(graph)
    fitted = GAMLPClassifier(**LONGER).fit(graph.features, y, adjacency=A, valid=graph.split.valid)
    return graph, A, y, fitted


def test_the_graph_helps(world):
    graph, A, y, fitted = world
    test = graph.split.test
    alone = GAMLPClassifier(**LONGER).fit(graph.features[y >= 0], y[y >= 0])
    with_graph = (fitted.predict(graph.features, adjacency=A)[test] == graph.labels[test]).mean()
    without = (alone.predict(graph.features[test]) == graph.labels[test]).mean()
    assert with_graph > without + 0.15


def test_what_a_fit_leaves(world):
    graph, A, _, fitted = world
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.probabilities_.shape == (240, 3)
    np.testing.assert_allclose(fitted.probabilities_.sum(axis=1), 1, atol=1e-5)
    assert fitted.attention_.shape == (240, fitted.settings_.hops + 1)
    assert fitted.n_iter_ <= 60
    assert fitted.history_[-1]["epoch"] == fitted.n_iter_
    np.testing.assert_array_equal(fitted.predict_proba(graph.features, adjacency=A), fitted.probabilities_)


def test_the_same_random_state_gives_the_same_bits(world):
    graph, A, y, fitted = world
    one, again, other = (
        clone(fitted).set_params(epochs=3, random_state=seed).fit(graph.features, y, adjacency=A) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.probabilities_, again.probabilities_)
    assert (one.probabilities_ != other.probabilities_).any()


def test_a_generator_is_drawn_from(world):
    graph, A, y, _ = world
    one, two = (
        GAMLPClassifier(hidden=8, epochs=2, random_state=np.random.RandomState(seed)).fit(graph.features, y, A)
        for seed in (3, 4)
    )
    assert (one.probabilities_ != two.probabilities_).any()


@pytest.mark.parametrize("unknown", [-1, None, "", "-1"])
def test_words_and_what_marks_the_unknown_among_them(world, unknown):
    graph, A, y, fitted = world
    words = np.array(["cat", "dog", "elephant", unknown], dtype=object)[y]
    numbered = clone(fitted).set_params(epochs=2).fit(graph.features, y, adjacency=A)
    named = clone(fitted).set_params(epochs=2).fit(graph.features, words, adjacency=A)
    assert named.classes_.tolist() == ["cat", "dog", "elephant"]
    np.testing.assert_array_equal(named.probabilities_, numbered.probabilities_)
    expected = named.classes_[numbered.predict(graph.features, adjacency=A)]
    assert named.predict(graph.features, adjacency=A).tolist() == expected.tolist()


def test_none_among_numbers_leaves_numbers(world):
    graph, A, y, fitted = world
    mixed = np.array([None if value < 0 else int(value) for value in y], dtype=object)
    assert clone(fitted).set_params(epochs=1).fit(graph.features, mixed, adjacency=A).classes_.dtype.kind == "i"


def test_minus_one_is_a_class_where_there_is_no_graph():
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)
    fitted = GAMLPClassifier(**QUICK).fit(X, y)
    assert fitted.classes_.tolist() == [-1, 1]
    assert set(fitted.predict(X)) == {-1, 1}


def test_a_class_named_none_is_a_class(world):
    graph, A, y, fitted = world
    words = np.array(["None", "nan", "x", ""])[y]
    assert clone(fitted).set_params(epochs=1).fit(graph.features, words, A).classes_.tolist() == ["None", "nan", "x"]


def test_a_new_graph_is_predicted(world, make_planted):
    graph, *_, fitted = world
    other = make_planted(nodes=300, seed=3)  # other edges; features of the same classes, with noise of their own
    centres = np.stack([graph.features[graph.labels == label].mean(axis=0) for label in range(3)])
    X = (centres[other.labels] + 2 * np.random.default_rng(5).normal(size=(300, 12))).astype(np.float32)
    known = np.where(np.arange(300) % 10 == 0, other.labels, -1)
    hidden = known < 0
    predicted = fitted.predict(X, adjacency=scipy_of(other.adjacency), y=known)
    assert (predicted == other.labels)[hidden].mean() > 0.85


def test_a_grown_graph_uses_the_labels_it_is_given(world):
    graph, A, y, fitted = world
    random = np.random.default_rng(1)
    links = sparse.lil_array((250, 250), dtype=np.float32)
    links[:240, :240] = A
    for new in range(240, 250):  # ten new nodes of class 0, tied to training nodes of class 0
        links[new, random.choice(np.flatnonzero(y == 0), 5)] = 1
    X = np.vstack([graph.features, np.zeros((10, 12), np.float32)])
    grown = np.concatenate([y, np.full(10, -1)])
    told = fitted.predict_proba(X, adjacency=links.tocsr(), y=grown)
    untold = fitted.predict_proba(X, adjacency=links.tocsr())
    assert told.shape == (250, 3)
    assert told[240:, 0].mean() > untold[240:, 0].mean()


def test_labels_of_other_classes_are_unknown_not_cut_to_fit(world):
    graph, A, y, fitted = world
    named = clone(fitted).set_params(epochs=1).fit(graph.features, np.array(["a", "b", "c", ""])[y], adjacency=A)
    longer = np.array(["abc", "bcd", "cde", ""])[y]
    X = graph.features + 1  # another graph, so that the stored probabilities are not what comes back
    nothing = np.full(len(y), "")
    np.testing.assert_array_equal(named.predict_proba(X, A, y=longer), named.predict_proba(X, A, y=nothing))


def test_the_score_ignores_the_unknown(world):
    graph, A, _, fitted = world
    right = fitted.predict(graph.features, adjacency=A) == graph.labels
    some = np.where(np.arange(240) < 100, graph.labels, -1)
    assert fitted.score(graph.features, some, adjacency=A) == pytest.approx(right[:100].mean())
    weight = np.arange(240.0)
    expected = np.average(right[:100], weights=weight[:100])
    assert fitted.score(graph.features, some, adjacency=A, sample_weight=weight) == pytest.approx(expected)


def test_an_adjacency_may_be_dense_sparse_or_ours(world):
    graph, A, _, fitted = world
    for same in (A.toarray(), A.tocoo(), sparse.triu(A), graph.adjacency):
        np.testing.assert_array_equal(fitted.predict_proba(graph.features, adjacency=same), fitted.probabilities_)


def test_sparse_features_are_the_same_features(world):
    graph, A, _, fitted = world
    X = sparse.csr_array(graph.features)
    np.testing.assert_array_equal(fitted.predict_proba(X, adjacency=A), fitted.probabilities_)


def test_saved_and_loaded_to_the_same_bits_without_pickle(world, tmp_path):
    graph, A, y, fitted = world
    fitted.save(tmp_path / "model")
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}
    loaded = GAMLPClassifier.load(tmp_path / "model")
    assert loaded.get_params() == fitted.get_params()
    assert loaded.n_iter_ == fitted.n_iter_
    assert loaded.settings_ == fitted.settings_
    for X in (graph.features, graph.features + 1):  # stored probabilities, and the network's own
        np.testing.assert_array_equal(loaded.predict_proba(X, A), fitted.predict_proba(X, A))
    assert loaded.score(graph.features, y, A) == fitted.score(graph.features, y, A)


def test_a_plain_network_with_words_and_numpy_parameters_is_saved(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    classifier = GAMLPClassifier(
        "gamlp-jk+rlu", hidden=np.int64(8), epochs=(2, 3), random_state=np.random.RandomState(0)
    )
    classifier.fit(X, y).save(tmp_path / "model")
    loaded = GAMLPClassifier.load(tmp_path / "model")
    assert (loaded.hidden, loaded.epochs, loaded.random_state) == (8, (2, 3), None)
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    assert loaded.predict(X).tolist() == classifier.predict(X).tolist()


def test_what_would_change_nothing_is_refused_or_said(world):
    graph, A, y, _ = world
    with pytest.raises(SettingsError, match="the epochs of one stage, 2"):
        GAMLPClassifier("gamlp-jk+rlu", epochs=2).fit(graph.features, y, adjacency=A)
    with pytest.warns(UserWarning, match="threshold was set and has no effect: gamlp-jk has one stage"):
        GAMLPClassifier(hidden=4, epochs=1, settings={"threshold": 0.7}).fit(graph.features, y, adjacency=A)


def test_a_folder_that_is_no_classifier_is_refused(world, tmp_path):
    *_, fitted = world
    fitted.save(tmp_path / "model")
    facts = read_json(tmp_path / "model" / "classifier.json")
    for broken in ([], {}, {**facts, "kind": "no such type"}, {**facts, "parameters": {"depth": 3}}):
        write_json(tmp_path / "model" / "classifier.json", broken)
        with pytest.raises(FormatError):
            GAMLPClassifier.load(tmp_path / "model")
    with pytest.raises(InputError):
        GAMLPClassifier.load(tmp_path / "nowhere")


def test_in_a_pipeline_the_adjacency_goes_to_the_last_step(world):
    graph, A, y, _ = world
    pipeline = make_pipeline(StandardScaler(), GAMLPClassifier(hidden=8, epochs=3))
    pipeline.fit(graph.features, y, gamlpclassifier__adjacency=A)
    scaled = StandardScaler().fit_transform(graph.features)
    alone = GAMLPClassifier(hidden=8, epochs=3).fit(scaled, y, adjacency=A)
    np.testing.assert_array_equal(pipeline.predict_proba(graph.features, adjacency=A), alone.probabilities_)


def test_parameters_are_set_cloned_and_searched_over(world):
    graph, *_ = world
    classifier = GAMLPClassifier("sgc", hops=3, settings={"label_hops": 2})
    copy = clone(classifier).set_params(hops=2)
    assert copy.get_params() == {**classifier.get_params(), "hops": 2}
    tell = (graph.labels == 0).astype(int)
    X = np.column_stack([tell + 0.01 * graph.features[:, 0], graph.features[:, 1]])
    scores = cross_val_score(GAMLPClassifier("mlp", settings=PLAIN, **QUICK), X, tell, cv=3)
    assert scores.min() > 0.9


def with_nan(X):
    X = X.copy()
    X[3, 4] = np.nan
    return X


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda X, y, A: {"adjacency": A[:-1, :-1]}, ShapeError, "239"),
        (lambda X, y, A: {"adjacency": A[:-1]}, ShapeError, "square"),
        (lambda X, y, A: {"adjacency": A * np.float32(np.nan)}, NotFiniteError, "weights"),
        (lambda X, y, A: {"adjacency": "cora"}, InputError, "adjacency"),
        (lambda X, y, A: {"X": with_nan(X)}, NotFiniteError, "Feature 4 of row 3 of X is NaN"),
        (lambda X, y, A: {"X": X.astype(np.float64) * 1e60}, NotFiniteError, "too large"),
        (lambda X, y, A: {"X": X[:0], "y": y[:0]}, InputError, "0 sample"),
        (lambda X, y, A: {"X": X[:, :0], "adjacency": None}, InputError, "0 feature"),
        (lambda X, y, A: {"X": X[0]}, InputError, "2D"),
        (lambda X, y, A: {"X": X.astype(str).astype(object) + "x"}, InputError, "could not convert"),
        (lambda X, y, A: {"y": None}, LabelError, "requires y"),
        (lambda X, y, A: {"y": y[:-1]}, ShapeError, "240 rows of X and 239 labels"),
        (lambda X, y, A: {"y": np.where(y >= 0, 7, -1)}, LabelError, "'7'"),
        (lambda X, y, A: {"y": np.full(240, -1)}, LabelError, "unknown"),
        (lambda X, y, A: {"y": np.stack([y, y], axis=1)}, LabelError, "0 or 1"),
        (lambda X, y, A: {"y": X[:, 0]}, LabelError, "continuous"),
        (lambda X, y, A: {"valid": [1000]}, IdError, "1,000"),
        (lambda X, y, A: {"valid": np.ones(7, bool)}, ShapeError, "mask"),
        (lambda X, y, A: {"valid": y >= 0}, SplitError, "no training node"),
        (lambda X, y, A: {"valid": y < 0}, SplitError, "no label"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(world, change, error, words):
    graph, A, y, _ = world
    given = {"X": graph.features, "y": y, "adjacency": A} | change(graph.features, y, A)
    with pytest.raises(error, match=words):
        GAMLPClassifier(epochs=1).fit(**given)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "gamlp-jl"}, "Did you mean 'gamlp-jk'"),
        ({"recipe": "defualt"}, "Did you mean 'default'"),
        ({"settings": {"hopps": 3}}, "Did you mean 'hops'"),
        ({"hops": -1}, "greater than or equal to 0"),
        ({"dropout": 1.5}, "less than 1"),
        ({"valid_fraction": 1.0}, "less than 1"),
        ({"device": "gpu"}, "device"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_settings_that_cannot_be_are_refused(world, parameters, words):
    graph, A, y, _ = world
    with pytest.raises(SettingsError, match=words):
        GAMLPClassifier(**{"epochs": 1, **parameters}).fit(graph.features, y, adjacency=A)


def test_predict_as_it_was_fitted(world):
    graph, A, _, fitted = world
    with pytest.raises(InputError, match="with an adjacency"):
        fitted.predict(graph.features)
    alone = GAMLPClassifier(hidden=8, epochs=1).fit(graph.features, graph.labels)
    with pytest.raises(InputError, match="without an adjacency"):
        alone.predict(graph.features, adjacency=A)
    with pytest.raises(InputError, match="12 features"):
        fitted.predict(graph.features[:, :5], adjacency=A)
    with pytest.raises(ShapeError, match="240 rows of X and 3 labels"):
        fitted.predict(graph.features, adjacency=A, y=[0, 1, 2])
    with pytest.raises(LabelError, match="None of the labels"):
        fitted.score(graph.features, np.full(240, -1), adjacency=A)


def test_embeddings_and_scores_of_nodes():
    """The head of the fitted network makes the logits of the embeddings; scores are log-probabilities."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 4)).astype(np.float32), np.arange(40) % 3
    edges = random.integers(0, 40, size=(2, 100))
    model = GAMLPClassifier("gamlp-jk-labels", hops=2, hidden=8, epochs=3)
    vectors = model.fit_transform(X, y, adjacency=edges)
    np.testing.assert_array_equal(vectors, model.transform(X, adjacency=edges))
    assert vectors.shape == (40, 8)
    head = model._fitted.learned.networks[-1].head
    with torch.no_grad():
        logits = head._layer(head.layers - 1, torch.from_numpy(vectors) @ head.weights[-1], skip=None)
    probabilities = model.predict_proba(X, adjacency=edges)
    np.testing.assert_allclose(torch.softmax(logits, dim=1).numpy(), probabilities, atol=1e-5)
    np.testing.assert_allclose(np.exp(model.decision_function(X, adjacency=edges)), probabilities, rtol=1e-5)


def test_methods_without_embeddings_have_no_transform():
    assert not hasattr(GAMLPClassifier("label-propagation"), "transform")
    assert hasattr(GAMLPClassifier("sign"), "transform")
