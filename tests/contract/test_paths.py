"""Path × option: every way from a graph to predictions gives the same numbers.

paths     command line, estimator; no limit, a memory limit, Ray; train, resume after a kill, predict the same graph
again, predict another graph, compare
options   plain, +rlu, +sle, +scr, +cs, with and without labels, float16, rows=labelled, weighted, directed, ids as
words and numbers, without features, several labels a node, class weights, one and several types of nodes; every family
of methods
"""

import numpy as np
import pytest
from paths import Case, asked, call, confidences, result_of

from gamlp import GAMLPClassifier
from gamlp.methods import BASES, method_named
from gamlp.methods.base import labels_of
from gamlp.model_file import load_fitted
from gamlp.targets.registry import SINGLE, kind_of
from gamlp.train import stage

PLAIN = [
    Case("gamlp-jk"),
    Case("gamlp-jk+rlu"),
    Case("sagn+sle"),
    Case("gamlp-recursive+scr"),
    Case("sgc+cs"),
    Case("gamlp-recursive+rlu+scr+cs"),
    Case("gamlp-jk-labels"),
    Case("gamlp-smoothing", settings={"feature_scaling": "standard"}),
    Case("gamlp-jk+rlu", settings={"storage": "float16"}),
    Case("gamlp-jk+rlu", settings={"rows": "labelled"}),
    Case(
        "gamlp-jk+rlu",
        settings={
            "jk_reference": "steps",
            "label_weights": "residual",
            "reliable_propagation": False,
            "combined_dropout": 0.3,
        },
    ),
    Case("gamlp-recursive+rlu+scr", settings={"unlabelled_rows": 20, "temperature": 0.5, "threshold": 0.3}),
    Case("gamlp-jk+rlu+cs", "weighted"),
    Case("gamlp-jk+cs", settings={"calibration_share": 0.4}),
    Case("gamlp-recursive+rlu", settings={"head_residual": "features", "head_layers": 3}),
    Case("gamlp-jk+rlu", "directed"),
    Case("sign", "numbered", {"components": 2}),
    Case("label-propagation+cs", "weighted"),
    Case("gamlp-jk+rlu+cs", "bare"),
    Case("label-propagation", "bare"),
    Case("portfolio", settings={"candidates": ["label-propagation", "mlp", "gamlp-jk+rlu"], "minutes": 60}),
    Case("portfolio", "bare", {"candidates": ["sgc", "s2gc"]}),
    Case("boosting", settings={"epochs": [4], "evaluate_every": 2, "class_weight": "balanced"}),
    Case("boosting+cs", "bare", {"epochs": [2]}),
    Case("portfolio+cs", "labels", {"candidates": ["label-propagation", "s2gc"], "calibration_share": 0.3}),
    Case("gcn"),
    Case("gcn", "bare"),
    Case("gamlp-jk+rlu+cs", "labels"),
    Case("sagn+sle", "labels", {"metric": "average_precision", "class_weight": "balanced"}),
    Case("gamlp-recursive+rlu+scr", "labels"),
    Case("label-propagation+cs", "labels"),
    Case("gcn", "labels", {"class_weight": "balanced"}),
    Case("gamlp-jk", settings={"metric": "roc_auc", "class_weight": "balanced"}),
    Case("unimp+reuse+cs"),
    Case("vr-gcn", settings={"batch_size": 8}),
    Case("as-gcn", "weighted", {"batch_size": 8}),
]
TYPES = [
    Case("nars-gamlp-recursive+rlu", "types"),
    Case("nars-sagn+sle", "types"),
    Case("gamlp-jk", "types"),
    Case("label-propagation", "types"),
    Case("portfolio", "types", {"candidates": ["nars"]}),
    Case("rgcn", "types"),
    Case("r-hgnn", "types", {"full_batch_up_to": 0, "batch_size": 8, "nodes_a_type": 10}),
]
ALL = PLAIN + TYPES
NAMED = {method_named(case.method).base for case in ALL}
OTHERS = [  # whatever else is registered
    Case(name, "types" if method_named(name).needs_relations else "plain") for name in BASES if name not in NAMED
]


def on_hops(cases):
    return [case for case in cases if method_named(case.method).uses_engine]


def each(cases):
    return pytest.mark.parametrize("case", cases, ids=str)


def assert_same(run, other):
    for one, two in zip(result_of(run), result_of(other), strict=True):
        np.testing.assert_array_equal(one, two)


@each(on_hops(ALL))
def test_a_memory_limit_changes_nothing(case, trained, worlds, tmp_path):
    call("train", *worlds.words(case.graph), *asked(case), "--out", tmp_path / "run", "--memory", "64MiB")
    assert_same(trained(case), tmp_path / "run")


