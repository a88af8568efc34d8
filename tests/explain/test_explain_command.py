"""gamlp explain, through the command line."""

import csv
import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from run_files import undrawn

from gamlp.cli import main
from gamlp.graph.splits import Split
from gamlp.graph.store import save_graph
from gamlp.storage.files import read_json, write_json


def run_command(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return left.value.code, said.out, said.err


def test_pictures_and_numbers_of_a_run(tiny_graph, run_of, capsys):
    run = run_of(replace(tiny_graph, classes=("cost: $5", "a_b$", "蓝 <b>")))
    code, out, _ = run_command(capsys, "explain", run, "--json")
    assert code == 0
    facts = json.loads(out)
    assert len(facts["files"]) == 18
    assert "Rank correlation of degree and mean hop over 9 nodes" in facts["notes"]["attention-by-degree"]
    assert {file.name for file in (run / "explain").iterdir()} >= {"attention.png", "attention.svg", "attention.csv"}
    assert (run / "explain" / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(run / "explain" / "attention-by-class.svg").getroot().tag.endswith("svg")
    rows = list(csv.reader((run / "explain" / "attention.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0] == ["group", "nodes", "hop 0", "hop 1", "hop 2"]
    # degree 1–4: nodes 0–3 with ½, ¼, ¼ and nodes 5–8 with ¼, ½, ¼
    assert [rows[1][0], *map(float, rows[1][1:])] == ["1–4", 8, 0.375, 0.375, 0.25]
    assert facts["attention"]["attention"][0] == {"group": "1–4", "nodes": 8, "weights": [0.375, 0.375, 0.25]}


def test_the_table_names_every_range(tiny_graph, run_of, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("gamlp.explain.figures.chart.drawn", undrawn)
    code, out, _ = run_command(capsys, "explain", run_of(tiny_graph), "--out", tmp_path / "pictures")
    assert code == 0
    for words in ("degree 0", "degree 1–4", "degree 5–8", "test, right", "hop 2", "dense regions"):
        assert words in out
    assert (tmp_path / "pictures" / "receptive-field.csv").exists()


def test_one_node(tiny_graph, run_of, capsys):
    run = run_of(tiny_graph)
    code, out, _ = run_command(capsys, "explain", run, "--node", "node-4")
    assert code == 0
    assert "node-4: predicted red (90.0 %), its label is blue; a test node with 5 neighbours." in " ".join(out.split())
    code, out, _ = run_command(capsys, "explain", run, "--node", "node-4", "--json")
    assert json.loads(out)["rings"][1]["classes"] == {"red": 1, "blue": 1}


def test_names_are_not_read_as_markup(tiny_graph, run_of, capsys):
    names = np.array([f"[bold]{index}[/]" for index in range(10)])
    code, out, _ = run_command(capsys, "explain", run_of(replace(tiny_graph, names=names)), "--node", "[bold]4[/]")
    assert code == 0
    assert out.startswith("[bold]4[/]: predicted red")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--node", "node-44"], "Did you mean 'node-4'"),
        (["--seed", "3"], "has no seed 3.\nIt has: 0."),
        (["--runs", "5"], "--runs was given beside an explanation without --hop-figure"),
        (["--node", "node-4", "--hop-figure"], "--hop-figure was given beside --node"),
        (["--node", "node-4", "--out", "pictures"], "--out was given beside --node"),
    ],
)
def test_what_is_refused(tiny_graph, run_of, capsys, arguments, words):
    code, out, err = run_command(capsys, "explain", run_of(tiny_graph), *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_run_without_attention_is_refused_but_its_nodes_are_told(tiny_graph, run_of, capsys):
    run = run_of(tiny_graph, attention=None, method="gcn")
    code, _, err = run_command(capsys, "explain", run)
    assert code == 2
    assert "SettingsError: gcn does not weigh hops" in err
    assert run_command(capsys, "explain", run, "--node", "node-1")[0] == 0


def test_an_unfinished_run_and_a_changed_graph(tiny_graph, run_of, capsys):
    run = run_of(tiny_graph, probabilities=np.full((10, 4), 0.25))
    code, _, err = run_command(capsys, "explain", run)
    assert code == 2
    assert "The graph has changed since the run" in err
    record = read_json(run / "run.json")
    del record["result"]
    write_json(run / "run.json", record)
    code, _, err = run_command(capsys, "explain", run)
    assert code == 2
    assert "is not finished" in err


def test_groups_without_a_node_give_no_picture(tiny_graph, run_of, capsys, monkeypatch):
    monkeypatch.setattr("gamlp.explain.figures.chart.drawn", undrawn)
    none = np.zeros(0, dtype=np.int64)
    run = run_of(replace(tiny_graph, split=Split(tiny_graph.split.train, tiny_graph.split.valid, none)))
    code, out, _ = run_command(capsys, "explain", run, "--json")
    assert code == 0
    assert json.loads(out)["attention"]["attention-right-and-wrong"] == []
    assert not (run / "explain" / "attention-right-and-wrong.csv").exists()
    assert (run / "explain" / "attention-by-degree.csv").exists()


def test_the_hop_figure_has_a_table_of_its_own(tiny_graph, run_of, capsys, monkeypatch):
    monkeypatch.setattr("gamlp.explain.figures.chart.drawn", undrawn)
    run = run_of(tiny_graph)
    code, out, _ = run_command(capsys, "explain", run, "--hop-figure", "--runs", "2")
    assert code == 0
    assert "Share of 2 SGC runs that are right" in out
    assert {"node-3", "node-4", "node-7", "node-8"} <= set(out.split())
    assert (run / "explain" / "hop-suitability.csv").exists()


def changed(graph):
    """Graphs that differ in one thing, and what that is called."""
    labels = graph.labels.copy()
    labels[9] = 0
    split = graph.split
    return {
        "labels": replace(graph, labels=labels),
        "classes": replace(graph, classes=("aaa", "green", "blue")),
        "split": replace(graph, split=Split(split.train, split.test[:1], split.test[1:])),
        "ids": replace(graph, names=graph.names[::-1].copy()),
        "features": replace(graph, features=2 * graph.features),
    }


@pytest.mark.parametrize("what", ["labels", "classes", "split", "ids", "features"])
@pytest.mark.parametrize("command", ["explain", "report"])
def test_a_graph_that_changed_is_refused_by_what_changed(tiny_graph, run_of, tmp_path, capsys, command, what):
    run = run_of(tiny_graph)
    save_graph(changed(tiny_graph)[what], tmp_path / "graph", overwrite=True)
    code, out, err = run_command(capsys, command, run)
    assert (code, out) == (3, "")
    assert f"The graph has changed since the run: {what}." in err


def test_a_run_of_the_first_version_is_known_by_its_features_and_classes(tiny_graph, run_of, capsys, tmp_path):
    run = run_of(tiny_graph)
    record = read_json(run / "run.json")
    del record["fingerprints"]
    record |= {"format": 1, "fingerprint": tiny_graph.fingerprint}
    record["graph"] = {"what": record.pop("source")["what"], "root": "data", "options": {}}
    write_json(run / "run.json", record)
    write_json(run / "seed-0" / "model.json", {"classes": list(tiny_graph.classes)})
    assert run_command(capsys, "explain", run, "--node", "node-4")[0] == 0
    for what, said in (("classes", "classes"), ("features", "adjacency or features")):
        save_graph(changed(tiny_graph)[what], tmp_path / "graph", overwrite=True)
        code, _, err = run_command(capsys, "explain", run, "--node", "node-4")
        assert code == 3
        assert f"The graph has changed since the run: {said}." in err


def test_a_folder_is_not_read_as_markup(tiny_graph, run_of, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("gamlp.explain.figures.chart.drawn", undrawn)
    _, out, _ = run_command(capsys, "explain", run_of(tiny_graph), "--out", tmp_path / "[bold]pictures")
    assert "files are in" in out
    assert "[bold]pictures." in out
