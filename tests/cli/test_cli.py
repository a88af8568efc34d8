"""What the commands do when all is well: files in, a run, predictions out, one JSON object."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import gamlp as package
from gamlp.graph.store import load_graph, save_graph

HEAVY = ("torch", "numba", "scipy", "sklearn", "pyarrow", "matplotlib", "torch_geometric")


def commands() -> list[str]:
    from gamlp.cli.app import app

    return [command.name or command.callback.__name__ for command in app.registered_commands]


@pytest.fixture(scope="module")
def run(gamlp, quick, files, tmp_path_factory):
    """A finished run with two seeds on files, and what it printed."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    done = gamlp("train", files.edges, files.nodes, *quick, "--seeds", 2, "--out", folder, "--json")
    assert done.code == 0, done.err
    return folder, json.loads(done.out)


@pytest.mark.parametrize("command", commands())
def test_every_command_takes_json_and_seed(gamlp, command):
    shown = gamlp(command, "--help")
    assert shown.code == 0
    assert "--json" in shown.out
    assert "--seed" in shown.out


def test_help_answers_at_once():
    script = f"""
import sys
from gamlp.cli import main
try:
    main(["--help"])
except SystemExit as left:
    assert not left.code
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stderr.strip() == "[]"
    for command in commands():
        assert command in shown.stdout


def test_version(gamlp):
    assert gamlp("--version").out == f"gamlp {package.__version__}\n"


def test_train_on_files_prints_one_json_object(run):
    folder, result = run
    assert set(result) >= {
        *("dataset", "method", "valid_accuracy", "test_accuracy", "test_accuracy_std"),
        *("parameters", "seconds", "run"),
    }
    assert (result["dataset"], result["run"], result["seeds"]) == ("edges", str(folder), [0, 1])
    accuracies = [one["test_accuracy"] for one in result["runs"]]
    assert result["test_accuracy"] == pytest.approx(np.mean(accuracies))
    assert result["test_accuracy_std"] == pytest.approx(np.std(accuracies, ddof=1))
    assert result["report"] == str(folder / "report.html")
    stored = json.loads((folder / "run.json").read_text())["result"]
    assert {**stored, "report": result["report"]} == result


def test_a_run_holds_no_pickle_and_no_leftovers(run):
    folder, _ = run
    kinds = {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert kinds == {".json", ".npy", ".safetensors", ".parquet", ".html"}
    assert not list(folder.rglob("stage-*"))


def test_the_scores_are_those_of_the_predictions(run, small):
    folder, result = run
    table = parquet.read_table(folder / "predictions.parquet").to_pydict()
    assert table["id"] == [f"node-{at}" for at in range(90)]
    assert table["label"] == [small.classes[label] for label in small.labels]
    for name in ("train", "valid", "test"):
        ids = getattr(small.split, name)
        assert [at for at, member in enumerate(table["set"]) if member == name] == ids.tolist()
        if name != "train":
            hits = np.mean([table["predicted"][at] == table["label"][at] for at in ids])
            best = next(one for one in result["runs"] if one["seed"] == result["best_seed"])
            assert best[f"{name}_accuracy"] == pytest.approx(hits)


def test_the_table_without_json(gamlp, quick, files, tmp_path):
    done = gamlp("train", files.edges, files.nodes, *quick, "--seeds", 1, "--out", tmp_path / "run", "--method", "sign")
    assert done.code == 0
    assert "sign on edges" in done.out
    assert "1 seed," in done.out


def test_a_finished_run_is_not_trained_again(gamlp, run):
    folder, result = run
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again = gamlp("train", "--resume", folder, "--json")
    assert json.loads(again.out) == result
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_seeds_count_from_the_first(gamlp, quick, files, tmp_path):
    words = [*quick, "--method", "gamlp-recursive", "--seeds", 2, "--seed", 5, "--out", tmp_path / "run", "--json"]
    assert json.loads(gamlp("train", files.edges, files.nodes, *words).out)["seeds"] == [5, 6]


def test_import_then_train_and_predict_give_the_same_as_files(gamlp, quick, files, run, tmp_path):
    done = gamlp("import", files.edges, files.nodes, "--out", tmp_path / "edges", "--json")
    facts = json.loads(done.out)
    assert (facts["nodes"], facts["features"], facts["classes"], facts["labelled"]) == (90, 4, 3, 90)
    assert load_graph(tmp_path / "edges").nodes == 90
    words = [*quick, "--seeds", 2, "--out", tmp_path / "run", "--json"]
    result = json.loads(gamlp("train", tmp_path / "edges", *words).out)
    assert [one["test_accuracy"] for one in result["runs"]] == [one["test_accuracy"] for one in run[1]["runs"]]
    again = gamlp("import", tmp_path / "edges", "--out", tmp_path / "edges", "--overwrite")
    assert again.code == 0
    assert "90 nodes" in again.out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_predict_the_own_graph(gamlp, run, tmp_path, kind):
    folder, result = run
    done = gamlp("predict", folder, "--out", tmp_path / f"own.{kind}", "--json")
    assert json.loads(done.out)["nodes"] == 90
    path = tmp_path / f"own.{kind}"
    table = csv.read_csv(path) if kind == "csv" else parquet.read_table(path)
    kept = parquet.read_table(folder / "predictions.parquet")
    for name in ("id", "predicted", "label"):
        assert table.column(name).to_pylist() == kept.column(name).to_pylist()
    assert result["best_seed"] == json.loads(done.out)["seed"]


def test_predict_with_all_that_there_is(gamlp, quick, files, small, tmp_path):
    folder = tmp_path / "run"
    named = ("--method", "gamlp-recursive+rlu", "--seeds", 1, "--out", folder)
    assert gamlp("train", files.edges, files.nodes, *quick, *named).code == 0
    rich = ("--probabilities", "--logits", "--embeddings")
    assert gamlp("predict", folder, "--out", tmp_path / "own.parquet", *rich).code == 0
    own = parquet.read_table(tmp_path / "own.parquet")
    shares, logits = (
        np.column_stack([own[f"{what}_{name}"] for name in small.classes]) for what in ("probability", "logit")
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), shares, atol=1e-5)
    assert np.array(small.classes)[shares.argmax(axis=1)].tolist() == own["predicted"].to_pylist()
    assert [name for name in own.column_names if name.startswith("embedding")] == [f"embedding_{at}" for at in range(8)]


def test_predict_one_seed(gamlp, run, tmp_path):
    folder, _ = run
    gamlp("predict", folder, "--seed", 1, "--out", tmp_path / "one.parquet")
    stored = np.load(folder / "seed-1" / "probabilities.npy")
    confidence = parquet.read_table(tmp_path / "one.parquet").column("confidence").to_numpy()
    np.testing.assert_array_equal(confidence, stored.max(axis=1))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_predict_another_graph_with_the_ids_that_came_in(gamlp, run, small, tmp_path, kind):
    folder, _ = run
    ids = [3 * at + 7 for at in range(20)]
    columns = {f"x{column}": small.features[:20, column] for column in range(4)}
    edges = {"source": [ids[at] for at in range(19)], "target": [ids[at + 1] for at in range(19)]}
    labels = [small.classes[label] if at % 4 == 0 else None for at, label in enumerate(small.labels[:20])]
    write = csv.write_csv if kind == "csv" else parquet.write_table
    write(pa.table(edges), tmp_path / f"e.{kind}")
    write(pa.table({"id": ids, "label": labels, **columns}), tmp_path / f"n.{kind}")
    out = tmp_path / f"predictions.{kind}"
    done = gamlp("predict", folder, tmp_path / f"e.{kind}", tmp_path / f"n.{kind}", "--out", out, "--json")
    assert done.code == 0, done.err
    table = csv.read_csv(out) if kind == "csv" else parquet.read_table(out)
    assert table.column("id").to_pylist() == ids
    assert set(table.column("predicted").to_pylist()) <= set(small.classes)
    known = [at for at in range(20) if at % 4 == 0]
    predicted = table.column("predicted").to_pylist()
    hits = np.mean([predicted[at] == labels[at] for at in known])
    assert json.loads(done.out)["accuracy"] == pytest.approx(hits)


def test_hops_propagated_before_are_found_by_train(gamlp, quick, files, run, tmp_path):
    cache = tmp_path / "hops"
    done = gamlp("propagate", files.edges, files.nodes, *quick, "--cache", cache, "--json")
    facts = json.loads(done.out)
    assert (facts["rows"], facts["hops"], facts["features"]) == (90, 2, 4)
    assert [place.name for place in cache.iterdir()] == [facts["key"]]
    before = (cache / facts["key"] / "values.npy").stat().st_mtime_ns
    words = [*quick, "--seeds", 2, "--out", tmp_path / "run", "--cache", cache, "--json"]
    result = json.loads(gamlp("train", files.edges, files.nodes, *words).out)
    assert (cache / facts["key"] / "values.npy").stat().st_mtime_ns == before
    assert result["test_log_loss"] == run[1]["test_log_loss"]
    shown = gamlp("propagate", files.edges, files.nodes, *quick, "--cache", cache)
    assert "90 rows, 2 hops, 4 features" in shown.out


def test_columns_of_other_names(gamlp, quick, small, files, tmp_path):
    nodes = csv.read_csv(files.nodes)
    names = ["key", "topic", "part", *nodes.column_names[3:]]
    csv.write_csv(nodes.rename_columns(names), tmp_path / "n.csv")
    chosen = [word for pair in ("id=key", "label=topic", "split=part") for word in ("--column", pair)]
    words = [*quick, "--method", "gamlp-recursive", "--seeds", 1, "--out", tmp_path / "run", "--json"]
    done = gamlp("train", files.edges, tmp_path / "n.csv", *chosen, *words)
    assert done.code == 0, done.err
    ids = parquet.read_table(tmp_path / "run" / "predictions.parquet").column("set").to_pylist().count("train")
    assert ids == len(small.split.train)


def test_features_of_a_file_of_their_own(gamlp, small, files, tmp_path):
    table = csv.read_csv(files.nodes).select(["id", "label", "split"])
    csv.write_csv(table, tmp_path / "nodes.csv")
    np.save(tmp_path / "x.npy", small.features)
    words = ["--features", tmp_path / "x.npy", "--out", tmp_path / "graph"]
    assert gamlp("import", files.edges, tmp_path / "nodes.csv", *words).code == 0
    np.testing.assert_array_equal(load_graph(tmp_path / "graph").features, small.features)


def test_a_graph_without_names_is_predicted_by_number(gamlp, quick, small, tmp_path):
    save_graph(small, tmp_path / "graph")
    words = ["--method", "label-propagation", "--seeds", 1, "--out", tmp_path / "run", "--json"]
    done = gamlp("train", tmp_path / "graph", *words)
    assert done.code == 0, done.err
    assert json.loads(done.out)["dataset"] == "planted"
    assert parquet.read_table(tmp_path / "run" / "predictions.parquet").column("id").to_pylist() == list(range(90))


def test_datasets_as_json(gamlp, tmp_path):
    listed = json.loads(gamlp("datasets", "--root", tmp_path, "--json").out)["datasets"]
    found = {entry["name"]: entry for entry in listed}
    assert (found["cora"]["nodes"], found["cora"]["on_disk"]) == (2708, False)
    assert found["debian"]["built_in"]
    assert "cora" in gamlp("datasets", "--root", tmp_path).out


def test_recipes_as_json(gamlp):
    listed = json.loads(gamlp("recipes", "--json").out)["recipes"]
    default = next(entry for entry in listed if entry["name"] == "default")
    assert default["method"].startswith("gamlp-")
    assert default["settings"]["hops"] >= 0
