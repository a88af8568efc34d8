"""Every option has an effect or is refused: beside --resume, without a graph, and values that nobody means."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

QUICK = ("--set", "hidden=8", "--set", "epochs=3", "--set", "hops=2", "--seeds", "1")


@pytest.fixture(scope="module")
def run(gamlp, files, tmp_path_factory):
    """A directed run on files with a column of another name."""
    folder = tmp_path_factory.mktemp("options")
    nodes = csv.read_csv(files.nodes)
    names = [{"label": "topic"}.get(name, name) for name in nodes.column_names]
    csv.write_csv(nodes.rename_columns(names), folder / "nodes.csv")
    shutil.copy(files.edges, folder / "edges.csv")
    words = ["--column", "label=topic", "--directed", "--method", "sign", *QUICK, "--out", folder / "run"]
    done = gamlp("train", folder / "edges.csv", folder / "nodes.csv", *words)
    assert done.code == 0, done.err
    return folder / "run"


def refused(done, *words, code=2):
    assert (done.code, done.out) == (code, ""), done.err
    for word in words:
        assert word in " ".join(done.err.split())


BESIDE = [
    ("--seeds", "2"), ("--seed", "0"), ("--root", "data"), ("--column", "id=id"), ("--features", "x.npy"),
    ("--directed",), ("--undirected",), ("--device", "cpu"), ("--engine", "local"), ("--memory", "1GiB"),
    ("--address", "head:1"), ("--cache", "c"), ("--method", "sgc"), ("--recipe", "default"), ("--set", "hops=2"),
    ("--out", "elsewhere"),
]  # fmt: skip


@pytest.mark.parametrize("option", BESIDE, ids=lambda option: option[0])
@pytest.mark.parametrize("command", ["train", "compare", "tune"])
def test_resume_refuses_whatever_stands_beside_it(gamlp, run, command, option):
    if command == "compare" and option[0] == "--method":
        option = ("--methods", "sgc")
    refused(gamlp(command, "--resume", run, *option), option[0].replace("un", ""), "beside --resume")


@pytest.mark.parametrize("option", BESIDE[3:12], ids=lambda option: option[0])
def test_predict_without_a_graph_refuses_what_would_change_nothing(gamlp, run, tmp_path, option):
    done = gamlp("predict", run, "--out", tmp_path / "p.csv", *option)
    assert (done.code, done.out) == (2, "")
    assert not (tmp_path / "p.csv").exists()


def test_the_same_graph_again_is_read_as_it_was_and_gives_the_same_bits(gamlp, run, tmp_path):
    place = run.parent
    done = gamlp("predict", run, place / "edges.csv", place / "nodes.csv", "--out", tmp_path / "p.parquet")
    assert done.code == 0, done.err
    stored = np.load(run / "seed-0" / "probabilities.npy")
    found = parquet.read_table(tmp_path / "p.parquet").column("confidence").to_numpy()
    np.testing.assert_array_equal(found, stored.max(axis=1))
    other = gamlp("predict", run, place / "edges.csv", place / "nodes.csv", "--undirected", "--out", tmp_path / "u.csv")
    assert other.code == 0, other.err  # another graph now: direction was said anew
    assert csv.read_csv(tmp_path / "u.csv").column("confidence").to_numpy().tolist() != found.tolist()


def test_columns_in_another_order_are_the_same_columns(gamlp, run, tmp_path):
    table = csv.read_csv(run.parent / "nodes.csv").drop_columns(["topic"])
    for name, order in (("one", ["x0", "x1", "x2", "x3"]), ("other", ["x2", "x0", "x3", "x1"])):
        csv.write_csv(table.select(["id", *order]), tmp_path / f"{name}.csv")
        words = [run.parent / "edges.csv", tmp_path / f"{name}.csv", "--out", tmp_path / f"{name}-said.csv"]
        done = gamlp("predict", run, *words)  # the label's column is gone: nothing is known of these nodes
        assert done.code == 0, done.err
    assert (tmp_path / "one-said.csv").read_text() == (tmp_path / "other-said.csv").read_text()


def test_predict_never_writes_over_its_input(gamlp, run):
    nodes = run.parent / "nodes.csv"
    before = nodes.read_bytes()
    refused(gamlp("predict", run, run.parent / "edges.csv", nodes, "--out", nodes), "write over")
    refused(gamlp("predict", run, "--out", nodes), "write over")
    assert nodes.read_bytes() == before


def test_predict_within_memory_is_predict(gamlp, run, tmp_path):
    table = csv.read_csv(run.parent / "nodes.csv").drop_columns(["topic"])
    csv.write_csv(table, tmp_path / "n.csv")
    for name, limit in (("plain", ()), ("limited", ("--memory", "64MiB", "--cache", tmp_path / "cache"))):
        done = gamlp(
            "predict", run, run.parent / "edges.csv", tmp_path / "n.csv", *limit, "--out", tmp_path / f"{name}.csv"
        )
        assert done.code == 0, done.err
    assert (tmp_path / "plain.csv").read_text() == (tmp_path / "limited.csv").read_text()
    assert list((tmp_path / "cache").iterdir())


def test_compare_and_tune_take_the_engine(gamlp, files, tmp_path):
    shared = (files.edges, files.nodes, *QUICK, "--memory", "64MiB", "--cache", tmp_path / "cache", "--json")
    done = gamlp("compare", *shared, "--methods", "sign", "--out", tmp_path / "all")
    assert done.code == 0, done.err
    kept = json.loads((tmp_path / "all" / "comparison.json").read_text())["engine"]
    assert kept == {"name": "local", "memory": 64 * 2**20, "address": None, "cache": str(tmp_path / "cache")}
    done = gamlp("tune", *shared, "--method", "sign", "--trials", 1, "--out", tmp_path / "t.toml")
    assert done.code == 0, done.err


@pytest.mark.parametrize("kind", ["one class", "no label", "an old split"])
def test_what_needs_no_classes_asks_for_none(gamlp, run, tmp_path, kind):
    nodes = csv.read_csv(run.parent / "nodes.csv")
    names = nodes.column_names
    if kind == "one class":
        nodes = nodes.set_column(names.index("topic"), "topic", pa.array(["a"] * len(nodes)))
    else:
        nodes = nodes.drop_columns(["topic"] if kind == "an old split" else ["topic", "split"])
    csv.write_csv(nodes, tmp_path / "n.csv")
    graph = (run.parent / "edges.csv", tmp_path / "n.csv")
    few = ("--set", "steps=5", "--set", "dimension=4")
    label = ("--column", "label=topic") if kind == "one class" else ()
    for words in (
        ("predict", run, *graph, "--out", tmp_path / "p.csv"),
        ("propagate", *graph, *label, "--method", "sign", "--out", tmp_path / "hops"),
        ("embed", *graph, *label, *few, "--out", tmp_path / "embeddings"),
    ):
        done = gamlp(*words)
        assert done.code == 0, done.err


def test_embed_has_no_engine(gamlp, files, tmp_path):
    for option in (("--memory", "1GiB"), ("--device", "cpu"), ("--features", "x.npy")):
        refused(gamlp("embed", files.edges, files.nodes, *option, "-o", tmp_path / "e"), option[0], "Leave it out")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", 2**63], "--seed"),
        (["--seed", 2**63 - 1, "--seeds", 2], "too large"),
        (["--set", "subsets=" + "[" * 20_000], "cannot be read"),
        (["--set", "hops=" + "1" * 5_000], "cannot be read"),
        (["--root", "data"], "not looked for below a root"),
        (["--method", "gcn", "--memory", "1GiB"], "no engine propagates"),
    ],
)
def test_values_that_nobody_means(gamlp, files, tmp_path, words, said):
    refused(gamlp("train", files.edges, files.nodes, *words, "--out", tmp_path / "run"), said)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", ["x = " + "[" * 20_000, "x = " + "1" * 5_000], ids=["brackets", "digits"])
def test_a_recipe_that_cannot_be_read(gamlp, files, tmp_path, text):
    (tmp_path / "bad.toml").write_text(text)
    refused(gamlp("train", files.edges, files.nodes, "--recipe", tmp_path / "bad.toml"), "bad.toml", "not valid TOML")


def test_a_pipe_is_no_recipe(gamlp, files, tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    refused(gamlp("train", files.edges, files.nodes, "--recipe", tmp_path / "pipe.toml"), "pipe.toml")


def test_a_network_that_no_machine_holds(gamlp, files, tmp_path):
    words = ["--method", "sign", "--set", "hidden=10000000000", "--out", tmp_path / "run"]
    done = gamlp("train", files.edges, files.nodes, *words)
    assert done.code in (2, 3)
    assert "Traceback" not in done.err


def test_a_name_that_is_not_utf8_is_one_message(gamlp, files, tmp_path):
    done = gamlp("train", files.edges, files.nodes, *QUICK, "--method", "sign", "--out", Path(f"{tmp_path}/\udcff"))
    refused(done, "not UTF-8")


def test_names_cannot_steer_the_terminal(capsys):
    from rich.table import Table

    from gamlp.cli.screen import say, screen

    table = Table(title="\x1b[2Jtitle")
    table.add_column("\x1b]0;x\x07")
    table.add_row("cell\x9b31m")
    screen().print(table)
    say("id \x1b[31m")
    shown = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    assert "id \\x1b[31m" in shown


def test_a_setting_without_effect_is_said(gamlp, files, quick, tmp_path):
    words = ["--method", "mlp", "--seeds", 1, "--out", tmp_path / "run", "--set", "hidden=8", "--set", "epochs=2"]
    done = gamlp("train", files.edges, files.nodes, *words, "--set", "threshold=0.5", "--set", "featureless=zeros")
    assert done.code == 0, done.err
    assert "threshold was set and has no effect: mlp has one stage" in done.err
    assert "featureless was set and has no effect: edges has one type of nodes" in done.err
    assert "hidden was set" not in done.err
