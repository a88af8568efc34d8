"""The page of a comparison, from run.json files written by hand."""

import json
import re

import pytest

from gamlp.cli import main
from gamlp.errors import FormatError, InputError, MissingFileError
from gamlp.explain.comparison import behind, charts, differing_settings, summaries_of, write_comparison
from gamlp.explain.figures.chart import drawn
from gamlp.graph.store import save_graph
from gamlp.storage.files import read_json, write_json
from gamlp.targets.metrics import METRICS

HOSTILE = "<script>alert(1)</script>"


def write_run(folder, method, tests, *, recipe="cora", fingerprint="f", dataset="cora", settings=None):
    """A run with the test accuracies of seeds 0, 1, …; mean and std are worked out by hand in the tests."""
    mean = None if None in tests else sum(tests) / len(tests)
    std = None if None in tests or len(tests) < 2 else 0.01
    names = [f"{part}_{name}" for part in ("valid", "test") for name in ("accuracy", "macro_f1", "log_loss")]
    result = {
        **dict.fromkeys(names, mean), **dict.fromkeys((f"{name}_std" for name in names), std),
        "parameters": 1234, "seconds_per_seed": 2.5, "peak_memory_bytes": 3 * 2**20, "best_seed": 0, "method": method,
        "seconds": 2.5 * len(tests), "seeds": list(range(len(tests))),
        "runs": [
            {**dict.fromkeys(names, value), "seed": seed, "stages": [], "parameters": 1234, "seconds": 2.5}
            for seed, value in enumerate(tests)
        ],
    }  # fmt: skip
    record = {
        "format": 1,
        "dataset": dataset, "fingerprint": fingerprint, "method": method, "recipe": recipe, "overrides": {},
        "graph": {"what": ["cora"], "root": "data", "options": {}}, "seeds": list(range(len(tests))), "device": "cpu",
        "settings": settings or {"hops": 2, "dropout": 0.5}, "versions": {"gamlp": "0.1.0"}, "machine": "a machine",
        "result": result,
    }  # fmt: skip
    write_json(folder / "run.json", record)
    for seed in range(len(tests)):
        history = [{"epoch": 1, "loss": 2.0, "valid_accuracy": 0.25}, {"epoch": 3, "loss": 1.0, "valid_accuracy": 0.75}]
        write_json(folder / f"seed-{seed}" / "history.json", history)
    return folder


@pytest.fixture
def comparison(tmp_path):
    """SGC at 80 and 82 %, GAMLP at 84 and 83 %, and one whose method is a script."""
    folder = tmp_path / "all"
    write_run(folder / "sgc", "sgc", [0.80, 0.82])
    write_run(folder / "gamlp-jk", "gamlp-jk", [0.84, 0.83], settings={"hops": 5, "dropout": 0.5})
    write_run(folder / "mlp", HOSTILE, [0.5, 0.5])
    record = {
        "format": 1,
        "dataset": "cora", "methods": ["sgc", "gamlp-jk", "mlp"], "recipe": "cora", "seeds": [0, 1], "device": "cpu",
        "overrides": {"epochs": [3, 4]}, "source": {"what": ["cora"], "root": "/data", "options": {}},
        "propagation_seconds": 1.25, "rows": [],
    }  # fmt: skip
    write_json(folder / "comparison.json", record)
    return folder


def words_of(page):
    text = page.read_text(encoding="utf-8")
    return " ".join(re.sub(r"<[^>]+>", " ", text[text.index("<body") : text.index("<script")]).split())


def test_the_page_holds_means_published_values_and_paired_gaps(comparison):
    words = words_of(write_comparison([comparison]))
    assert "3 methods on cora" in words
    assert "Best on test: gamlp-jk , 83.50 ± 1.00 %" in words
    # published in the recipe: SGC 81.0 ± 0.2, GAMLP(JK) 84.3 ± 0.8; gaps 4 and 1, mean 2.5, std 3/√2
    assert "sgc 81.00 ± 1.00 % 81.00 ± 0.20 % 2.50 ± 2.12 %" in words
    assert "gamlp-jk 83.50 ± 1.00 % 84.30 ± 0.80 % –" in words
    assert "propagation, which methods share, took 1.2 s" in words
    assert "seed 0 seed 1 sgc 80.00 % 82.00 % gamlp-jk 84.00 % 83.00 %" in words
    assert "Settings that differ setting sgc gamlp-jk &lt;script&gt;alert(1)&lt;/script&gt; hops 2 5 2 Run" in words
    assert (
        "gamlp compare cora --root /data --methods sgc,gamlp-jk,mlp --recipe cora --seeds 2 --seed 0 "
        "--set &#39;epochs=[3, 4]&#39;" in words
    )


def test_a_hostile_method_is_text_and_nothing_is_asked_from_elsewhere(comparison):
    text = write_comparison([comparison]).read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert text.count("<script") == 1
    assert not re.search(r"https?://|@import|url\((?!#)|src=", text)
    assert "default-src 'none'" in text


def test_methods_lead_to_their_own_pages(comparison):
    (comparison / "sgc" / "report.html").write_text("own page")
    text = write_comparison([comparison]).read_text(encoding="utf-8")
    assert '<a href="sgc/report.html">sgc</a>' in text
    assert 'href="gamlp-jk/report.html"' not in text


def test_gaps_are_over_the_seeds_that_both_have(tmp_path):
    best = write_run(tmp_path / "best", "gamlp-jk", [0.9, 0.8, 0.7])
    other = write_run(tmp_path / "other", "sgc", [0.6])
    one, two = summaries_of([best, other])
    assert behind(two, one, METRICS["accuracy"]) == (pytest.approx(0.3), None)
    assert behind(one, one, METRICS["accuracy"]) is None


