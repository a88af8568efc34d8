"""A search chooses on validation alone, begins with the recipe itself, and goes on where it stopped."""

import dataclasses
import sys

import numpy as np
import pytest
import torch

from gamlp.errors import InputError, MissingExtraError, MissingFileError, SettingsError, SplitError, StorageError
from gamlp.graph.splits import Split
from gamlp.methods import method_named
from gamlp.model import build_network
from gamlp.recipes import load_recipe
from gamlp.runs import study as studies
from gamlp.runs import tuning
from gamlp.runs.run import train_run
from gamlp.runs.spec import RunSpec
from gamlp.runs.study import SearchSpec, asked, begin, study_in
from gamlp.runs.tuning import SPACE, suggested, tune
from gamlp.settings import Settings
from gamlp.storage.locks import locked

SMALL = {"epochs": [3, 2], "hidden": 8, "label_layers": 1, "feature_scaling": "none", "batch_norm": False}


def spec(graph, method="gamlp-jk", seeds=(0,), **overrides):
    chosen = {key: value for key, value in {**SMALL, **overrides}.items() if method_named(method).takes(key)}
    return RunSpec.of(graph, method, "default", chosen, list(seeds))


def searching(start, out, trials=1):
    return SearchSpec(**dict(start), trials=trials, out=out)


def search(graph, start, folder, *, trials, name="mine"):
    file, wanted = folder / f"{name}.study.sqlite", searching(start, folder / f"{name}.toml", trials)
    if not file.exists():
        begin(file, wanted)
    return tune(graph, wanted, study_file=file)


def trials_of(folder, name):
    with study_in(folder / f"{name}.study.sqlite") as study:
        return [(trial.value, trial.user_attrs["changes"]) for trial in study.trials if trial.value is not None]


def test_the_recipe_that_is_written_gives_the_settings_that_were_found(planted, tmp_path):
    wanted = spec(planted, "gamlp-jk+rlu", seeds=(0, 1))
    result = search(planted, wanted, tmp_path, trials=2)
    assert (result["trials"], result["pruned"]) == (2, 0)
    as_it_was = train_run(planted, wanted, folder=None)["valid_accuracy"]
    assert result["start_valid_accuracy"] == as_it_was
    assert result["best_valid_accuracy"] >= as_it_was
    recipe = load_recipe(tmp_path / "mine.toml")
    assert recipe.method == "gamlp-jk+rlu"
    assert recipe.source.startswith("tuned by gamlp tune on planted: 2 trials, validation accuracy ")
    assert recipe.resolve(method_named("gamlp-jk+rlu")).model_dump(mode="json") == result["settings"]
    again = RunSpec.of(planted, "gamlp-jk+rlu", str(tmp_path / "mine.toml"), {}, [0, 1])
    assert train_run(planted, again, folder=None)["valid_accuracy"] == result["best_valid_accuracy"]


def test_a_search_goes_on_as_if_it_had_not_been_stopped(planted, tmp_path, monkeypatch):
    wanted = spec(planted, "sgc")
    whole = search(planted, wanted, tmp_path, trials=3, name="whole")
    search(planted, wanted, tmp_path, trials=1, name="parts")
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "valid_score", interrupt)
        with pytest.raises(KeyboardInterrupt):
            search(planted, wanted, tmp_path, trials=3, name="parts")
    with study_in(tmp_path / "parts.study.sqlite") as study:
        study.ask()  # as a kill leaves it: a trial under way
    parts = search(planted, wanted, tmp_path, trials=3, name="parts")
    assert trials_of(tmp_path, "parts") == trials_of(tmp_path, "whole")
    with study_in(tmp_path / "parts.study.sqlite") as study:
        assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "FAIL", "COMPLETE", "COMPLETE"]
    assert parts["settings"] == whole["settings"]


def interrupt(*words, **options):
    raise KeyboardInterrupt


def test_test_labels_do_not_matter(planted, tmp_path):
    labels = planted.labels.copy()
    labels[planted.split.test] = np.random.default_rng(1).permutation(labels[planted.split.test])
    other_graph = planted.with_labels(labels)
    first = search(planted, spec(planted, "sgc"), tmp_path, trials=2, name="true")
    other = search(other_graph, spec(other_graph, "sgc"), tmp_path, trials=2, name="shuffled")
    assert trials_of(tmp_path, "true") == trials_of(tmp_path, "shuffled")
    assert first["settings"] == other["settings"]


def test_the_graph_of_a_trial_has_no_test_labels(planted, tmp_path, monkeypatch):
    def look(pipeline, graph, *, seed, folder):
        assert (graph.labels[planted.split.test] == -1).all()
        for ids in (planted.split.train, planted.split.valid):
            assert (graph.labels[ids] == planted.labels[ids]).all()
        return {"valid_accuracy": 0.5, "test_accuracy": None}

    monkeypatch.setattr(tuning, "train_seed", look)
    assert search(planted, spec(planted, "sgc"), tmp_path, trials=1)["best_valid_accuracy"] == 0.5


def test_a_trial_below_the_median_is_given_up_after_a_seed(planted, tmp_path, monkeypatch):
    seeds = []

    def scripted(pipeline, graph, seed):
        seeds.append(seed)
        return 0.9 if len(seeds) <= 10 else 0.1  # five good trials of two seeds, then bad ones

    monkeypatch.setattr(tuning, "valid_score", scripted)
    result = search(planted, spec(planted, "sgc", seeds=(0, 1)), tmp_path, trials=7)
    assert (result["trials"], result["pruned"]) == (7, 2)
    assert seeds == [0, 1] * 5 + [0, 0]
    assert result["best_valid_accuracy"] == 0.9