@each([Case("gamlp-jk+rlu"), Case("nars-gamlp-recursive+rlu", "types")])
def test_a_cluster_changes_nothing(case, trained, worlds, tmp_path):
    words = ("--engine", "ray", "--memory", "64MiB")
    call("train", *worlds.words(case.graph), *asked(case), "--out", tmp_path / "run", *words)
    assert_same(trained(case), tmp_path / "run")


@each([case for case in ALL if method_named(case.method).on_hops])
def test_a_killed_run_goes_on_to_the_same_numbers(case, trained, worlds, tmp_path, monkeypatch):
    plain, count = stage.run_epoch, []

    def killed(*words, **named):
        count.append(1)
        if len(count) == 5:
            raise KeyboardInterrupt
        return plain(*words, **named)

    monkeypatch.setattr(stage, "run_epoch", killed)
    monkeypatch.setattr(stage.Checkpoint, "due", lambda self: self.path is not None)
    with pytest.raises(AssertionError, match="Interrupted"):
        call("train", *worlds.words(case.graph), *asked(case), "--out", tmp_path / "run")
    monkeypatch.setattr(stage, "run_epoch", plain)
    call("train", "--resume", tmp_path / "run")
    assert_same(trained(case), tmp_path / "run")


@each(ALL + OTHERS)
def test_the_same_graph_named_again_is_predicted_as_it_was(case, trained, worlds, tmp_path):
    run = trained(case)
    call("predict", run, *worlds.words(case.graph), "--out", tmp_path / "again.parquet")
    assert confidences(tmp_path / "again.parquet") == confidences(run / "predictions.parquet")


@each(ALL + OTHERS)
def test_a_stored_model_repeats_what_it_said(case, trained, worlds):
    graph = worlds.read(case.graph)
    said = load_fitted(trained(case) / "seed-0").predict(graph, split=graph.split)
    rows, probabilities = result_of(trained(case))
    np.testing.assert_array_equal(said.rows, rows)
    np.testing.assert_array_equal(said.probabilities, probabilities)


@each(ALL)
def test_compare_gives_what_train_gives(case, trained, worlds, tmp_path):
    words = ["--methods" if word == "--method" else word for word in asked(case)]
    call("compare", *worlds.words(case.graph), *words, "--out", tmp_path / "all")
    assert_same(trained(case), tmp_path / "all" / case.method)


@pytest.mark.filterwarnings("ignore:.*was set and has no effect")  # all cases share their settings
@each([case for case in PLAIN if "rows" not in case.settings])
def test_the_estimator_gives_what_the_command_line_gives(case, trained, worlds, tmp_path):
    graph, other = worlds.read(case.graph), worlds.read(case.graph, "other")
    fitted = GAMLPClassifier(case.method, settings=case.chosen).fit(
        graph.features, known_labels(graph), adjacency=graph.adjacency, valid=graph.split.valid
    )
    np.testing.assert_array_equal(fitted.probabilities_, result_of(trained(case))[1])
    call("predict", trained(case), *worlds.words(case.graph, "other"), "--out", tmp_path / "other.parquet")
    told = confidences(tmp_path / "other.parquet")
    kind = kind_of(other.labels)
    labels = np.array(other.classes)[other.labels] if kind is SINGLE else other.labels
    said = fitted.predict_proba(other.features, other.adjacency, labels)
    assert [told[name][1] for name in other.names.tolist()] == kind.sureness(said).tolist()


@each(on_hops(ALL))
def test_another_graph_is_predicted_alike_within_a_limit(case, trained, worlds, tmp_path):
    for name, words in (("free", ()), ("limited", ("--memory", "64MiB"))):
        call(
            "predict", trained(case), *worlds.words(case.graph, "other"), "--out", tmp_path / f"{name}.parquet", *words
        )
    assert confidences(tmp_path / "free.parquet") == confidences(tmp_path / "limited.parquet")


@each([Case("gamlp-jk+rlu", "directed"), Case("gamlp-jk+rlu+cs", "weighted")])
def test_a_run_remembers_how_its_graph_is_read(case, trained, worlds, tmp_path):
    files = [word for word in worlds.words(case.graph, "other") if word != "--directed"]
    call("predict", trained(case), *files, "--out", tmp_path / "without.parquet")
    call("predict", trained(case), *worlds.words(case.graph, "other"), "--out", tmp_path / "with.parquet")
    assert confidences(tmp_path / "without.parquet") == confidences(tmp_path / "with.parquet")


def known_labels(graph):
    """The labels of train and valid by name, "" elsewhere; several of a node as 0 and 1, −1 elsewhere."""
    if graph.labels.ndim > 1:
        return labels_of(graph.labels, np.concatenate([graph.split.train, graph.split.valid]))
    names = np.array(graph.classes, dtype=object)[graph.labels]
    names[graph.split.test] = ""
    return names
