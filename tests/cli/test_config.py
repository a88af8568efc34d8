"""A run as one file, errors as JSON, SIGTERM as Ctrl-C, runs that are replaced, parts that other packages register."""

import json
import os
import signal
import sys
import tomllib
from importlib.metadata import EntryPoint, EntryPoints

import pytest

import gamlp as package
from gamlp import plugins
from gamlp.errors import SettingsError
from gamlp.methods import registry as methods
from gamlp.model import registry as combiners

QUICK = {"hidden": 8, "epochs": [2], "hops": 1}


def test_a_run_is_a_file_and_the_file_the_run(gamlp, files, tmp_path):
    text = f"""
        graph = ["{files.edges.name}", "{files.nodes.name}"]
        method = "sign"
        seeds = 1
        seed = 3
        directed = true
        out = "first"
        [column]
        label = "label"
        [set]
        {chr(10).join(f"{key} = {value}" for key, value in QUICK.items())}
    """
    file = files.edges.parent / "run.toml"
    file.write_text(text)
    done = gamlp("train", file, "--set", "hidden=4", "--json")  # the command line comes first
    assert done.code == 0, done.err
    first = json.loads(done.out)
    record = json.loads((files.edges.parent / "first" / "run.json").read_text())
    assert (record["method"], record["seeds"], record["source"]["directed"]) == ("sign", [3], True)
    assert (record["settings"]["hidden"], record["settings"]["hops"]) == (4, 1)
    assert gamlp("config", files.edges.parent / "first", "--out", tmp_path / "again.toml").code == 0
    written = tomllib.loads((tmp_path / "again.toml").read_text())
    assert written["set"] == {**QUICK, "hidden": 4}
    place = ("--out", tmp_path / "second")
    again = json.loads(gamlp("train", tmp_path / "again.toml", *place, "--json").out)
    assert again["valid_log_loss"] == first["valid_log_loss"]
    assert gamlp("train", tmp_path / "again.toml", *place, "--seed", 4).code == 3  # another run is there
    before = (tmp_path / "second" / "run.json").read_text()
    done = gamlp("train", tmp_path / "again.toml", *place, "--seed", 4, "--overwrite")
    assert done.code == 0, done.err
    assert (tmp_path / "second" / "run.json").read_text() != before
    assert not (tmp_path / "second" / "seed-3").exists()
    stranger = tmp_path / "mine"
    stranger.mkdir()
    (stranger / "letter.txt").write_text("dear")
    assert gamlp("train", tmp_path / "again.toml", "--out", stranger, "--overwrite").code == 2
    assert (stranger / "letter.txt").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("graph = [", "not valid TOML"),
        ("seeds = 2", "names no graph"),
        ('graph = "debian"\nsede = 3', "Did you mean 'seed'?"),
        ('graph = "debian"\nset = 3', "Expected a table, [set]"),
        ('graph = "debian"\nseeds = true', "Expected a number or text"),
        ('graph = "debian"\ndirected = 1', "Expected true or false"),
        ('graph = "debian"\nseeds = "three"', "--seeds"),
    ],
)
def test_a_file_that_is_wrong(gamlp, tmp_path, text, said):
    (tmp_path / "run.toml").write_text(text)
    done = gamlp("train", tmp_path / "run.toml")
    assert done.code == 2
    assert said in done.err


def test_errors_are_json_too(gamlp, tmp_path):
    for words in (("train", tmp_path / "none.csv"), ("train", "--no-such-option"), ("train", "debian", "--seeds", "x")):
        done = gamlp(*words, "--json")
        told = json.loads(done.out)
        assert (done.code, told["code"]) == (2, 2)
        assert told["error"] in ("MissingFileError", "UsageError")
        assert told["message"]
    assert json.loads(gamlp("config", tmp_path, "--json").out)["remedy"] == "Name a folder that gamlp train made."


def test_sigterm_is_taken_as_ctrl_c(gamlp, monkeypatch):
    from gamlp.graph.readers import datasets

    monkeypatch.setattr(datasets, "describe_datasets", lambda root: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    done = gamlp("datasets", "--json")
    assert done.code == 130
    assert json.loads(done.out)["error"] == "Interrupted"
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_packages_register_parts(monkeypatch, tmp_path):
    points = EntryPoints(
        EntryPoint(name, value, "gamlp.methods")
        for name, value in (("gamlp-mean", "mine:MEAN"), ("sgc", "mine:MEAN"), ("broken", "mine:nothing"))
    )
    monkeypatch.setattr(plugins, "entry_points", lambda group: points.select(group=group))
    found = plugins.installed("methods", but=methods.BASES)
    assert found == {"gamlp-mean": ("mine:MEAN", "mine"), "broken": ("mine:nothing", "mine")}  # sgc is ours
    (tmp_path / "mine.py").write_text(
        "from gamlp.methods.base import Base\nMEAN = Base('the mean of all hops', {'combiner': 'mean'})\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, (place, _) in found.items():
        monkeypatch.setitem(methods.BASES, name, methods.Base(""))
        monkeypatch.setitem(methods.FAMILY_OF, name, place)
    method = methods.method_named("gamlp-mean+cs")
    assert method.fixed == {"combiner": "mean", "correct_and_smooth": True}
    with pytest.raises(SettingsError, match="mine:nothing, which cannot be imported"):
        methods.method_named("broken")
    sys.modules.pop("mine", None)
    methods.method_named.cache_clear()


def test_decorators_register_parts(monkeypatch):
    from gamlp.methods.label_propagation import LabelPropagation
    from gamlp.model.combiners import Mean

    monkeypatch.setitem(combiners.COMBINERS, "mine", f"{Mean.__module__}:Mean")  # taken back at the end
    assert package.register_combiner("mine")(Mean) is Mean
    assert combiners.combiner_named("mine") is Mean
    assert package.Settings(combiner="mine").combiner == "mine"
    with pytest.raises(SettingsError, match="registered already"):
        package.register_combiner("jk")(Mean)
    with pytest.raises(SettingsError, match="registered already"):
        package.register_method("gamlp-jk")(LabelPropagation)
