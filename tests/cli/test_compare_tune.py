"""gamlp compare and gamlp tune from the command line."""

import json

import pytest

from gamlp.graph.store import save_graph
from gamlp.targets.metrics import METRICS

SHORT = ("--set", "epochs=3", "--set", "hops=2")

NAMES = (*METRICS, "largest_class", "base_rate")


@pytest.fixture(scope="module")
def graph(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs") / "small"
    save_graph(small, folder)
    return folder


def test_compare_and_resume(gamlp, graph, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # room for a std of two digits before the point
    words = ("compare", graph, "--methods", "sgc,label-propagation", "--seeds", 2, "--seed", 3, *SHORT)
    done = gamlp(*words, "--out", tmp_path / "all", "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["dataset"], result["seeds"], result["recipe"]) == ("planted", [3, 4], "default")
    assert result["out"] == str(tmp_path / "all")
    assert [row["method"] for row in result["rows"]] == ["sgc", "label-propagation"]
    scores = {f"{part}_{name}{end}" for part in ("valid", "test") for name in NAMES for end in ("", "_std")}
    costs = {"seconds", "parameters", "peak_memory_bytes", "published", "published_std", "own_settings"}
    assert set(result["rows"][0]) == {"method", "metric", *scores, *costs}
    shown = gamlp("compare", "--resume", tmp_path / "all")
    assert shown.code == 0, shown.err
    for row in result["rows"]:
        line = next(line for line in shown.out.splitlines() if line.split()[:1] == [row["method"]])
        assert f"{100 * row['test_accuracy']:.2f} ± {100 * row['test_accuracy_std']:.2f}" in line
    assert json.loads(gamlp("compare", "--resume", tmp_path / "all", "--json").out)["rows"] == result["rows"]


def test_compare_refuses_before_it_trains(gamlp, graph, tmp_path):
    wrong = gamlp("compare", graph, "--methods", "sgc,sgn", *SHORT, "--out", tmp_path / "all")
    assert wrong.code == 2
    assert "SettingsError: There is no method 'sgn'" in wrong.err
    assert not (tmp_path / "all").exists()
    assert gamlp("compare", "--resume", tmp_path).code == 2


@pytest.mark.parametrize("words", [["sgc", "sign+cs"], ["sgc,", "sign+cs"], ["sgc", "sign+cs,mlp"]])
def test_methods_with_spaces_between_are_told_apart_from_the_graph(gamlp, graph, tmp_path, words):
    done = gamlp("compare", graph, "--methods", *words, "--out", tmp_path / "all")
    assert done.code == 2
    said = " ".join(done.err.split())
    assert f"'{words[1]}' is a method and stands where the graph does" in said
    assert "--methods sgc,sign+cs" in said
    assert not (tmp_path / "all").exists()


def test_an_interrupted_comparison_says_how_to_go_on(gamlp, graph, tmp_path, monkeypatch):
    from gamlp.runs import run

    def interrupt(*words, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "train_seed", interrupt)
    stopped = gamlp("compare", graph, "--methods", "sgc", *SHORT, "--out", tmp_path / "all")
    assert stopped.code == 130
    assert f"gamlp compare --resume {tmp_path / 'all'}" in stopped.err.replace("\n", "")


def test_tune_resume_and_train(gamlp, graph, quick, tmp_path):
    recipe = tmp_path / "mine.toml"
    words = ("tune", graph, "--method", "gamlp-recursive", "--seeds", 1, *quick, "--out", recipe)
    done = gamlp(*words, "--trials", 1, "--json")
    assert done.code == 0, done.err
    first = json.loads(done.out)
    assert {"best_valid_accuracy", "trials", "pruned", "out", "settings"} <= set(first)
    assert (first["trials"], first["out"]) == (1, str(recipe))
    again = gamlp(*words, "--trials", 2)
    assert again.code == 2
    assert "is there already" in again.err
    more = gamlp("tune", "--resume", tmp_path / "mine.study.sqlite", "--trials", 2, "--json")
    assert more.code == 0, more.err
    assert json.loads(more.out)["trials"] == 2
    assert json.loads(more.out)["settings"]["hidden"] == 8  # given with --set: left alone
    best = json.loads(more.out)["best_valid_accuracy"]
    run = gamlp("train", graph, "--recipe", recipe, "--seeds", 1, "--out", tmp_path / "run", "--json")
    assert run.code == 0, run.err
    assert json.loads(run.out)["valid_accuracy"] == best
