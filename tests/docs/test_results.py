"""Tables of the docs are what their records say, and name every system of the paper."""

import json
import re
import sys
import tomllib

import pytest
from pages import ROOT

from gamlp.paper.experiments import experiments
from gamlp.paper.table import markdown

sys.path.insert(0, str(ROOT / "scripts"))
import results

METHODS = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
PARTS = tomllib.loads((ROOT / "src" / "gamlp" / "paper" / "systems.toml").read_text(encoding="utf-8"))


def test_no_table_differs_from_its_record(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["results.py", "--check"])
    results.main()


def test_a_figure_that_was_typed_is_found(monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- systems -->\n| GCN | `gcn` | 99.9 |\n<!-- end -->\nafter\n")
    monkeypatch.setattr(results, "PAGES", [page])
    monkeypatch.setattr(sys, "argv", ["results.py", "--check"])
    with pytest.raises(SystemExit, match="not what the records say"):
        results.main()
    monkeypatch.setattr(sys, "argv", ["results.py"])
    results.main()
    assert re.fullmatch(r"before\n<!-- systems -->\n\| in the paper .*\n<!-- end -->\nafter\n", page.read_text(), re.S)
    assert "99.9" not in page.read_text()


def test_every_row_of_the_experiments_is_a_system():
    table = METHODS.partition("<!-- systems -->")[2].partition("<!-- end -->")[0]
    for experiment in experiments().values():
        for row in experiment.rows:
            changed = "".join(f" {key}={value}" for key, value in row.set.items())
            line = re.search(rf"^\| {re.escape(f'{row.name} | `{row.method}{changed}` |')}(.*)$", table, re.MULTILINE)
            assert line, (experiment.name, row.name)
            for column in experiment.columns:
                assert experiment.relative or column.graph in line[1], (experiment.name, row.name, column.graph)


@pytest.mark.parametrize("name", PARTS)
def test_equations_and_the_tests_of_them_are_there(name):
    part = PARTS[name]
    assert (ROOT / "src" / "gamlp" / part["equation"]).exists()
    file, _, test = part["test"].partition("::")
    assert re.search(rf"^def {test}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert part.get("with", name) in PARTS


def test_a_record_is_shown_beside_what_was_published(monkeypatch):
    experiment = experiments()["citation"]
    (row,) = (row for row in experiment.rows if row.method == "sgc")
    cell = {"row": "SGC", "column": "cora", "test_accuracy": 0.8143, "test_accuracy_std": 0.0008}
    monkeypatch.setattr(results, "recorded", lambda name: [cell])
    assert list(results.values(experiment, row)) == [
        "cora 81.00 ± 0.20 → 81.43 ± 0.08",
        "citeseer 71.30 ± 0.50 → not recorded yet",
        "pubmed 78.90 ± 0.50 → not recorded yet",
    ]
    times = experiments()["relative-time"]
    cells = [{"row": "SGC", "column": "video", "seconds": 2.0}, {"row": "GCN", "column": "video", "seconds": 5.0}]
    monkeypatch.setattr(results, "recorded", lambda name: cells)
    (row,) = (row for row in times.rows if row.method == "gcn")
    assert list(results.values(times, row)) == ["time relative to SGC 33 → 2.5"]


def test_what_is_not_finished_is_recorded_with_the_seeds_it_has(tmp_path):
    for seed, test in enumerate((0.8, 0.9)):
        folder = tmp_path / "paper-citation" / "cora" / "sgc" / f"seed-{seed}"
        folder.mkdir(parents=True)
        one = {"valid_accuracy": 0.7, "test_accuracy": test, "seconds": 3.0, "parameters": 5}
        (folder / "result.json").write_text(json.dumps(one))
    (cell,) = results.so_far(tmp_path / "paper-citation")["cells"]
    assert (cell["row"], cell["column"], cell["seeds"], cell["published_test"]) == ("SGC", "cora", 2, 0.81)
    assert (cell["test_accuracy"], cell["test_accuracy_std"]) == pytest.approx((0.85, 0.005**0.5))
    text = markdown(results.so_far(tmp_path / "paper-citation"))
    assert "| SGC, 2 of the seeds | 70.00 ± 0.00 | – | 85.00 ± 7.07 | 81.00 ± 0.20 | 3.0 | 5 |" in text
