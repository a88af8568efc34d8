"""Trust on the road: kept in the model file, the same on every path, and blind to test labels."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp import GAMLPClassifier
from gamlp.errors import FormatError, SettingsError
from gamlp.graph.splits import Split
from gamlp.methods import method_named
from gamlp.model_file import load_fitted
from gamlp.pipeline import Pipeline
from gamlp.storage.files import read_json, write_json
from gamlp.trust.measure import set_data, trust_data
from gamlp.trust.promise import promised_sets

QUICK = {"hidden": 8, "epochs": [8], "hops": 2, "head_layers": 2, "labels": True, "label_layers": 1,
         "learning_rate": 0.02}  # fmt: skip


def fit(graph, method="gamlp-jk", **more):
    how = method_named(method)
    chosen = {key: value for key, value in (QUICK | more).items() if key in how.setting_names()}
    return Pipeline(how, how.settings_from(chosen | how.fixed)).fit(graph, graph.split, 0)


def test_shuffled_test_labels_change_neither_temperature_nor_any_set(planted):
    labels = planted.labels.copy()
    labels[planted.split.test] = np.random.default_rng(1).permutation(labels[planted.split.test])
    assert (labels != planted.labels).any()
    for share in (0.0, 0.5):
        one, other = (fit(graph, calibration_share=share) for graph in (planted, planted.with_labels(labels)))
        assert one.trust.data() == other.trust.data()
        for name, values in one.trust.arrays().items():
            assert_array_equal(values, other.trust.arrays()[name])
        for coverage in (0.5, 0.8, 0.9):
            assert_array_equal(
                one.sets(one.prediction, planted, coverage), other.sets(other.prediction, planted, coverage)
            )


def test_labels_of_nodes_apart_reach_the_scores_alone(planted):
    """What is learned, the temperature and λ stay the same whatever the labels of the nodes are that promise."""
    fitted = fit(planted, calibration_share=0.4)
    assert fitted.trust.conformal.apart
    apart = np.setdiff1d(planted.split.valid, learned_from(planted, 0.4))
    assert len(apart) == len(fitted.trust.conformal.scores) == 18
    labels = planted.labels.copy()
    labels[apart] = (labels[apart] + 1) % 3
    other = fit(planted.with_labels(labels), calibration_share=0.4)
    assert_array_equal(other.uncalibrated, fitted.uncalibrated)
    assert other.trust.temperature == fitted.trust.temperature
    assert other.trust.conformal.diffusion == fitted.trust.conformal.diffusion
    assert (other.trust.conformal.scores != fitted.trust.conformal.scores).any()


def learned_from(graph, share):
    from gamlp.trust.conformal import set_aside

    return set_aside(graph.split.valid, share, 0)[0]


@pytest.mark.parametrize("method", ["gamlp-jk", "sgc+cs", "label-propagation"])
def test_a_stored_model_says_the_same(planted, tmp_path, method):
    fitted = fit(planted, method)
    fitted.save(tmp_path)
    again = load_fitted(tmp_path)
    said = again.predict(planted, split=planted.split)
    assert_array_equal(said.probabilities, fitted.prediction.probabilities)
    assert_array_equal(again.sets(said, planted, 0.9), fitted.sets(fitted.prediction, planted, 0.9))
    assert again.trust.data() == json.loads(json.dumps(fitted.trust.data()))


def test_logits_are_those_of_the_calibrated_probabilities(planted):
    fitted = fit(planted, epochs=[60])
    assert fitted.trust.temperature.value != 1
    said = fitted.predict(planted, split=planted.split)
    logits = said.logits - said.logits.max(axis=1, keepdims=True)
    np.testing.assert_allclose(
        said.probabilities, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), atol=1e-6
    )
    assert_array_equal(said.probabilities.argmax(axis=1), fitted.uncalibrated.argmax(axis=1))


def test_a_model_of_an_older_version_is_read_without(planted, tmp_path):
    fitted = fit(planted)
    replace(fitted, trust=None).save(tmp_path)
    content = read_json(tmp_path / "model.json")
    del content["trust"]
    write_json(tmp_path / "model.json", content)
    again = load_fitted(tmp_path)
    assert_array_equal(again.predict(planted, split=planted.split).probabilities, fitted.uncalibrated)
    with pytest.raises(SettingsError, match="no validation labels to promise"):
        again.sets(fitted.prediction, planted, 0.9)


@pytest.mark.parametrize("value", [0, -1, "warm", None])
def test_a_damaged_temperature_is_refused(planted, tmp_path, value):
    fit(planted).save(tmp_path)
    content = read_json(tmp_path / "model.json")
    content["trust"]["temperature"] = value
    write_json(tmp_path / "model.json", content)
    with pytest.raises(FormatError, match="do not belong together"):
        load_fitted(tmp_path)


def test_without_validation_nodes_nothing_is_promised(planted):
    split = Split(planted.split.train, np.zeros(0, np.int64), planted.split.test)
    fitted = fit(replace(planted, split=split))
    assert fitted.trust is None
    assert fitted.uncalibrated is fitted.prediction.probabilities
    with pytest.raises(SettingsError, match="Train again, with validation nodes"):
        promised_sets(fitted, fitted.prediction, planted, 0.9, own=True)
    assert "coverage" not in trust_data(fitted, planted, split)


def test_what_a_run_keeps_of_it(planted):
    fitted = fit(planted)
    data = trust_data(fitted, planted, planted.split)
    assert data["test"]["after"]["nodes"] == len(planted.split.test)
    levels = {level["asked"]: level for level in data["coverage"]}
    assert sorted(levels) == [0.8, 0.9, 0.95]
    sets = fitted.sets(fitted.prediction, planted, 0.9)[planted.split.test]
    labels = planted.labels[planted.split.test]
    assert levels[0.9]["coverage"] == np.mean([row[label] for row, label in zip(sets, labels, strict=True)])
    assert json.loads(json.dumps(data)) == data


def test_the_numbers_of_sets_by_hand():
    sets = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]], bool)
    found = set_data(sets, np.array([1, 1, 0, 2]))
    assert found["coverage"] == 0.5 and found["mean_size"] == 1.0
    assert (found["empty"], found["one_class"]) == (0.25, 0.5)
    assert found["class_coverage"] == [0.0, 0.5, 1.0] and found["class_nodes"] == [1, 2, 1]
    assert set_data(sets[:2], np.array([1, 1]))["class_coverage"] == [None, 0.5, None]


def test_the_estimator_gives_the_sets_of_the_pipeline(planted, tmp_path):
    model = GAMLPClassifier("gamlp-jk", settings=QUICK).fit(planted)
    fitted = Pipeline(method_named("gamlp-jk"), model.settings_).fit(planted, planted.split, 0)
    expected = fitted.sets(fitted.prediction, planted, 0.8)
    assert_array_equal(model.predict_set(planted, coverage=0.8), expected)
    model.save(tmp_path)
    assert_array_equal(GAMLPClassifier.load(tmp_path).predict_set(planted, coverage=0.8), expected)


def test_another_graph_is_warned_of(planted, make_planted):
    model = GAMLPClassifier("gamlp-jk", settings=QUICK).fit(planted)
    with pytest.warns(UserWarning, match="this is another one"):
        sets = model.predict_set(make_planted(seed=5), coverage=0.9)
    assert sets.shape == (240, 3)


def test_rows_without_edges_are_no_other_graph():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3)).astype(np.float32)
    y = (X[:, 0] + random.normal(size=300) > 0).astype(int)
    model = GAMLPClassifier(epochs=20, hidden=8, valid_fraction=0.3).fit(X, y)
    sets = model.predict_set(random.normal(size=(200, 3)).astype(np.float32), coverage=0.9)
    assert sets.shape == (200, 2)


def test_a_shift_is_found_without_labels(planted):
    """Validation nodes in the thick of the graph, test nodes at its edge."""
    degree = np.diff(planted.adjacency.indptr)
    rest = np.setdiff1d(np.arange(planted.nodes), planted.split.train)
    rest = rest[np.argsort(-degree[rest], kind="stable")]
    split = Split(planted.split.train, np.sort(rest[:80]), np.sort(rest[80:]))
    graph = replace(planted, split=split)
    fitted = fit(graph)
    assert "degree" in fitted.trust.own_shift["found"]
    promise = promised_sets(fitted, fitted.prediction, graph, 0.9, own=True)
    assert promise.facts["promise"] == "none"
    assert "are not alike" in promise.warnings[0]
