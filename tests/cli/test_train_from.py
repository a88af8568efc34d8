"""gamlp train --from: begins with a run's weights, on the graph as it is now, and says whether it became better."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from conftest import SMALL, run_gamlp, write_files

SET = [word for one in SMALL for word in ("--set", one)]


@pytest.fixture(scope="module")
def place(make_planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("from")
    write_files(make_planted(90), folder / "files")
    files = (folder / "files" / "edges.csv", folder / "files" / "nodes.csv")
    assert run_gamlp("import", *files, "--out", folder / "graph").code == 0
    words = [
        "train",
        folder / "graph",
        "--method",
        "gamlp-jk+rlu+labels",
        "--seeds",
        2,
        "--out",
        folder / "run",
        *SET,
        "--set",
        "keep_stage=last",
    ]
    assert run_gamlp(*words).code == 0
    (folder / "edges.csv").write_text("source,target\nnode-0,node-50\nnode-3,node-44\n")
    done = run_gamlp("update", folder / "graph", "--edges", folder / "edges.csv", "--out", folder / "next")
    assert done.code == 0, done.err
    return folder


def test_without_a_step_the_weights_are_those_of_the_run(place, tmp_path):
    """At a learning rate near 0 every stage of every seed is what it was, and validation says so."""
    words = ["train", "--from", place / "run", place / "next", "--out", tmp_path / "again", "--json"]
    done = run_gamlp(*words, "--set", "learning_rate=1e-30", "--set", "epochs=1,1")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["seeds"] == [0, 1]
    assert result["from"] == str(place / "run")
    for seed in ("seed-0", "seed-1"):
        old, new = (load_file(run / seed / "model.safetensors") for run in (place / "run", tmp_path / "again"))
        weights = [name for name in old if name.startswith("stage-") and "running" not in name and "num_" not in name]
        assert len(weights) > 20
        for name in weights:
            np.testing.assert_array_equal(old[name], new[name])


def test_it_says_what_the_run_had_on_the_new_graph(place, tmp_path):
    done = run_gamlp(
        "train", "--from", place / "run", place / "next", "--out", tmp_path / "again", "--set", "epochs=4,2"
    )
    assert done.code == 0, done.err
    assert "on validation here" in done.out
    record = json.loads((tmp_path / "again" / "run.json").read_text())
    assert record["result"]["start_valid_accuracy"] == pytest.approx(
        np.mean([one["start_valid_accuracy"] for one in record["result"]["runs"]])
    )
    again = run_gamlp("predict", tmp_path / "again", "--out", tmp_path / "own.csv")
    assert again.code == 0, again.err
    config = run_gamlp("config", tmp_path / "again")
    assert config.code == 2
    assert "--from" in config.err


def test_the_score_of_the_start_is_that_of_the_old_network(place, tmp_path):
    """On the run's own graph the old network has the score that the run has."""
    done = run_gamlp("train", "--from", place / "run", "--out", tmp_path / "again", "--json", "--set", "epochs=2,1")
    assert done.code == 0, done.err
    result, before = json.loads(done.out), json.loads((place / "run" / "run.json").read_text())["result"]
    assert result["start_valid_accuracy"] == pytest.approx(before["valid_accuracy"], abs=1e-12)


def test_what_chooses_says_whether_it_became_better(place, tmp_path):
    words = ["--set", "epochs=2,1", "--set", "metric=log_loss"]
    done = run_gamlp("train", "--from", place / "run", "--out", tmp_path / "again", "--json", *words)
    assert done.code == 0, done.err
    result, before = json.loads(done.out), json.loads((place / "run" / "run.json").read_text())["result"]
    assert result["start_valid_log_loss"] == pytest.approx(before["valid_log_loss"], rel=1e-6)


def test_a_portfolio_begins_with_its_members(place, tmp_path):
    words = ["--method", "portfolio", "--set", 'candidates=["label-propagation","s2gc"]', "--seeds", "1"]
    done = run_gamlp("train", place / "graph", *words, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done.err
    kept = [line["method"] for line in json.loads(done.out)["runs"][0]["tried"] if line["weight"]]
    again = run_gamlp("train", "--from", tmp_path / "run", place / "next", "--out", tmp_path / "again", "--json")
    assert again.code == 0, again.err
    assert [line["method"] for line in json.loads(again.out)["runs"][0]["tried"]] == kept


def test_killed_it_goes_on_to_the_same_bits(place, tmp_path, monkeypatch):
    from gamlp.train import stage

    words = ["train", "--from", place / "run", place / "next", "--set", "epochs=3,2"]
    assert run_gamlp(*words, "--out", tmp_path / "whole").code == 0
    plain, seen = stage.run_epoch, []

    def run_epoch(*given, key, **options):
        seen.append(key)
        if len(seen) == 7:
            raise KeyboardInterrupt
        return plain(*given, key=key, **options)

    monkeypatch.setattr(stage, "run_epoch", run_epoch)
    assert run_gamlp(*words, "--out", tmp_path / "part").code == 130
    monkeypatch.setattr(stage, "run_epoch", plain)
    assert run_gamlp("train", "--resume", tmp_path / "part").code == 0
    for seed in ("seed-0", "seed-1"):
        both = [np.load(tmp_path / run / seed / "probabilities.npy") for run in ("whole", "part")]
        np.testing.assert_array_equal(*both)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--method", "gamlp-jk"], "beside --from"),
        (["--seeds", "1"], "beside --from"),
        (["--recipe", "default"], "beside --from"),
        (["--set", "hidden=9"], "its weights fit no other"),
        (["--set", "hops=1"], "its weights fit no other"),
    ],
)
def test_what_would_be_another_network_is_refused(place, tmp_path, words, said):
    done = run_gamlp("train", "--from", place / "run", *words, "--out", tmp_path / "x")
    assert done.code == 2, done.err
    assert said in done.err


def test_other_classes_columns_and_methods_are_refused(place, tmp_path):
    head = (place / "files" / "nodes.csv").read_text().splitlines()[0].replace('"', "").split(",")
    (tmp_path / "nodes.csv").write_text(
        ",".join(head) + "\nfresh,another," + "train," + ",".join(["1"] * (len(head) - 3))
    )
    assert run_gamlp("update", place / "graph", "--nodes", tmp_path / "nodes.csv", "--out", tmp_path / "more").code == 0
    done = run_gamlp("train", "--from", place / "run", tmp_path / "more", "--out", tmp_path / "x")
    assert done.code == 2
    assert "the class 'another'" in done.err
    done = run_gamlp("train", place / "graph", "--method", "label-propagation", "--seeds", 1, "--out", tmp_path / "lp")
    assert done.code == 0, done.err
    done = run_gamlp("train", "--from", tmp_path / "lp", "--out", tmp_path / "x")
    assert done.code == 2
    assert "cannot begin with the weights" in done.err
