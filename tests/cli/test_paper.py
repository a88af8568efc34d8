"""The experiments of the paper: as data, on miniatures of their graphs, and as tables by hand."""

import csv
import json
import shlex
from html import unescape

import pytest

from gamlp.errors import SettingsError
from gamlp.methods import method_named
from gamlp.paper.experiments import experiment_named, experiments
from gamlp.paper.table import markdown, tables
from gamlp.recipes import load_recipe, recipe_names
from raw_folders import write_mag, write_ogb

SMALL = (
    "hidden=8",
    "epochs=[2,2]",
    "head_layers=2",
    "jk_layers=1",
    "label_layers=1",
    "hops=2",
    "label_hops=2",
    "batch_size=64",
)
EMBEDDING = "embedding={dimension=8, steps=5, batch_size=50, chunk=50, negatives=10}"


def passing(name):
    """The epochs of the rows through PyG, which have one stage."""
    methods = {row.method for row in experiment_named(name).rows if method_named(row.method).extra}
    return [f"{method}.epochs=2" for method in sorted(methods)]


def quick(*more):
    return [word for setting in (*SMALL, *more) for word in ("--set", setting)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    write_mag(root)
    write_ogb(root, "ogbn-products", "sales_ranking")
    write_ogb(root, "ogbn-papers100M", "time")
    return root


@pytest.mark.parametrize("name", experiments())
def test_every_row_resolves_with_its_own_recipe(name):
    experiment = experiment_named(name)
    assert experiment.rows and experiment.columns and experiment.source
    for column in experiment.columns:
        recipe = load_recipe(column.recipe or (column.graph if column.graph in recipe_names() else "default"))
        for row in experiment.rows:
            recipe.resolve(method_named(row.method), {**column.set, **row.set})


@pytest.mark.parametrize(
    ("name", "column"), [("products", "ogbn-products"), ("papers100M", "ogbn-papers100M"), ("mag", "ogbn-mag")]
)
def test_every_row_of_the_large_tables_runs(gamlp, root, tmp_path, name, column):
    words = ("--root", root, "--seeds", 1, "--out", tmp_path / "out", "--json", *quick(EMBEDDING, *passing(name)))
    done = gamlp("paper", name, *words)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert [cell["row"] for cell in result["cells"]] == [row.name for row in experiment_named(name).rows]
    published = load_recipe(column).published
    for cell in result["cells"]:
        assert 0 <= cell["test_accuracy"] <= 1
        assert cell["published_test"] == pytest.approx(published[cell["method"]][0] / 100)
    with (tmp_path / "out" / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(result["cells"])
    assert "GAMLP+RLU" in (tmp_path / "out" / "report.html").read_text()


def test_an_experiment_goes_on_and_leaves_methods_out(gamlp, root, tmp_path, monkeypatch):
    words = ("paper", "label-use", "--root", root, "--seeds", 1, "--out", tmp_path / "out", "--json", *quick())
    first = gamlp(*words, "--without", "uniform")
    assert first.code == 0, first.err
    assert [cell["row"] for cell in json.loads(first.out)["cells"]] == ["full", "no labels", "plain last hop"]
    from gamlp.runs import run

    trained = []
    monkeypatch.setattr(
        run, "train_seed", lambda *args, **more: trained.append(more["folder"]) or original(*args, **more)
    )
    second = gamlp(*words)
    assert second.code == 0, second.err
    assert len(trained) == 1  # "uniform" alone
    assert "uniform" in str(trained[0])


def test_the_figure_of_the_attention_tells_its_trend(gamlp, root, tmp_path):
    words = ("--graph", "ogbn-products", "--root", root, "--seeds", 2, "--out", tmp_path / "out", "--json", *quick())
    done = gamlp("paper", "attention", *words)
    assert done.code == 0, done.err
    degrees, trend = json.loads((tmp_path / "out" / "result.json").read_text())["charts"]
    assert "Rank correlation of degree and mean hop" in degrees["note"]
    assert [row[0] for row in trend["rows"]] == ["mean hop", *(f"hop {hop}" for hop in range(7))]
    assert trend["rows"][0][-1] in ("1 of 2", "2 of 2")
    table = (tmp_path / "out" / "table.md").read_text()
    for said in (degrees, trend):
        assert said["note"] in table and f"## {said['title']}\n" in table
        assert said["note"] in unescape((tmp_path / "out" / "report.html").read_text())


def original(*args, **more):
    from gamlp.runs.seed import train_seed

    return train_seed(*args, **more)


def test_missing_data_is_one_line(gamlp, tmp_path):
    done = gamlp("paper", "products", "--root", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "ogbn-products is not below" in " ".join(done.err.split())


def test_the_list_says_what_is_there(gamlp, root):
    done = gamlp("paper", "--root", root, "--json")
    found = {one["name"]: one for one in json.loads(done.out)["experiments"]}
    assert not found["products"]["missing"]
    assert "Cora" in found["citation"]["missing"]
    assert gamlp("paper", "--seeds", 3).code == 2  # of no experiment


def test_all_methods_are_listed(gamlp):
    found = {one["name"]: one for one in json.loads(gamlp("methods", "--json").out)["methods"]}
    assert found["gcn"]["needs"] == ["gamlp[pyg]"]
    assert found["nars"]["needs"] == ["several relations"]
    assert "+rlu" in found["gamlp-jk"]["additions"]


def cell(row, column, test, published=None, **more):
    return {
        "row": row, "column": column, "method": row.lower(), "set": {}, "recipe": "x",
        "valid_accuracy": 0.8, "valid_accuracy_std": None, "test_accuracy": test, "test_accuracy_std": 0.005,
        "seconds": 2.0, "parameters": 1234, "published_valid": None, "published_valid_std": None,
        "published_test": published, "published_test_std": None, "published_time": None, "run": "r", **more,
    }  # fmt: skip


RESULT = {
    "title": "T",
    "source": "S",
    "relative": False,
    "seeds": [0, 1],
    "experiment": "e",
    "command": "gamlp paper e",
}


def test_tables_by_hand():
    cells = [cell("A", "one", 0.8, 0.81), cell("A", "two", 0.7, 0.704), cell("B", "one", 0.9), cell("B", "two", 0.6)]
    text = markdown({**RESULT, "cells": cells})
    assert "| A | 80.00 ± 0.50 ▾ (81.0) | 70.00 ± 0.50 (70.4) |" in text
    assert "▾: over half a point below the published, by so many points: A one 1.0." in text
    assert "| B | 80.00 | – | 90.00 ± 0.50 | – | 2.0 | 1,234 |" in text


def test_what_was_left_out_and_fewer_seeds_are_told():
    text = markdown({**RESULT, "cells": [cell("A", "one", 0.8), cell("B", "one", 0.9, seeds=1), cell("A", "two", 0.7)]})
    assert "| A | 80.00 ± 0.50 | 70.00 ± 0.50 |\n| B | 90.00 ± 0.50, 1 of the seeds | – |" in text


def test_the_order_of_the_rows_is_compared_with_the_published_one():
    ours, theirs = [0.5, 0.6, 0.7, 0.8, 0.9], [0.4, 0.5, 0.7, 0.6, 0.8]
    cells = [cell(name, "one", *pair) for name, *pair in zip("ABCDE", ours, theirs, strict=True)]
    text = markdown({**RESULT, "cells": [*cells, cell("F", "one", 0.1)]})
    assert "Rank correlation with the published order of the rows: one +0.90." in text  # 1 − 6·2 / (5·24)
    assert "Rank correlation" not in markdown({**RESULT, "cells": cells[:4]})


def test_times_are_relative_to_the_first_row():
    cells = [
        cell("A", "one", 0.8, seconds=2.0, published_time=1.0),
        cell("B", "one", 0.8, seconds=5.0, published_time=3.2),
    ]
    title, _, rows = tables({**RESULT, "relative": True, "cells": cells})[0]
    assert (title, rows) == ("Training time", [["A", "1.0", "1"], ["B", "2.5", "3.2"]])


def test_what_is_not_there_is_refused():
    with pytest.raises(SettingsError, match="has no 'citations'"):
        experiment_named("citations")
    with pytest.raises(SettingsError, match="no row 'gnn'"):
        experiment_named("citation").without(["gnn"])
    with pytest.raises(SettingsError, match="Nothing is left"):
        experiment_named("attention").without(["GAMLP"])


def test_a_graph_directory_and_a_command_that_can_be_pasted(gamlp, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gamlp("import", files.edges, files.nodes, "--out", tmp_path / "mine").code == 0
    words = ("--graph", tmp_path / "mine", "--seeds", 1, "--memory", "64MiB", "--cache", tmp_path / "cache", *quick())
    done = gamlp("paper", "jk-reference", *words, "--without", "noise", "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert {cell["run"] for cell in result["cells"]} == {
        f"runs/paper-jk-reference-mine/mine{settings}/gamlp-jk"
        for settings in ("", "-jk_reference-features", "-jk_reference-none")
    }
    name, *pasted = shlex.split(result["command"])
    assert (name, pasted[:2]) == ("gamlp", ["paper", "jk-reference"])
    assert str(64 * 2**20) in pasted
    assert str(tmp_path / "cache") in pasted
    again = gamlp(*pasted, "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["cells"] == result["cells"]
