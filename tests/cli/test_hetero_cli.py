"""Heterogeneous graphs as a user meets them: raw files to report by one command, and what is refused."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from gamlp.cli.explain import shares_table
from gamlp.graph.readers.datasets import load_dataset
from gamlp.runs.comparison import methods_named
from raw_folders import AUTHORS, CLASSES, FIELDS, INSTITUTIONS, PAPERS, write_mag

EMBEDDING = "embedding={dimension=16, steps=30, batch_size=100, chunk=50, negatives=20}"
QUICK = (
    "epochs=30,5",
    "learning_rate=0.01",
    "hidden=16",
    "batch_size=64",
    "head_layers=2",
    "jk_layers=2",
    "label_layers=2",
    "evaluate_every=1",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    write_mag(root)
    return root


def words_of(*settings):
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture(scope="module")
def run(root, tmp_path_factory, gamlp):
    folder = tmp_path_factory.mktemp("runs") / "run"
    cache = tmp_path_factory.mktemp("cache")
    done = gamlp(
        "train", "ogbn-mag", "--root", root, "--seeds", 1, "--out", folder, "--cache", cache,
        *words_of(*QUICK, EMBEDDING), "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    return folder, json.loads(done.out), cache


def test_raw_files_become_a_report_by_one_command(run):
    folder, result, cache = run
    assert (result["recipe"], result["method"]) == ("ogbn-mag", "nars-gamlp-jk+rlu")
    assert result["test_accuracy"] > 0.7  # chance is 1/3, the features alone give about 0.5
    page = (folder / "report.html").read_text()
    for words in ("Weights of the relations", "affiliated_with + writes + cites + has_topic", "Single relations"):
        assert words in page
    weights = json.loads((folder / "seed-0" / "relations.json").read_text())
    assert np.allclose(np.sum(weights["weights"], axis=0), 1)
    assert np.allclose(np.sum(weights["relation_weights"], axis=0), 1)
    assert len(list(cache.glob("embeddings-*"))) == 1  # trained as part of the run, and kept
    assert np.load(folder / "seed-0" / "rows.npy").tolist() == list(range(PAPERS))  # papers alone are predicted


def test_predict_and_explain_the_run(gamlp, run, root, tmp_path):
    folder, _, _ = run
    done = gamlp("predict", folder, "--out", tmp_path / "p.csv", "--root", root)
    assert done.code == 0, done.err
    assert len((tmp_path / "p.csv").read_text().splitlines()) == PAPERS + 1
    done = gamlp("explain", folder, "--root", root, "--out", tmp_path / "explain", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert set(found["relations"]) == {"writes", "cites", "affiliated_with", "has_topic"}
    assert len(found["relation_subsets"]) == 8
    assert gamlp("explain", folder, "--root", root, "--node", 3).code == 0
    done = gamlp("predict", folder, "ogbn-mag", "--root", root, "--out", tmp_path / "again.csv")
    assert done.code == 0, done.err  # the same graph: what is stored
    ids = [line.split(",")[:3] for line in (tmp_path / "p.csv").read_text().splitlines()]
    assert [line.split(",")[:3] for line in (tmp_path / "again.csv").read_text().splitlines()] == ids


def test_shares_are_shown_as_a_table():
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(shares_table({"writes": [0.25, 0.5], "writes + cites": [0.75, 0.5]}, "relation subset"))
    text = console.export_text()
    assert " ".join(text.split()).startswith("Share of each relation subset in each hop")
    assert [word for word in text.split() if word.startswith("0.")] == ["0.250", "0.500", "0.750", "0.500"]


def test_a_model_without_embeddings_predicts_for_another_graph(gamlp, root, tmp_path):
    done = gamlp(
        "train", "ogbn-mag", "--root", root, "--method", "nars", "--seeds", 1, "--out", tmp_path / "run",
        *words_of(*QUICK, "featureless=neighbours"), "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    trained = json.loads(done.out)["test_accuracy"]
    done = gamlp("predict", tmp_path / "run", "ogbn-mag", "--root", root, "--out", tmp_path / "p.csv", "--json")
    assert done.code == 0, done.err
    rows = [line.split(",") for line in (tmp_path / "p.csv").read_text().replace('"', "").splitlines()[151:]]
    right = np.mean([row[1] == str(int(row[0]) % CLASSES) for row in rows])
    assert right == pytest.approx(trained)  # the same graph, read anew


def test_without_a_cache_embeddings_stay_with_the_run(gamlp, root, tmp_path):
    words = words_of(*QUICK, EMBEDDING, "epochs=1", "featureless=embeddings")
    done = gamlp(
        "train", "ogbn-mag", "--root", root, "--method", "nars", "--seeds", 1, "--out", tmp_path / "run", *words
    )
    assert done.code == 0, done.err
    (place,) = (tmp_path / "run").glob("embeddings-*")
    assert np.load(place / "entities.npy").shape == (PAPERS + AUTHORS + FIELDS + INSTITUTIONS, 16)


def test_message_passing_gets_the_embeddings_that_are_asked_for(gamlp, root, tmp_path):
    words = [
        *words_of(EMBEDDING, "epochs=1", "hidden=8", "featureless=embeddings"),
        "--seeds",
        1,
        "--out",
        tmp_path / "run",
    ]
    done = gamlp("train", "ogbn-mag", "--root", root, "--method", "rgcn", *words)
    assert done.code == 0, done.err
    (place,) = (tmp_path / "run").glob("embeddings-*")
    assert np.load(place / "entities.npy").shape == (PAPERS + AUTHORS + FIELDS + INSTITUTIONS, 16)


def test_compare_sets_methods_with_and_without_relations_side_by_side(gamlp, root, tmp_path):
    done = gamlp(
        "compare", "ogbn-mag", "--root", root, "--seeds", 1, "--out", tmp_path / "c", "--methods", "sign,nars,rgcn,hgt",
        *words_of("hidden=8", "epochs=2", "nars.batch_size=90", "nars.featureless=neighbours"),
        *words_of("sign.featureless=zeros", "rgcn.featureless=neighbours", "hgt.featureless=zeros"), "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert [row["method"] for row in rows] == ["sign", "nars", "rgcn", "hgt"]
    assert [row["published"] for row in rows] == pytest.approx([0.4046, 0.5240, 0.3977, 0.4927])


def test_the_usual_comparison_of_several_types(root):
    graph = load_dataset("ogbn-mag", root)
    names = methods_named(None, graph)
    for name in ("sign", "nars", "nars-sagn+sle", "nars-gamlp-smoothing", "nars-gamlp-jk", "nars-gamlp-recursive+rlu"):
        assert name in names
    assert {"rgcn", "hgt"} <= set(methods_named("all", graph))
    assert not {"rgcn", "hgt", "nars"} & set(methods_named("all"))


def test_the_default_recipe_knows_several_types(gamlp, root, tmp_path):
    done = gamlp(
        "train", "ogbn-mag", "--root", root, "--recipe", "default", "--seeds", 1, "--out", tmp_path / "run",
        *words_of("epochs=2,1"), "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(done.out)["method"] == "nars-gamlp-recursive+rlu"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", 'subsets=[["affiliated_with"]]'], "{affiliated_with} never reaches a node of 'paper'"),
        (["--set", 'subsets=[["cite"]]'], "Did you mean 'cites'"),
        (["--method", "nars+cs"], "gives none for some of ogbn-mag"),
        (["--set", "embedding={dimensoin=8}"], "Did you mean 'dimension'"),
        (["--set", "subsets=0"], "subsets"),
        (["--set", "embedding_file=nowhere.npy"], "nowhere.npy is not there"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(gamlp, root, tmp_path, words, said):
    done = gamlp("train", "ogbn-mag", "--root", root, "--out", tmp_path / "run", *words)
    assert done.code == 2
    assert said in done.err.replace("\n", " ")
    assert not (tmp_path / "run").exists()


def test_the_network_has_the_published_number_of_parameters(gamlp):
    found = {recipe["name"]: recipe for recipe in json.loads(gamlp("recipes", "--json").out)["recipes"]}
    assert found["ogbn-mag"]["parameters"] == 6_734_882
    assert found["ogbn-mag"]["published"]["nars-gamlp-jk+rlu"] == [55.90, 0.27]


def test_a_plain_graph_has_no_relation_subsets(gamlp, files, tmp_path):
    for method in ("nars-gamlp-jk", "rgcn"):
        done = gamlp("train", files.edges, files.nodes, "--method", method, "--out", tmp_path / "run")
        assert done.code == 2
        assert "Use a method for plain graphs" in done.err


def test_a_graph_directory_cannot_hold_several_types(gamlp, root, tmp_path):
    done = gamlp("import", "ogbn-mag", "--root", root, "--out", tmp_path / "g")
    assert done.code == 2
    assert "4 types of nodes and 4 relations" in done.err
