"""Probably wrong labels: the ranking by hand, folds that leave nobody out, and planted errors that are found."""

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gamlp.errors import SplitError
from gamlp.graph.splits import Split
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.trust.mislabelled import dealt, find_mislabelled, out_of_sample, ranked

QUICK = {"hops": 2, "epochs": [30], "labels": False, "learning_rate": 0.05}


def pipeline(method="sgc", **more):
    how = method_named(method)
    return Pipeline(how, how.settings_from({**QUICK, **more, **how.fixed}))


def test_the_ranking_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.45, 0.55]])
    labels = np.array([0, 0, 0, 1, 1])  # t = (0.9 + 0.7 + 0.2) / 3 = 0.6 and (0.6 + 0.55) / 2 = 0.575
    votes = np.array([[1, 0], [1, 0], [0.25, 0.75], [0, 1], [0, 1]])
    found = ranked(np.array([10, 11, 12, 13, 14]), labels, probabilities, votes)
    assert found.nodes.tolist() == [12, 14, 13, 11, 10]
    assert found.suspected.tolist() == [True, False, False, False, False]  # of 12 the class 1 has 0.8 ≥ 0.575
    assert_allclose(found.margin, [-0.6, 0.1, 0.2, 0.4, 0.8])
    assert found.suggested.tolist() == [1, 0, 0, 1, 1]
    assert found.agreement.tolist() == [0.75, 0, 0, 0, 0]


def test_a_class_must_be_as_likely_as_it_is_where_it_is_given():
    """Node 2 is rather 1 than 0, but 1 is usually given with far more certainty: not suspected, though behind."""
    probabilities = np.array([[0.9, 0.1], [0.05, 0.95], [0.4, 0.6]])
    found = ranked(np.arange(3), np.array([0, 1, 0]), probabilities, np.eye(3, 2))
    assert found.nodes[0] == 2 and not found.suspected.any()


def test_folds_share_out_every_class_and_leave_a_single_one_in():
    labels = np.array([0] * 10 + [1] * 7 + [2])
    fold_of = dealt(labels, 5, seed=0)
    assert fold_of[-1] == -1
    assert np.bincount(fold_of[:-1]).tolist() == [4, 4, 3, 3, 3]
    assert np.bincount(fold_of[:10]).tolist() == [2] * 5
    assert dealt(labels, 5, seed=0).tolist() == fold_of.tolist() != dealt(labels, 5, seed=1).tolist()


def test_nobody_is_judged_by_a_fit_that_trained_on_it(planted, monkeypatch):
    fitted, plain = [], Pipeline.fit
    monkeypatch.setattr(
        Pipeline, "fit", lambda self, graph, split, seed: fitted.append(split) or plain(self, graph, split, seed)
    )
    probabilities, votes = out_of_sample(pipeline(), planted, planted.split, 0, folds=3)
    assert np.isfinite(probabilities).all()
    assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    out = np.concatenate([np.setdiff1d(planted.split.train, split.train) for split in fitted])
    assert sorted(out) == planted.split.train.tolist()
    for split in fitted:
        assert split.valid.tolist() == planted.split.valid.tolist()
    assert set(np.unique(votes[planted.split.train])) == {0.0, 1.0}  # one fit each


def test_planted_errors_are_found(make_planted):
    graph = make_planted(nodes=600, noise=0.8, degree=8, labelled=60)
    wrong = np.random.default_rng(2).choice(graph.split.train, 18, replace=False)  # a tenth
    labels = graph.labels.copy()
    labels[wrong] = (labels[wrong] + 1) % 3
    found = find_mislabelled(pipeline(), graph.with_labels(labels), graph.split, 0)
    first = found.nodes[np.isin(found.nodes, graph.split.train)][:18]
    assert np.isin(first, wrong).mean() > 0.8
    right = found.suggested[np.isin(found.nodes, wrong) & found.suspected]
    assert (right == graph.labels[found.nodes[np.isin(found.nodes, wrong) & found.suspected]]).mean() > 0.8


def test_without_two_nodes_of_a_class_nothing_is_judged(planted):
    train = np.array([0, 1, 2])
    labels = np.where(np.arange(planted.nodes) < 3, planted.labels, -1)
    split = Split(train, np.zeros(0, np.int64), np.zeros(0, np.int64))
    with pytest.raises(SplitError, match="No label can be judged"):
        find_mislabelled(pipeline(rows="labelled"), planted.with_labels(labels), split, 0)


def test_the_command_writes_them(planted, tmp_path, capsys):
    from gamlp.cli import main
    from gamlp.graph.store import save_graph

    labels = planted.labels.copy()
    labels[planted.split.train[:4]] = (labels[planted.split.train[:4]] + 1) % 3
    save_graph(planted.with_labels(labels), tmp_path / "graph")
    words = ["--method", "sgc", "--seeds", "1", "--set", "epochs=20", "--set", "hops=2", "--out", str(tmp_path / "run")]
    for command in (["train", str(tmp_path / "graph"), *words, "--quiet"],
                    ["explain", str(tmp_path / "run"), "--mislabelled", "--json"]):  # fmt: skip
        with pytest.raises(SystemExit) as left:
            main(command)
        assert left.value.code == 0
    told = json.loads(capsys.readouterr().out.rpartition("\n{\n")[2].join(["{\n", ""]))["suspected"]
    rows = list(csv.DictReader((tmp_path / "run" / "explain" / "mislabelled.csv").read_text().splitlines()))
    assert rows and [row["id"] for row in told] == [row["id"] for row in rows]
    assert set(rows[0]) == {"id", "set", "label", "suggested", "margin", "agreement"}
    margins = [float(row["margin"]) for row in rows]
    assert margins == sorted(margins)
    assert all(row["label"] != row["suggested"] for row in rows)
