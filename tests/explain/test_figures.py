"""Figures as files, and curves for TensorBoard: the numbers in them are those of the run."""

import csv
import json
from dataclasses import replace

import pytest

from gamlp.cli import main
from gamlp.explain.curves import write_curves
from gamlp.explain.figures import write_run_figures
from gamlp.explain.finished_run import open_run


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
        "learning", "reliable-set", "calibration", "confusion", "accuracy-by-degree", "accuracy-by-class",
        "attention", "attention-by-degree", "attention-right-and-wrong", "attention-by-class",
    }  # fmt: skip
    assert len(files) == 3 * len(stems)
    assert (out / "learning.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def numbers(monkeypatch):
    """Leave out the drawing, which takes seconds."""
    for module in ("plots", "pictures"):
        monkeypatch.setattr(f"gamlp.explain.{module}.save", lambda stem, draw, size: [])


def test_their_numbers_by_hand(tiny_graph, run_of, tmp_path, numbers):
    write_run_figures(open_run(tiny_graph, run_of(tiny_graph)), tmp_path)
    assert table(tmp_path / "reliable-set.csv") == [["stage", "reliable nodes"], ["1", "0"], ["2", "3"]]
    # test nodes 3, 4, 7, 8 have labels green, blue, green, blue and are given green, red, green, green
    assert table(tmp_path / "confusion.csv")[1:] == [
        ["red", "0", "0", "0", "0"], ["green", "0", "2", "0", "0"], ["blue", "1", "1", "0", "0"],
    ]  # fmt: skip
    assert table(tmp_path / "accuracy-by-class.csv")[1:] == [["green", "2", "1.0"], ["blue", "2", "0.0"]]
    # degrees 2, 5, 1, 1
    assert table(tmp_path / "accuracy-by-degree.csv")[1:] == [["1–4", "3", str(2 / 3)], ["5–8", "1", "0.0"]]
    learning = table(tmp_path / "learning.csv")
    assert learning[0] == ["stage", "epoch", "loss", "valid_accuracy", "valid_log_loss"]
    assert list(map(float, learning[2])) == [1, 2, 1.0, 0.2, 1.5]
    filled = [row for row in table(tmp_path / "calibration.csv")[1:] if float(row[2])]
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
