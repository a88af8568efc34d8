"""Bad input: one clear message on standard error, exit code 2, nothing on standard output, nothing written."""

import errno
import json
import os
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from gamlp.graph.readers import planetoid
from gamlp.graph.store import save_graph
from gamlp.storage.files import read_json, write_json


@pytest.fixture
def place(files, tmp_path):
    """A folder with the files of a good graph, to be spoiled."""
    folder = tmp_path / "given"
    folder.mkdir()
    for path in (files.edges, files.nodes):
        shutil.copy(path, folder / path.name)
    return folder


def change_nodes(place, column, values):
    """Put `values` in place of a column of nodes.csv; a function makes them of the old."""
    table = csv.read_csv(place / "nodes.csv")
    at = table.column_names.index(column)
    new = values(table.column(column).to_pylist()) if callable(values) else values
    csv.write_csv(table.set_column(at, column, pa.array(new)), place / "nodes.csv")


def add_edge(place, source, target):
    with (place / "edges.csv").open("a") as file:
        file.write(f'"{source}","{target}"\n')


def by_number(place, extra_edge):
    """Give up the ids: edges then name rows."""
    nodes = csv.read_csv(place / "nodes.csv")
    csv.write_csv(nodes.drop_columns(["id"]), place / "nodes.csv")
    csv.write_csv(pa.table({"source": [0, 1, extra_edge], "target": [1, 2, 2]}), place / "edges.csv")


def empty(place, *names):
    """Leave the header alone."""
    for name in names:
        header = (place / name).read_text().splitlines()[0]
        (place / name).write_text(header + "\n")


def first(value):
    return lambda old: [value, *old[1:]]


def overlapping(place):
    X = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    np.savez(place / "n.npz", features=X, labels=[0, 1, 0, 1, 0, 1], train=[0, 1, 2], valid=[2, 3], test=[4])
    np.save(place / "e.npy", np.array([[0, 1], [1, 2], [2, 3], [3, 4]]))


FILES = ["edges.csv", "nodes.csv"]
SPOILED = {
    "no such file": (lambda p: (p / "nodes.csv").unlink(), FILES, ["nodes.csv", "not there"]),
    "no such edges": (lambda p: (p / "edges.csv").unlink(), FILES, ["edges.csv", "not there"]),
    "empty graph": (lambda p: empty(p, *FILES), FILES, ["no nodes"]),
    "no nodes for the edges": (lambda p: empty(p, "nodes.csv"), FILES, ["node-0", "0 nodes"]),
    "empty file": (lambda p: (p / "nodes.csv").write_text(""), FILES, ["nodes.csv"]),
    "unknown node": (lambda p: add_edge(p, "node-1", "node-90"), FILES, ["node-90", "90 nodes"]),
    "edge id too large": (lambda p: by_number(p, 90), FILES, ["90", "0 to 89"]),
    "edge id negative": (lambda p: by_number(p, -1), FILES, ["-1", "0 to 89"]),
    "double ids": (lambda p: change_nodes(p, "id", first("node-5")), FILES, ["node-5", "2 rows"]),
    "no training node": (lambda p: change_nodes(p, "split", lambda old: ["test"] * len(old)), FILES, ["training"]),
    "unknown set": (lambda p: change_nodes(p, "split", first("trian")), FILES, ["trian", "line 2"]),
    "overlapping sets": (overlapping, ["e.npy", "n.npz"], ["node 2", "more than one"]),
    "one class": (lambda p: change_nodes(p, "label", lambda old: ["a"] * len(old)), FILES, ["'a'", "two classes"]),
    "no label": (lambda p: change_nodes(p, "label", lambda old: [""] * len(old)), FILES, ["label"]),
    "fractions as labels": (lambda p: change_nodes(p, "label", lambda old: [0.5] * len(old)), FILES, ["0.5"]),
    "three files": (lambda p: None, [*FILES, "nodes.csv"], ["3"]),
    "no graph": (lambda p: None, [], ["No graph"]),
}


def refused(done, *words, code=2):
    """Check that a command was refused as it should be."""
    assert done.code == code, done.err
    if done.out:  # with --json what was refused is JSON too
        told = json.loads(done.out)
        assert told["code"] == code
        assert told["message"] in done.err
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err
    assert len(done.err.strip().splitlines()) >= 2  # what was found, and what to do


UNTRAINABLE = ("no training node", "one class", "no label")  # these can be imported: predictions are made for such


