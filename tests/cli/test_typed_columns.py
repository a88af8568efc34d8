"""A messy table on the command line: trained, predicted, resumed, imported; words never seen and gaps are no error."""

import json

import numpy as np
import pytest
from pyarrow import csv, parquet

SMALL = ("--method", "gamlp-jk", "--set", "hidden=8", "--set", "epochs=2", "--set", "hops=1", "--seeds", 1)
CITIES = ("Oslo", "Bonn", "", "Rome")


def write(folder, rows, *, strange=False):
    """Edges of a ring, and a node table with a number, a category, text, a date and gaps."""
    lines = ["id,label,age,city,about,joined"]
    for at in range(rows):
        age, day = ("", "") if at % 7 == 0 else (at % 30 / 2, f"2024-{at % 12 + 1:02}-{at % 28 + 1:02}")
        words = f'"a {("red", "green", "blue")[at % 3]} thing, number {at} of all"'
        city = "Paris" if strange else CITIES[at % 4]
        about = "nothing known" if strange and at % 2 else words
        lines.append(f"n{at},{'xyz'[at % 3]},{age},{city},{about},{day}")
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    (folder / "edges.csv").write_text("a,b\n" + "".join(f"n{at},n{(at + 3) % rows}\n" for at in range(rows)))
    return folder / "edges.csv", folder / "nodes.csv"


@pytest.fixture
def trained(gamlp, tmp_path):
    done = gamlp("train", *write(tmp_path, 60), *SMALL, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    return tmp_path, done


def test_what_is_told(trained):
    _, done = trained
    told = " ".join(done.err.split())
    assert "features = age (number), city (category of 3 values), about (text → " in told
    assert "joined (date)" in told


def test_predict_with_what_was_never_seen(gamlp, trained, tmp_path):
    folder, _ = trained
    (tmp_path / "new").mkdir()
    new = write(tmp_path / "new", 20, strange=True)
    done = gamlp("predict", folder / "run", *new, "--out", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert csv.read_csv(tmp_path / "p.csv").num_rows == 20
    assert "category of 3 values" in " ".join(done.err.split())  # as in training, not Paris alone


def test_the_same_table_again_and_as_parquet(gamlp, trained, tmp_path):
    folder, _ = trained
    parquet.write_table(csv.read_csv(folder / "nodes.csv"), tmp_path / "nodes.parquet")
    for nodes in (folder / "nodes.csv", tmp_path / "nodes.parquet"):
        done = gamlp("predict", folder / "run", folder / "edges.csv", nodes, "--out", tmp_path / "p.parquet")
        assert done.code == 0, done.err
        kept, again = (
            parquet.read_table(path) for path in (folder / "run/predictions.parquet", tmp_path / "p.parquet")
        )
        np.testing.assert_array_equal(kept["confidence"], again["confidence"])
    assert gamlp("explain", folder / "run", "--node", "n7").code == 0


def test_an_imported_graph_teaches_the_same(gamlp, trained, tmp_path):
    folder, _ = trained
    files = (folder / "edges.csv", folder / "nodes.csv")
    assert gamlp("import", *files, "--memory", "64MiB", "--out", tmp_path / "graph").code == 0
    assert gamlp("train", tmp_path / "graph", *SMALL, "--out", tmp_path / "other").code == 0
    results = [json.loads((place / "run.json").read_text())["result"] for place in (folder / "run", tmp_path / "other")]
    assert results[0]["test_log_loss"] == results[1]["test_log_loss"]
    done = gamlp("predict", tmp_path / "other", *files, "--out", tmp_path / "p.parquet")  # tables, by what it learned
    assert done.code == 0, done.err


def test_all_problems_of_a_table_in_one_error(gamlp, tmp_path):
    edges, nodes = write(tmp_path, 4)
    nodes.write_text('id,label,price,day\nn0,x,"1,000",01/02/2024\nn1,y,5,03/04/2024\nn2,x,6,\nn3,y,7,\n')
    done = gamlp("train", edges, nodes)
    assert done.code == 2
    assert "2 columns cannot be read as features" in done.err
    assert "--ignore price --ignore day" in done.err
