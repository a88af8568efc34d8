"""gamlp predict --coverage: columns, abstention, what --json says, and refusals."""

import json

import pytest
from pyarrow import csv, parquet


@pytest.fixture(scope="module")
def run(gamlp, files, quick, tmp_path_factory):
    out = tmp_path_factory.mktemp("sets") / "run"
    done = gamlp("train", files.edges, files.nodes, "--method", "gamlp-jk", "--seeds", 1, *quick, "--out", out)
    assert done.code == 0, done.err
    return out


def test_sets_stand_beside_predictions(gamlp, run, tmp_path):
    done = gamlp("predict", run, "--coverage", 0.8, "--probabilities", "--out", tmp_path / "p.parquet", "--json")
    assert done.code == 0, done.err
    found, rows = json.loads(done.out)["sets"], parquet.read_table(tmp_path / "p.parquet").to_pylist()
    assert found["coverage"] == 0.8 and found["calibration_nodes"] == 45 and not found["apart"]
    sizes = [len(row["classes"].split("|")) if row["classes"] else 0 for row in rows]
    assert found["mean_size"] == pytest.approx(sum(sizes) / len(sizes))
    for row in rows:
        if row["classes"]:
            names = row["classes"].split("|")
            chances = [row[f"probability_{name}"] for name in names]
            assert chances == sorted(chances, reverse=True)


def test_abstention_leaves_the_class_empty_unless_the_set_has_one(gamlp, run, tmp_path):
    assert gamlp("predict", run, "--coverage", 0.9, "--abstain", "--out", tmp_path / "p.csv").code == 0
    rows = csv.read_csv(tmp_path / "p.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True)).to_pylist()
    assert any(row["predicted"] is None for row in rows)
    for row in rows:
        names = (row["classes"] or "").split("|") if row["classes"] else []
        assert row["predicted"] == (names[0] if len(names) == 1 else None)


def test_words_say_what_is_promised_and_by_what(gamlp, run, tmp_path):
    done = gamlp("predict", run, "--coverage", 0.9, "--out", tmp_path / "p.csv")
    told = " ".join(done.out.split())
    assert "contain the truth in 90 % of the cases by the word of 45 validation nodes" in told
    assert "calibration_share" in told


def test_another_graph_is_warned_of(gamlp, run, files_of, make_planted, tmp_path):
    other = files_of(make_planted(nodes=90, features=4, degree=4, labelled=6, seed=3), tmp_path / "other")
    words = ("predict", run, other.edges, other.nodes, "--coverage", 0.8, "--out", tmp_path / "p.csv", "--json")
    done = gamlp(*words)
    assert done.code == 0, done.err
    assert any("this is another one" in sentence for sentence in json.loads(done.out)["warnings"])
    assert json.loads(done.out)["sets"]["promise"] == "none"


def test_nodes_kept_apart_make_the_promise(gamlp, files, quick, tmp_path):
    words = ("--method", "gamlp-jk", "--seeds", 1, *quick, "--set", "calibration_share=0.5")
    assert gamlp("train", files.edges, files.nodes, *words, "--out", tmp_path / "run").code == 0
    done = gamlp("predict", tmp_path / "run", "--coverage", 0.8, "--out", tmp_path / "p.csv", "--json")
    found = json.loads(done.out)["sets"]
    assert found["apart"] and found["calibration_nodes"] == 22 and found["promise"] == "kept apart"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--coverage", "0.99"], "needs at least 99 validation labels"),
        (["--coverage", "1"], "between 0 and 1"),
        (["--coverage", "90"], "between 0 and 1"),
        (["--abstain"], "--abstain was given without --coverage"),
    ],
)
def test_what_cannot_be_promised_is_refused(gamlp, run, tmp_path, words, message):
    done = gamlp("predict", run, *words, "--out", tmp_path / "p.csv")
    assert done.code != 0 and message in done.err
    assert not (tmp_path / "p.csv").exists()