@pytest.mark.parametrize(
    ("command", "case"),
    [("train", case) for case in SPOILED] + [("import", case) for case in SPOILED if case not in UNTRAINABLE],
)
def test_graphs_that_cannot_be_used(gamlp, place, tmp_path, case, command):
    spoil, given, words = SPOILED[case]
    spoil(place)
    done = gamlp(command, *(place / name for name in given), "--out", tmp_path / "out")
    refused(done, *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "hops=-1"], ["hops", "-1", "greater than or equal to 0"]),
        (["--set", "hopps=3"], ["hopps", "Did you mean 'hops'"]),
        (["--set", "hops"], ["--set hops", "'='"]),
        (["--set", "=3"], ["--set"]),
        (["--set", "hops=many"], ["hops", "many"]),
        (["--set", "combiner=jkk"], ["combiner", "jk"]),
        (["--method", "gamlp-jj"], ["gamlp-jj", "Did you mean 'gamlp-jk'"]),
        (["--method", "gamlp-jk+rl"], ["+rl", "+rlu"]),
        (["--method", "gcn+rlu"], ["gcn", "+cs"]),
        (["--method", "gcn", "--set", "heads=3"], ["gcn", "heads"]),
        (["--method", "gamlp-jk+cs", "--set", "rows=labelled"], ["rows=all"]),
        (["--recipe", "debain"], ["debain", "recipe"]),
        (["--recipe", "nowhere.toml"], ["nowhere.toml"]),
        (["--column", "lable=x"], ["lable", "Did you mean 'label'"]),
        (["--column", "label"], ["--column label", "'='"]),
        (["--column", "label=topic"], ["topic", "label"]),
        (["--device", "gpu"], ["gpu", "cpu"]),
        (["--features", "nowhere.npy"], ["nowhere.npy", "not there"]),
        (["--seeds", "0"], ["seeds"]),
        (["--seed", "-1"], ["seed"]),
    ],
)
def test_options_that_cannot_be(gamlp, files, tmp_path, options, words):
    done = gamlp("train", files.edges, files.nodes, *options, "--out", tmp_path / "out", "--json")
    refused(done, *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "command",
    [["train", "--method", "gamlp-jk+rlu"], ["compare", "--methods", "sgc,sagn+sle"], ["tune", "--method", "sagn+sle"]],
)
def test_stages_that_are_one_stage(gamlp, files, tmp_path, command):
    name, *method = command
    done = gamlp(name, files.edges, files.nodes, *method, "--set", "epochs=5", "--out", tmp_path / "out.toml")
    refused(done, "the epochs of one stage, 5", "two stages")
    assert not (tmp_path / "out.toml").exists()


