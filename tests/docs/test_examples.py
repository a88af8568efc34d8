"""The examples run, with fewer epochs than they have by themselves."""

import json
import re
import runpy
import sys

import pytest
from pages import ROOT

EXAMPLES = ROOT / "examples"


@pytest.fixture
def run_script(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(name, *words):
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_misfiled_packages(run_script):
    said = run_script("misfiled_packages.py", "--epochs", 1, "--most", 5)
    assert re.search(r"^\d+\.\d % of 55,189 test packages", said)
    assert said.count(" predicted ") == 5


def test_arrays_of_your_own(run_script):
    said = run_script("arrays_of_your_own.py")
    shares = dict(re.findall(r"^(\S+) +([\d.]+) %", said, re.MULTILINE))
    assert float(shares["gamlp-jk"]) > float(shares["mlp"]) + 10  # 7 of 10 neighbours are of the same class
    assert "the new node is predicted to be of class 1" in said


def test_how_far_nodes_look(run_script, tmp_path, make_planted):
    graph = make_planted(nodes=90, features=4, degree=4, labelled=6)
    with (tmp_path / "edges.csv").open("w") as file:
        file.write("source,target\n")
        for node in range(graph.nodes):
            for other in graph.adjacency.indices[graph.adjacency.indptr[node] : graph.adjacency.indptr[node + 1]]:
                file.write(f"{node},{other}\n")
    with (tmp_path / "nodes.csv").open("w") as file:
        file.write("id,label,a,b,c,d\n")
        for node, row in enumerate(graph.features.tolist()):
            file.write(f"{node},{graph.labels[node]},{','.join(map(str, row))}\n")
    said = run_script("how_far_nodes_look.py", "edges.csv", "nodes.csv", "--epochs", 3)
    rows = [line.split(": ")[1].split() for line in said.splitlines() if "neighbours," in line]
    assert rows
    for row in rows:
        assert sum(map(float, row)) == pytest.approx(1, abs=0.05)  # shares, rounded to hundredths
    assert (tmp_path / "look" / "report.html").stat().st_size > 10_000


def test_the_notebook(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "first_hour.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    namespace = {"__name__": "notebook"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # what it says depends on the machine
            code = "".join(cell["source"]).replace("EPOCHS = 60", "EPOCHS = 1")
            exec(compile(code, f"first_hour.ipynb, cell {number}", "exec"), namespace)
    said = capsys.readouterr().out
    assert "63,436 packages" in said
    assert "gimp: " in said
    assert namespace["EPOCHS"] == 1