class Drawn:
    """Stands for a trial of Optuna: draws evenly, and remembers what it was asked for."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.keys = []

    def suggest_categorical(self, key, choices):
        self.keys.append(key)
        return choices[self.random.integers(len(choices))]

    def suggest_int(self, key, low, high):
        self.keys.append(key)
        return int(self.random.integers(low, high + 1))

    def suggest_float(self, key, low, high, *, step=None, log=False):
        self.keys.append(key)
        if step is None:
            return float(np.exp(self.random.uniform(np.log(low), np.log(high))))
        return low + step * int(self.random.integers(0, round((high - low) / step) + 1))


@pytest.mark.parametrize("name", ["gamlp-jk+rlu", "gamlp-recursive", "sgc", "gbp", "sign", "sagn+sle"])
def test_whatever_is_drawn_is_a_network(planted, name):
    method = method_named(name)
    start = load_recipe("default").resolve(method, {"hidden": 8})
    for seed in range(10):
        changes, settings = suggested(Drawn(seed), planted, method, start, {"hidden"})
        assert set(changes).isdisjoint({"hidden", *method.fixed})
        network = build_network(settings, features=5, classes=3).eval()
        labels = torch.zeros(4, 3) if settings.labels else None
        assert network(torch.zeros(4, settings.hops + 1, 5), labels).logits.shape == (4, 3)


def test_only_settings_that_change_something_are_searched(planted):
    start = load_recipe("default").resolve(method_named("gamlp-jk+rlu"))
    trial = Drawn(0)
    suggested(trial, planted, method_named("gamlp-jk+rlu"), start, {"labels"})
    assert {"threshold", "gamma", "temperature", "label_hops", "jk_layers"} < set(trial.keys)
    assert "decay" not in trial.keys
    trial = Drawn(0)
    bare = start.model_copy(update={"labels": False})
    suggested(trial, planted, method_named("gamlp-recursive"), bare, {"labels"})
    assert set(trial.keys).isdisjoint({"threshold", "gamma", "temperature", "label_hops"})
    assert set(SPACE) <= set(Settings.model_fields)


def test_what_cannot_be_searched_is_refused(planted, tmp_path):
    with pytest.raises(SettingsError, match="label-propagation has nothing to search for"):
        tuning.checked(planted, searching(spec(planted, "label-propagation"), tmp_path / "mine.toml"))
    with pytest.raises(InputError, match=r"ends in \.toml"):
        tuning.checked(planted, searching(spec(planted), tmp_path / "mine.json"))
    everyone = Split(planted.split.train, np.zeros(0, np.int64), planted.split.test)
    without = dataclasses.replace(planted, split=everyone)
    with pytest.raises(SplitError, match="no validation nodes"):
        tuning.checked(without, searching(spec(without), tmp_path / "mine.toml"))


def test_study_files(planted, make_planted, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "valid_score", lambda *words: 0.5)
    file = tmp_path / "mine.study.sqlite"
    start = spec(planted, "sgc")
    search(planted, start, tmp_path, trials=1)
    assert asked(file) == searching(start, tmp_path / "mine.toml")
    with pytest.raises(InputError, match="is there already"):
        begin(file, searching(start, tmp_path / "other.toml"))
    with pytest.raises(InputError, match=r"mine\.toml is there already"):
        begin(tmp_path / "new.sqlite", searching(start, tmp_path / "mine.toml"))
    with pytest.raises(StorageError, match="changed since the run: adjacency, features"):
        tune(make_planted(seed=1), asked(file), study_file=file)
    with pytest.raises(MissingFileError, match="is not there"):
        asked(tmp_path / "none.sqlite")
    file.write_bytes(b"not a database, but long enough to be looked at" * 10)
    with pytest.raises(StorageError, match="cannot be read or written"):
        asked(file)


def test_a_kill_while_the_study_is_made_leaves_no_dead_end(planted, tmp_path, monkeypatch):
    file, wanted = tmp_path / "mine.study.sqlite", searching(spec(planted, "sgc"), tmp_path / "mine.toml")
    with monkeypatch.context() as patch:
        optuna = studies.optuna_or_error()
        patch.setattr(optuna.Study, "set_user_attr", interrupt)
        with pytest.raises(KeyboardInterrupt):
            begin(file, wanted)
    assert not file.exists()
    with study_in(file):
        pass  # a study without a word of what it is for: what 0.1.0 left
    begin(file, wanted)
    assert asked(file) == wanted


@pytest.mark.parametrize("name", ["what?mode=ro", "curly {} and {x}", "percent%20", "a#b"])
def test_any_name_is_a_name_for_a_study(planted, tmp_path, name):
    file = tmp_path / name / "mine.study.sqlite"
    wanted = searching(spec(planted, "sgc"), tmp_path / name / "mine.toml")
    begin(file, wanted)
    assert asked(file) == wanted
    assert [path.name for path in tmp_path.rglob("*.sqlite")] == ["mine.study.sqlite"]


def test_two_searches_at_once_are_one_at_a_time(planted, tmp_path):
    file, wanted = tmp_path / "mine.study.sqlite", searching(spec(planted, "sgc"), tmp_path / "mine.toml")
    begin(file, wanted)
    with locked(file), pytest.raises(StorageError, match="Another process works on"):
        tune(planted, wanted, study_file=file)


def test_a_study_of_0_1_0_says_to_begin_anew(tmp_path):
    with study_in(tmp_path / "old.sqlite") as study:
        study.set_user_attr("order", {"method": "sgc"})
    with pytest.raises(InputError, match=r"begun by gamlp 0\.1\.0"):
        asked(tmp_path / "old.sqlite")


def test_without_optuna_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"gamlp\[tune\]"):
        studies.optuna_or_error()
