"""Figures as files, and curves for TensorBoard: the numbers in them are those of the run."""

import csv
import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from run_files import undrawn

from gamlp.cli import main
from gamlp.explain.figures import SECTIONS, charts_of, write_run_figures
from gamlp.explain.figures.chart import write_charts
from gamlp.explain.figures.learning import write_curves
from gamlp.explain.finished_run import open_run
from gamlp.explain.report import render
from gamlp.storage.files import write_json


def table(file):
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))


def test_all_figures_of_a_run(tiny_graph, run_of, tmp_path, capsys):
    graph = replace(tiny_graph, classes=("cost: $5", "a_b$", "蓝 <b>"))
    out = tmp_path / "figures"
    with pytest.raises(SystemExit) as left:
        main(["report", str(run_of(graph)), "--figures", str(out), "--json"])
    assert left.value.code == 0
    files = json.loads(capsys.readouterr().out)["files"]
    stems = {file.stem for file in out.iterdir()}
    assert stems == {
        "loss", "validation-accuracy", "reliable-set", "calibration", "calibration-before", "coverage",
        "coverage-by-class", "confusion", "accuracy-by-degree",
        "accuracy-by-class", "attention", "attention-by-degree", "attention-right-and-wrong", "attention-by-class",
        "attention-trend",
    }  # fmt: skip
    assert len(files) == 3 * len(stems)
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_their_numbers_by_hand(tiny_graph, run_of, tmp_path, monkeypatch):
    monkeypatch.setattr("gamlp.explain.figures.chart.drawn", undrawn)
    write_run_figures(open_run(tiny_graph, run_of(tiny_graph)), tmp_path)
    assert table(tmp_path / "reliable-set.csv") == [["stage", "reliable nodes"], ["1", "0"], ["2", "3"]]
    # test nodes 3, 4, 7, 8 have labels green, blue, green, blue and are given green, red, green, green
    assert table(tmp_path / "confusion.csv")[1:] == [
        ["red", "0", "0", "0", "0"], ["green", "0", "2", "0", "0"], ["blue", "1", "1", "0", "0"],
    ]  # fmt: skip
    assert table(tmp_path / "accuracy-by-class.csv")[1:] == [["green", "2", "1.0"], ["blue", "2", "0.0"]]
    # degrees 2, 5, 1, 1
    assert table(tmp_path / "accuracy-by-degree.csv")[1:] == [["1–4", "3", str(2 / 3)], ["5–8", "1", "0.0"]]
    loss = table(tmp_path / "loss.csv")
    assert loss[0] == ["curve", "epoch", "loss"]
    assert [loss[2], loss[8]] == [["training", "2.0", "1.0"], ["validation", "2.0", "1.5"]]
    assert table(tmp_path / "validation-accuracy.csv")[2] == ["0", "2.0", "0.2"]
    filled = [row for row in table(tmp_path / "calibration.csv")[1:] if float(row[2])]
    assert table(tmp_path / "coverage.csv")[1:] == [["0.9", "0.75", "1.5", "0.5", "0.0"]]
    assert table(tmp_path / "coverage-by-class.csv")[1:] == [["green", "2", "1.0"], ["blue", "2", "0.5"]]
    assert [float(row[2]) for row in filled] == [3, 1]  # float32 puts 0.6 and 0.7, twice, above 0.6 and below 0.7; 0.9


def test_curves_for_tensorboard(tiny_graph, run_of, tmp_path):
    pytest.importorskip("tensorboard", reason="the extra 'tensorboard' is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (folder,) = write_curves([run_of(tiny_graph)], tmp_path / "board")
    found = EventAccumulator(str(folder)).Reload()
    loss = [(event.step, event.value) for event in found.Scalars("loss/train")]
    # 2/epoch in both stages; the second stage's epochs follow the first's
    assert loss == [(1, 2), (2, 1), (3, pytest.approx(2 / 3)), (4, 2), (5, 1), (6, pytest.approx(2 / 3))]
    assert [event.value for event in found.Scalars("accuracy/test")] == [0.5]


def test_without_tensorboard_it_says_what_to_install(tiny_graph, run_of, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(SystemExit) as left:
        main(["report", str(run_of(tiny_graph)), "--tensorboard", str(tmp_path / "board")])
    assert left.value.code == 2
    assert "pip install 'gamlp[tensorboard]'" in capsys.readouterr().err


def test_a_name_with_control_characters_can_be_drawn(tiny_graph, run_of, tmp_path):
    graph = replace(tiny_graph, classes=("bell \x07", "escape \x1b[31m", "x" * 99))
    chart, *_ = charts_of("mistakes", open_run(graph, run_of(graph)))
    files = write_charts([chart], tmp_path / "figures")
    words = [text.text for text in ElementTree.parse(files[1]).iter("{http://www.w3.org/2000/svg}text")]
    assert {"bell �", "escape �[31m", "x" * 19 + "…"} <= set(words)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.id)
def test_every_figure_keeps_the_contract(tiny_graph, run_of, section):
    """Numbers under their names, a picture, and a place on the page: for any figure that is registered."""
    folder = run_of(tiny_graph)
    shares = {"weights": [[0.5, 0.5, 0.5]] * 2, "relation_weights": [[1.0, 0.5, 0.5]]}
    write_json(folder / "seed-0" / "relations.json", {"subsets": ["a", "a + b"], "relations": ["a"], **shares})
    run = open_run(tiny_graph, folder)
    for module in section.modules:
        assert charts_of(module, run), module
    charts, page = section.charts(run), render(run)
    names = [chart.name for one in SECTIONS for chart in one.charts(run)]
    assert len(set(names)) == len(names)
    for chart in charts:
        assert chart.rows
        assert {len(row) for row in chart.rows} == {len(chart.header)}
        assert f"<h3>{chart.title}</h3>" in page
        if chart.cells is None:
            assert str(chart.svg()) in page
        else:
            assert chart.cells.shares.shape == (len(chart.cells.rows), len(chart.cells.columns))
            assert ((chart.cells.shares >= 0) & (chart.cells.shares <= 1)).all()
