"""A rare class and several labels a node by the command line: train, predict, explain, report, tune."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

QUICK = ("--set", "epochs=[4,3]", "--set", "hidden=8", "--set", "hops=2", "--set", "label_folds=1", "--seeds", 1)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """300 nodes, of which three of a hundred are fraud, with two labels beside; edges mostly among the like."""
    folder, random = tmp_path_factory.mktemp("targets"), np.random.default_rng(0)
    fraud = np.arange(300) % 33 == 0
    source = np.repeat(np.arange(300), 4)
    target = random.integers(0, 300, len(source))
    target[fraud[source]] = random.choice(np.flatnonzero(fraud), int(fraud[source].sum()))
    parquet.write_table(pa.table({"source": source, "target": target}), folder / "edges.parquet")
    sets = np.array(["train", "valid", "test"])[np.arange(300) // 33 % 3]
    columns = {f"x{at}": random.normal(size=300) + fraud for at in range(4)}
    gaps = random.random(300) < 0.1
    nodes = {"id": np.arange(300), "split": sets, **columns}
    parquet.write_table(pa.table({**nodes, "label": np.where(fraud, "fraud", "ok")}), folder / "nodes.parquet")
    several = {"go_a": pa.array(fraud.astype(int)), "go_b": pa.array((np.arange(300) % 2), mask=gaps)}
    parquet.write_table(pa.table({**nodes, **several}), folder / "several.parquet")
    return folder


def test_a_rare_class_is_warned_of_and_trained_for(gamlp, tables, tmp_path):
    graph = (tables / "edges.parquet", tables / "nodes.parquet")
    plain = gamlp("train", *graph, "--method", "gamlp-jk+rlu", *QUICK, "--out", tmp_path / "plain")
    assert "96.1 % of the training labels are 'ok'" in " ".join(plain.err.split())
    assert "largest class, %" in plain.out
    words = ("--metric", "average_precision", "--set", "class_weight=balanced", "--json")
    done = gamlp("train", *graph, "--method", "gamlp-jk+rlu", *QUICK, *words, "--out", tmp_path / "rare")
    assert done.code == 0, done.err
    assert "of the training labels are" not in done.err
    result = json.loads(done.out)
    assert result["metric"] == "average_precision"
    assert result["test_largest_class"] == pytest.approx(0.97, abs=0.01)
    settings = json.loads((tmp_path / "rare" / "run.json").read_text())["settings"]
    assert (settings["metric"], settings["class_weight"]) == ("average_precision", "balanced")


def test_several_labels_from_training_to_the_page(gamlp, tables, tmp_path):
    graph = (tables / "edges.parquet", tables / "several.parquet", "--column", "label=go_*")
    run = tmp_path / "run"
    done = gamlp("train", *graph, "--method", "gamlp-jk+rlu", *QUICK, "--out", run, "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["metric"], "test_base_rate" in result, "test_largest_class" in result) == ("roc_auc", True, False)
    assert gamlp("predict", run, "--probabilities", "--out", tmp_path / "said.csv").code == 0
    said = csv.read_csv(tmp_path / "said.csv").to_pylist()
    assert {"probability_go_a", "probability_go_b"} <= said[0].keys()
    for row in said[:20]:
        names = [name for name in ("go_a", "go_b") if row[f"probability_{name}"] > 0.5]
        assert (row["predicted"] or "") == ";".join(names)
    story = json.loads(gamlp("explain", run, "--node", "33", "--json").out)
    assert story["label"].startswith("go_a")
    assert gamlp("explain", run, "--out", tmp_path / "figures").code == 0
    assert gamlp("report", run, "--figures", tmp_path / "figures").code == 0
    assert "Test mean base rate" in (run / "report.html").read_text()
    refused = gamlp("explain", run, "--hop-figure")
    assert refused.code == 2
    assert "several labels a node" in refused.err
    others = gamlp("predict", run, *graph[:2], "--out", tmp_path / "again.csv", "--json")  # the labels are remembered
    assert json.loads(others.out)["roc_auc"] is not None
    refused = gamlp("train", *graph, "--method", "unimp", "--seeds", 1, "--out", tmp_path / "unimp")
    assert (refused.code, "reads one class a node" in refused.err) == (2, True)


def test_new_nodes_and_changes_where_nodes_have_several_labels(gamlp, tables, tmp_path):
    """New nodes alone, exactly, in a changed graph and over HTTP: the same labels, nearly or fully the same chances."""
    graph = (tables / "edges.parquet", tables / "several.parquet", "--column", "label=go_*")
    run = tmp_path / "run"
    assert gamlp("train", *graph, "--method", "gamlp-jk+rlu", *QUICK, "--out", run).code == 0
    values = {f"x{at}": [1.0, -0.5] for at in range(4)}
    csv.write_csv(pa.table({"id": [300, 301], **values}), tmp_path / "nodes.csv")
    csv.write_csv(pa.table({"source": [300, 300, 301, 301], "target": [33, 66, 5, 300]}), tmp_path / "edges.csv")
    new = (tmp_path / "edges.csv", tmp_path / "nodes.csv")
    said = {}
    for name, more in {"near": (), "exact": ("--exact",)}.items():
        done = gamlp("predict", run, "--new", *new, *more, "--probabilities", "--out", tmp_path / f"{name}.csv")
        assert done.code == 0, done.err
        said[name] = csv.read_csv(tmp_path / f"{name}.csv").to_pylist()
    assert gamlp("import", *graph, "--out", tmp_path / "graph").code == 0
    assert gamlp("update", tmp_path / "graph", "--edges", new[0], "--nodes", new[1]).code == 0
    everywhere = gamlp(
        "predict", run, tmp_path / "graph", "--rows", "all", "--probabilities", "--out", tmp_path / "a.csv"
    )
    assert everywhere.code == 0, everywhere.err
    said["changed"] = csv.read_csv(tmp_path / "a.csv").to_pylist()[-2:]
    for at, row in enumerate(said["exact"]):
        names = [name for name in ("go_a", "go_b") if row[f"probability_{name}"] > 0.5]
        assert (row["predicted"] or "") == ";".join(names)
        assert row["id"] == said["changed"][at]["id"] == 300 + at
        for name in ("probability_go_a", "probability_go_b"):
            assert row[name] == pytest.approx(said["near"][at][name], abs=0.02)
            assert row[name] == pytest.approx(said["changed"][at][name], abs=1e-6)
    story = json.loads(gamlp("explain", run, "--new", *new, "--node", "300", "--json").out)
    assert story["predicted"] == (said["exact"][0]["predicted"] or "")
    csv.write_csv(pa.table({"op": ["change"], "id": [5], "go_a": [1], "go_b": [0], **{name: [0.0] for name in values}}),
                  tmp_path / "labels.csv")  # fmt: skip
    words = ("--nodes", tmp_path / "labels.csv", "--column", "label=go_*")
    refused = gamlp("update", tmp_path / "graph", *words)
    assert (refused.code, "several labels a node" in refused.err) == (2, True)


def test_settings_for_several_labels_are_tuned_by_roc_auc(gamlp, tables, tmp_path):
    graph = (tables / "edges.parquet", tables / "several.parquet", "--column", "label=go_*")
    words = ("--method", "sgc", "--trials", 1, "--seeds", 1, "--set", "epochs=2", "--out", tmp_path / "own.toml")
    done = gamlp("tune", *graph, *words, "--json")
    assert done.code == 0, done.err
    assert 0 <= json.loads(done.out)["best_valid_roc_auc"] <= 1
    assert "validation ROC-AUC" in (tmp_path / "own.toml").read_text()


def test_types_of_nodes_with_several_labels(gamlp, tables, tmp_path):
    several, edges = (parquet.read_table(tables / f"{name}.parquet") for name in ("several", "edges"))
    csv.write_csv(several, tmp_path / "papers.csv")
    csv.write_csv(edges, tmp_path / "cites.csv")
    csv.write_csv(pa.table({"who": np.arange(300) % 20, "what": np.arange(300)}), tmp_path / "wrote.csv")
    (tmp_path / "hetero.toml").write_text(
        'target = "paper"\n[nodes.paper]\nfile = "papers.csv"\nlabel = "go_a,go_b"\n[nodes.author]\ncount = 20\n'
        '[relations.cites]\nfile = "cites.csv"\nsource = "paper"\ntarget = "paper"\n'
        '[relations.wrote]\nfile = "wrote.csv"\nsource = "author"\ntarget = "paper"\ncolumns = ["who", "what"]\n'
    )
    for method in ("nars-gamlp-recursive+rlu", "rgcn"):
        quick = QUICK if method.startswith("nars") else ("--set", "epochs=3", "--seeds", 1)
        done = gamlp("train", tmp_path, "--method", method, *quick, "--out", tmp_path / method, "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["metric"] == "roc_auc"