def test_two_runs_of_one_method_are_told_apart(tmp_path):
    runs = [write_run(tmp_path / name, "sgc", [0.8]) for name in ("first", "second")]
    assert [entry.name for entry in summaries_of(runs)] == ["sgc (first)", "sgc (second)"]
    assert [entry.name for entry in summaries_of([runs[0], runs[0]])] == ["sgc"]


def test_settings_that_one_run_does_not_have(tmp_path):
    runs = [
        write_run(tmp_path / "a", "sgc", [0.8], settings={"hops": 2, "labels": True}),
        write_run(tmp_path / "b", "gcn", [0.8], settings={"hops": 2, "layers": [1, 2]}),
    ]
    assert differing_settings(summaries_of(runs)) == {"labels": ["yes", "–"], "layers": ["–", "1, 2"]}


def test_the_chart_by_hand(tmp_path):
    write_run(tmp_path / "a", "sgc", [0.5, 0.9], recipe="no-recipe.toml")
    (chart,) = charts(summaries_of([tmp_path / "a"]))
    with drawn(chart) as figure:
        (axes,) = figure.axes
        dots, mean = (line.get_xdata() for line in axes.lines[:2])
        (spread,) = axes.collections[0].get_segments()
    assert list(dots) == [0.5, 0.9]
    assert list(mean) == [0.7]
    assert spread[:, 0].tolist() == pytest.approx([0.69, 0.71])  # mean ± the std of 0.01
    assert "published" not in str(chart.svg())


def test_nothing_tested(tmp_path):
    page = write_comparison([write_run(tmp_path / "a", "sgc", [None, None])])
    assert "nothing was tested" in words_of(page)
    assert "<svg" not in page.read_text(encoding="utf-8")


def test_what_cannot_be_set_side_by_side(tmp_path, comparison):
    one = write_run(tmp_path / "one", "sgc", [0.8])
    other = write_run(tmp_path / "other", "sgc", [0.8], fingerprint="g", dataset="citeseer")
    with pytest.raises(InputError, match="2 different graphs: cora, citeseer"):
        write_comparison([one, other], out=tmp_path / "page.html")
    with pytest.raises(InputError, match="no place for their page"):
        write_comparison([one, comparison])
    with pytest.raises(MissingFileError, match="neither run"):
        write_comparison([tmp_path / "nowhere"])
    unfinished = read_json(comparison / "comparison.json")
    del unfinished["rows"]
    write_json(comparison / "comparison.json", unfinished)
    with pytest.raises(MissingFileError, match="gamlp compare --resume"):
        write_comparison([comparison])
    write_json(comparison / "comparison.json", [])
    with pytest.raises(FormatError, match="has the format None"):
        write_comparison([comparison])
    assert not (tmp_path / "page.html").exists()


def test_report_command_for_several(comparison, tmp_path, capsys):
    other = write_run(tmp_path / "other", "sgc", [0.7, 0.7])
    words = ["report", str(comparison), str(other), "--out", str(tmp_path / "both.html"), "--json"]
    with pytest.raises(SystemExit) as left:
        main([*words, "--tensorboard", str(tmp_path / "board")])
    assert left.value.code == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["bytes"] == (tmp_path / "both.html").stat().st_size
    assert "4 runs on cora" in words_of(tmp_path / "both.html")
    assert len(facts["files"]) == 8  # a folder for each seed of the four runs


def test_compare_writes_all_pages(make_planted, tmp_path, capsys):
    save_graph(make_planted(nodes=90, features=4, degree=4, labelled=6), tmp_path / "graph")
    words = ["--methods", "sgc,label-propagation", "--seeds", "2", "--set", "epochs=2", "--out", str(tmp_path / "all")]
    with pytest.raises(SystemExit) as left:
        main(["compare", str(tmp_path / "graph"), *words, "--json"])
    assert left.value.code == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["report"] == str(tmp_path / "all" / "report.html")
    words = words_of(tmp_path / "all" / "report.html")
    for row in facts["rows"]:
        assert f"{row['method']} {100 * row['test_accuracy']:.2f} ± {100 * row['test_accuracy_std']:.2f} %" in words
        assert (tmp_path / "all" / row["method"] / "report.html").exists()


def test_the_page_is_opened_when_asked(comparison, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with pytest.raises(SystemExit):
        main(["report", str(comparison), "--open"])
    assert opened == [(comparison / "report.html").resolve().as_uri()]


@pytest.mark.parametrize("name", ["../other", "..", "", ".", "a/b", "/tmp", "odd", 3])
def test_a_comparison_reads_nothing_outside_its_folder(comparison, name):
    write_run(comparison.parent / "other", "sgc", [0.8])
    write_json(comparison / "comparison.json", {**read_json(comparison / "comparison.json"), "methods": [name]})
    with pytest.raises(FormatError, match=r"methods\.0"):
        write_comparison([comparison])


@pytest.mark.parametrize("option", [("--seed", "1"), ("--root", "data")])
def test_options_of_one_run_are_refused_for_several(comparison, capsys, option):
    with pytest.raises(SystemExit) as left:
        main(["report", str(comparison), *option])
    assert left.value.code == 2
    assert f"{option[0]} was given beside several runs" in capsys.readouterr().err
    assert not (comparison / "report.html").exists()


def test_where_peak_memory_is_unknown_the_page_says_so(comparison):
    record = read_json(comparison / "sgc" / "run.json")
    record["result"]["peak_memory_bytes"] = None
    write_json(comparison / "sgc" / "run.json", record)
    words = words_of(write_comparison([comparison]))
    assert "sgc 2.5 – 1,234" in words
    assert "gamlp-jk 2.5 3 MiB 1,234" in words
