"""A specification is all that a run is: it is kept whole, read back whole, and knows its graph."""

import dataclasses

import numpy as np
import pytest

from gamlp.errors import FormatError, SettingsError, StorageError
from gamlp.graph.splits import Split
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.recipes.recipe import write_recipe
from gamlp.runs.record import read_run
from gamlp.runs.run import open_run, train_run
from gamlp.runs.spec import RunSpec, check_same_graph
from gamlp.storage.files import read_json, write_json

QUICK = {"hidden": 8, "hops": 2, "epochs": [3]}


def changed(graph):
    """The graph with one thing changed."""
    labels = graph.labels.copy()
    labels[0] = (labels[0] + 1) % 3
    split = Split(graph.split.train, graph.split.valid[1:], graph.split.test)
    return {
        "labels": graph.with_labels(labels),
        "classes": dataclasses.replace(graph, classes=("aaa", "b", "c")),
        "split": dataclasses.replace(graph, split=split),
        "ids": dataclasses.replace(graph, names=np.array([f"n{at}" for at in range(graph.nodes)])),
        "features": dataclasses.replace(graph, features=graph.features + 1),
        "feature names": dataclasses.replace(graph, feature_names=tuple("abcdefghijkl")),
    }


@pytest.mark.parametrize("what", ["labels", "classes", "split", "ids", "features", "feature names"])
def test_whatever_changed_is_named(planted, tmp_path, what):
    spec = RunSpec.of(planted, "sgc", overrides=QUICK)
    check_same_graph(spec, planted)
    other = changed(planted)[what]
    with pytest.raises(StorageError, match=f"changed since the run: {what}"):
        check_same_graph(spec, other)
    train_run(planted, spec, folder=tmp_path)
    with pytest.raises(StorageError, match=f"changed since the run: {what}"):  # the same command again
        train_run(other, RunSpec.of(other, "sgc", overrides=QUICK), folder=tmp_path)


def test_run_json_keeps_the_whole_specification(planted, tmp_path):
    engine = EngineChoice(memory=2**28, cache=tmp_path / "cache")
    spec = RunSpec.of(planted, "sgc", overrides=QUICK, seeds=[3, 4], engine=engine)
    open_run(planted, spec, tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert {name: getattr(record, name) for name in RunSpec.model_fields} == dict(spec)
    assert record.result is None


def test_going_on_reads_no_recipe(planted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_recipe(tmp_path / "mine.toml", {"method": "sgc", "settings": {"hops": 1, "epochs": [4]}})
    spec = RunSpec.of(planted, None, "mine.toml")
    assert (spec.method, spec.recipe) == ("sgc", str(tmp_path / "mine.toml"))
    open_run(planted, spec, tmp_path / "run")
    (tmp_path / "mine.toml").unlink()
    result = train_run(planted, read_run(tmp_path / "run"), folder=tmp_path / "run")
    assert result["runs"][0]["stages"][0]["epochs"] == 4


@pytest.mark.parametrize("engine", [{"memory": 2**30}, {"name": "ray"}, {"cache": "hops"}])
def test_message_passing_has_no_engine(planted, engine):
    with pytest.raises(SettingsError, match="no engine propagates for it"):
        RunSpec.of(planted, "gcn", engine=EngineChoice(**engine))


def test_a_setting_against_the_name_is_refused(planted):
    with pytest.raises(SettingsError, match=r"sgc\+cs has correct_and_smooth = True"):
        RunSpec.of(planted, "sgc+cs", overrides={"correct_and_smooth": False})


def as_written_by_0_1_0(folder, graph):
    new = read_json(folder / "run.json")
    old = {key: value for key, value in new.items() if key not in ("source", "engine", "fingerprints", "notes")}
    source = {"what": ["/g/e.csv"], "root": "/data", "options": {"label": "topic", "directed": True}}
    write_json(folder / "run.json", {**old, "format": 1, "fingerprint": graph.fingerprint, "graph": source})


def test_a_run_of_0_1_0_is_read(planted, tmp_path):
    spec = RunSpec.of(planted, "sgc", overrides=QUICK)
    train_run(planted, spec, folder=tmp_path)
    as_written_by_0_1_0(tmp_path, planted)
    record = read_run(tmp_path)
    assert (record.method, record.settings, record.engine) == ("sgc", spec.settings, EngineChoice())
    assert record.source.words() == ["/g/e.csv", "--column", "label=topic", "--directed"]
    check_same_graph(record, planted)
    with pytest.raises(StorageError, match="changed since the run: adjacency or features"):
        check_same_graph(record, changed(planted)["features"])


def test_an_unfinished_run_of_0_1_0_says_how_to_begin_anew(planted, tmp_path):
    spec = RunSpec.of(planted, "sgc", overrides=QUICK)
    open_run(planted, spec, tmp_path)
    as_written_by_0_1_0(tmp_path, planted)
    with pytest.raises(StorageError, match=r"gamlp train /g/e\.csv --column label=topic --directed"):
        train_run(planted, spec, folder=tmp_path)


@pytest.mark.parametrize(
    ("key", "value"), [("format", 3), ("seeds", [2**63]), ("seeds", []), ("engine", {"name": 3}), ("settings", [])]
)
def test_a_record_that_nobody_wrote(planted, tmp_path, key, value):
    open_run(planted, RunSpec.of(planted, "sgc", overrides=QUICK), tmp_path)
    write_json(tmp_path / "run.json", {**read_json(tmp_path / "run.json"), key: value})
    with pytest.raises(FormatError, match=key):
        read_run(tmp_path)