def test_a_card_that_is_not_there(gamlp, files, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = gamlp("train", files.edges, files.nodes, "--device", "cuda", "--out", tmp_path / "out")
    refused(done, "cuda")
    assert not (tmp_path / "out").exists()
    done = gamlp("propagate", files.edges, files.nodes, "--device", "cuda", "--cache", tmp_path / "cache")
    refused(done, "cuda")
    assert not (tmp_path / "cache").exists()


def test_a_data_set_that_is_not_known(gamlp, tmp_path):
    refused(gamlp("train", "coar", "--out", tmp_path / "out"), "coar", "Did you mean 'cora'")
    refused(gamlp("train", "cora", "--root", tmp_path, "--out", tmp_path / "out"), "cora", "missing", "ind.cora.x")
    assert not list(tmp_path.iterdir())


def test_a_graph_directory_cut_short(gamlp, small, tmp_path):
    save_graph(small, tmp_path / "graph")
    features = tmp_path / "graph" / "features.npy"
    features.write_bytes(features.read_bytes()[:-100])
    refused(gamlp("train", tmp_path / "graph", "--out", tmp_path / "out"), "features.npy")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_no_graph(gamlp, tmp_path):
    (tmp_path / "folder").mkdir()
    refused(gamlp("train", tmp_path / "folder", "--out", tmp_path / "out"), "graph.json")


def test_features_and_labels_of_different_length(gamlp, files, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((89, 2), np.float32))
    words = ["--features", tmp_path / "x.npy", "--out", tmp_path / "out"]
    refused(gamlp("train", files.edges, files.nodes, *words), "89", "90")
    assert not (tmp_path / "out").exists()


class Hostile:
    """Unpickled by a careless reader, it makes a folder."""

    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return os.mkdir, (self.place,)


def test_a_hostile_pickle_does_not_run(gamlp, tmp_path):
    raw = tmp_path / "Cora" / "raw"
    raw.mkdir(parents=True)
    for name in planetoid.files("cora"):
        (raw / name).write_bytes(pickle.dumps(Hostile(tmp_path / "mischief")))
    done = gamlp("train", "cora", "--root", tmp_path, "--out", tmp_path / "out")
    refused(done, "ind.cora")
    assert [path.name for path in tmp_path.iterdir()] == ["Cora"]
    pickle.loads((raw / "ind.cora.x").read_bytes())  # it would have run
    assert (tmp_path / "mischief").exists()


def test_out_is_a_folder_with_something_in_it(gamlp, files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("all of it")
    for command in ("train", "import"):
        done = gamlp(command, files.edges, files.nodes, "--out", tmp_path / "out")
        refused(done, "out", code=done.code)
        assert done.code in (2, 3)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_out_is_a_file(gamlp, files, tmp_path):
    (tmp_path / "out").write_text("x")
    refused(gamlp("train", files.edges, files.nodes, "--out", tmp_path / "out"), "out")
    refused(gamlp("train", files.edges, files.nodes, "--out", tmp_path / "out" / "run"), "could not be written", code=3)
    assert (tmp_path / "out").read_text() == "x"


@pytest.fixture(scope="module")
def run(gamlp, quick, files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert gamlp("train", files.edges, files.nodes, *quick, "--seeds", 1, "--out", folder).code == 0
    return folder


def test_out_holds_another_run(gamlp, quick, files, run):
    before = (run / "run.json").read_bytes()
    done = gamlp("train", files.edges, files.nodes, *quick, "--set", "hops=3", "--seeds", 1, "--out", run)
    refused(done, "another run", "settings", code=3)
    assert (run / "run.json").read_bytes() == before


def test_predict_on_other_features(gamlp, run, files, tmp_path):
    table = csv.read_csv(files.nodes).drop_columns(["x3"])
    csv.write_csv(table, tmp_path / "nodes.csv")
    out = tmp_path / "predictions.csv"
    refused(
        gamlp("predict", run, files.edges, tmp_path / "nodes.csv", "--out", out), "no feature column 'x3'", "4 expected"
    )
    assert not out.exists()


def test_predict_what_is_not_there(gamlp, run, tmp_path):
    out = tmp_path / "predictions.csv"
    refused(gamlp("predict", tmp_path / "nowhere", "--out", out), "run.json")
    refused(gamlp("predict", run, "--seed", 7, "--out", out), "no seed 7")
    refused(gamlp("predict", run, "--out", tmp_path / "predictions.xlsx"), "predictions.xlsx", ".parquet or .csv")
    refused(gamlp("predict", run, "--device", "gpu", "--out", out), "gpu")
    refused(gamlp("predict", run, tmp_path / "e.csv", "--out", out), "e.csv")
    assert not list(tmp_path.iterdir())


def test_predict_from_an_unfinished_or_damaged_run(gamlp, run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    record = read_json(run / "run.json")
    out = tmp_path / "predictions.csv"
    unfinished = {key: value for key, value in record.items() if key != "result"}
    write_json(copy / "run.json", unfinished)
    refused(gamlp("predict", copy, "--out", out), "not finished", "--resume")
    for broken in ("", "[]", "{}", '{"graph": {}'):
        (copy / "run.json").write_text(broken)
        refused(gamlp("predict", copy, "--out", out), "run.json")
        refused(gamlp("train", "--resume", copy), "run.json")
    write_json(copy / "run.json", record)
    weights = copy / "seed-0" / "probabilities.npy"
    weights.write_bytes(weights.read_bytes()[:-8])
    refused(gamlp("predict", copy, "--out", out), "probabilities.npy", code=3)
    assert not out.exists()


def test_a_graph_that_changed_since_its_run(gamlp, quick, place, tmp_path):
    run = tmp_path / "run"
    words = [
        place / "edges.csv",
        place / "nodes.csv",
        *quick,
        "--method",
        "gamlp-recursive",
        "--seeds",
        1,
        "--out",
        run,
    ]
    assert gamlp("train", *words).code == 0
    change_nodes(place, "x1", first(100.0))
    refused(gamlp("predict", run, "--out", tmp_path / "p.csv"), "changed since", code=3)
    refused(gamlp("train", "--resume", run), "changed since the run: features", code=3)
    assert not (tmp_path / "p.csv").exists()


def test_what_cannot_stand_beside_resume(gamlp, run, files):
    refused(gamlp("train", files.edges, "--resume", run), "GRAPH")
    refused(gamlp("train", "--set", "hops=3", "--resume", run), "--set")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is unwritable for root")
def test_a_place_that_may_not_be_written(gamlp, files, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    done = gamlp("train", files.edges, files.nodes, "--out", tmp_path / "locked" / "run")
    refused(done, "could not be written", code=3)


def test_a_full_disk(gamlp, quick, files, tmp_path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gamlp.storage.files.os.fsync", full)
    for command, options in (("train", quick), ("import", [])):
        done = gamlp(command, files.edges, files.nodes, *options, "--out", tmp_path / command / "out")
        refused(done, "No space left", "Free some space", code=3)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_command_that_is_not_there(gamlp):
    refused(gamlp("trian"), "trian")
