"""Methods side by side: the same hops, one row each in the order asked for, nothing trained twice or too early."""

import csv
import json
import sys

import numpy as np
import pytest

from gamlp.errors import FormatError, InputError, MissingExtraError, MissingFileError, SettingsError, StorageError
from gamlp.machine.facts import peak_bytes, reset_peak
from gamlp.methods import method_named
from gamlp.propagate.engines.local import LocalEngine
from gamlp.recipes.recipe import write_recipe
from gamlp.runs import comparison as module
from gamlp.runs import run
from gamlp.runs.comparison import (
    ComparisonSpec,
    compare,
    comparison_for,
    methods_named,
    overrides_for,
    read_comparison,
    running_order,
)
from gamlp.runs.comparison_table import markdown, own_settings, told_apart
from gamlp.storage.files import read_json, write_json
from gamlp.storage.locks import locked

QUICK = {"hidden": 8, "label_layers": 1, "epochs": 3, "hops": 3}


def asked(graph, *methods, recipe="default", seeds=(0, 1), usual=QUICK, **overrides):
    return comparison_for(graph, methods, recipe, {**usual, **overrides}, seeds)


def test_rows_tell_what_the_runs_tell(planted, tmp_path):
    content = {"method": "sgc", "published": {"sgc": [81.0, 0.2], "mlp": [55.5]}}
    write_recipe(tmp_path / "mine.toml", content)
    wanted = asked(planted, "mlp", "label-propagation", "sgc", recipe=str(tmp_path / "mine.toml"))
    result = compare(planted, wanted, folder=tmp_path / "all")
    assert [row["method"] for row in result["rows"]] == ["mlp", "label-propagation", "sgc"]
    for row in result["rows"]:
        seeds = [tmp_path / "all" / row["method"] / f"seed-{seed}" / "result.json" for seed in (0, 1)]
        results = [json.loads(file.read_text()) for file in seeds]
        for part in ("valid_accuracy", "test_accuracy"):
            values = [result[part] for result in results]
            assert row[part] == pytest.approx(np.mean(values))
            assert row[f"{part}_std"] == pytest.approx(np.std(values, ddof=1))
        assert row["seconds"] == pytest.approx(np.mean([result["seconds"] for result in results]))
        assert row["peak_memory_bytes"] > 2**20
    assert [row["published"] for row in result["rows"]] == [0.555, None, 0.81]
    assert [row["published_std"] for row in result["rows"]] == [None, None, 0.002]
    assert result["rows"][2]["parameters"] == (12 + 1) * 3  # SGC: one linear layer, 12 features to 3 classes
    with (tmp_path / "all" / "comparison.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [float(row["test_accuracy"]) for row in table] == [row["test_accuracy"] for row in result["rows"]]
    record = read_comparison(tmp_path / "all")
    assert [row.model_dump() for row in record.rows] == result["rows"]
    assert {name: getattr(record, name) for name in ComparisonSpec.model_fields} == dict(wanted)


def test_markdown_by_hand():
    row = {
        "method": "sgc", "valid_accuracy": 0.5, "valid_accuracy_std": None, "test_accuracy": 0.81234,
        "test_accuracy_std": 0.00456, "seconds": 1.25, "parameters": 1234, "peak_memory_bytes": 3 * 2**20,
        "published": 0.81, "published_std": 0.002,
    }  # fmt: skip
    worse = {**row, "method": "mlp", "test_accuracy": 0.7, "published": None, "published_std": None}
    lines = markdown(
        {"dataset": "g", "seeds": [0, 1], "recipe": "r", "propagation_seconds": 2.0, "rows": [worse, row]}
    ).splitlines()
    assert lines[4] == "| mlp | 50.00 | 70.00 ± 0.46 | – | 1.2 | 1,234 | 3 |"
    assert lines[5] == "| sgc | 50.00 | **81.23 ± 0.46** | 81.00 ± 0.20 | 1.2 | 1,234 | 3 |"


def test_methods_that_propagate_alike_share_one_propagation(planted, tmp_path, monkeypatch):
    made, real = [], LocalEngine.propagate

    def counting(engine, adjacency, columns, spec):
        made.extend([spec.hops] if spec.keep == "all" else [])  # of labels the last hop is kept
        return real(engine, adjacency, columns, spec)

    monkeypatch.setattr(LocalEngine, "propagate", counting)
    wanted = asked(planted, "mlp", "sgc", "gamlp-smoothing", "sign", seeds=[0], **{"sgc.hops": 2})
    compare(planted, wanted, folder=tmp_path)
    assert made == [3]


def test_running_order_by_hand(planted):
    wanted = asked(
        planted,
        "sgc",
        "s2gc",
        "gcn",
        "sign",
        "gamlp-smoothing",
        **{"sgc.hops": 2, "s2gc.normalization": 1.0, "hops": 4},
    )
    assert running_order(wanted) == ["gamlp-smoothing", "sign", "sgc", "s2gc", "gcn"]


def test_an_interrupted_comparison_goes_on(planted, tmp_path, monkeypatch):
    wanted = asked(planted, "gamlp-recursive", "sgc")
    whole = compare(planted, wanted, folder=tmp_path / "whole")
    real, trained = run.train_seed, []

    def counting(*words, **options):
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(options["folder"].name)
        return real(*words, **options)

    monkeypatch.setattr(run, "train_seed", counting)
    with pytest.raises(KeyboardInterrupt):
        compare(planted, wanted, folder=tmp_path / "cut")
    again = read_comparison(tmp_path / "cut")
    monkeypatch.setattr(run, "train_seed", real)
    resumed = compare(planted, again, folder=tmp_path / "cut")
    keys = ("method", "valid_accuracy", "valid_accuracy_std", "test_accuracy", "test_accuracy_std", "parameters")
    assert [[row[key] for key in keys] for row in resumed["rows"]] == [
        [row[key] for key in keys] for row in whole["rows"]
    ]
    monkeypatch.setattr(run, "train_seed", None)  # from now on nothing may train
    assert compare(planted, again, folder=tmp_path / "cut")["rows"] == resumed["rows"]


def test_what_was_begun_and_is_not_asked_for_again_is_left_alone(planted, tmp_path, monkeypatch):
    real = run.train_seed
    begun = compare_until_killed(planted, asked(planted, "sgc", "label-propagation"), tmp_path, monkeypatch, real)
    assert begun == ["sgc", "label-propagation"]
    done = compare(planted, asked(planted, "label-propagation", usual={}), folder=tmp_path)
    assert [row["method"] for row in done["rows"]] == ["label-propagation"]
    both = compare(planted, asked(planted, "sgc"), folder=tmp_path)
    assert {row["method"] for row in both["rows"]} == {"sgc", "label-propagation"}


def compare_until_killed(graph, spec, folder, monkeypatch, real):
    """Begin a comparison that is cut off in its first seed; return the methods that it was to have."""

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "train_seed", killed)
    with pytest.raises(KeyboardInterrupt):
        compare(graph, spec, folder=folder)
    monkeypatch.setattr(run, "train_seed", real)
    return read_comparison(folder).methods


def test_a_method_can_be_added_later(planted, tmp_path, monkeypatch):
    first = compare(planted, asked(planted, "sgc"), folder=tmp_path)
    lone = asked(planted, "label-propagation", usual={})
    both = compare(planted, lone, folder=tmp_path)  # the earlier row stays, though it is not named again
    assert [row["method"] for row in both["rows"]] == ["sgc", "label-propagation"]
    assert both["rows"][0] == first["rows"][0]
    with pytest.raises(StorageError, match="another run, of other settings"):
        compare(planted, asked(planted, "sgc", hops=1), folder=tmp_path)
    with pytest.raises(StorageError, match="another comparison, of other seeds"):
        compare(planted, asked(planted, "sign", seeds=[5]), folder=tmp_path)
    assert [row.method for row in read_comparison(tmp_path).rows] == ["sgc", "label-propagation"]


@pytest.mark.parametrize(
    ("methods", "change", "message"),
    [
        (["sgc", "gamlp-jj"], {}, "Did you mean 'gamlp-jk'"),
        (["sgc"], {"hopps": 3}, "Did you mean 'hops'"),
        (["sgc"], {"head_layers": 2}, "None of the methods leaves 'head_layers' to be set"),
        (["sgc", "gcn"], {"gcn.hops": 3}, "gcn has no setting 'hops'"),
        (["sgc"], {"sgcc.hops": 3}, "Did you mean 'sgc'"),
        (["gcn"], {"hops": 3, "usual": {}}, "There is no setting 'hops'"),
        (["sgc", "gamlp-jk+cs"], {"rows": "labelled"}, "Correct and smooth"),
        (["sgc"], {"recipe": "corra"}, "There is no recipe 'corra'"),
    ],
)
def test_all_is_checked_before_anything_trains(planted, methods, change, message):
    with pytest.raises(SettingsError, match=message):
        asked(planted, *methods, **change)


def test_a_missing_extra_is_told_before_anything_trains(planted, monkeypatch):
    monkeypatch.delitem(sys.modules, "gamlp.message_passing.pyg", raising=False)
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(MissingExtraError, match=r"gamlp\[pyg\]"):
        asked(planted, "sgc", "gcn", **{"gcn.epochs": 1})


def test_a_folder_with_something_else_is_left_alone(planted, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(InputError, match="not a comparison"):
            compare(planted, asked(planted, "label-propagation", usual={}), folder=place)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(MissingFileError, match=r"no comparison\.json"):
        read_comparison(tmp_path)


def test_two_at_once_are_one_at_a_time(planted, tmp_path):
    with locked(tmp_path / "all"), pytest.raises(StorageError, match="Another process works on"):
        compare(planted, asked(planted, "sgc"), folder=tmp_path / "all")


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("methods", ["../sgc"], "methods.0"),
        ("methods", [], "methods"),
        ("seeds", ["0"], "seeds.0"),
        ("seeds", [-1], "seeds.0"),
        ("rows", [{"method": "../../etc"}], "rows.0"),
        ("propagation_seconds", "long", "propagation_seconds"),
        ("format", 3, "has the format 3"),
    ],
)
def test_a_comparison_that_was_tampered_with_is_refused(planted, tmp_path, key, value, place):
    compare(planted, asked(planted, "sgc", seeds=[0]), folder=tmp_path)
    write_json(tmp_path / "comparison.json", {**read_json(tmp_path / "comparison.json"), key: value})
    with pytest.raises(FormatError, match=place.replace(".", r"\.")):
        read_comparison(tmp_path)


def test_a_comparison_of_0_1_0_can_be_read_and_not_gone_on_with(planted, tmp_path):
    compare(planted, asked(planted, "sgc", seeds=[0]), folder=tmp_path)
    new = read_json(tmp_path / "comparison.json")
    keys = ("dataset", "methods", "recipe", "overrides", "seeds", "device", "propagation_seconds", "rows")
    write_json(tmp_path / "comparison.json", {"format": 1, "source": None, **{key: new[key] for key in keys}})
    assert read_comparison(tmp_path).methods == ["sgc"]
    with pytest.raises(StorageError, match=r"begun by gamlp 0\.1\.0"):
        compare(planted, asked(planted, "sgc", seeds=[0]), folder=tmp_path)


def test_overrides_reach_the_methods_that_have_them():
    overrides = {"hidden": 8, "hops": 2, "gamlp-jk.hops": 3, "gamlp-jk+rlu.hops": 4, "gcn.epochs": 5}
    assert overrides_for(method_named("gcn"), overrides) == {"hidden": 8, "epochs": 5}
    assert overrides_for(method_named("sgc"), overrides) == {"hidden": 8, "hops": 2}
    assert overrides_for(method_named("gamlp-jk"), overrides) == {"hidden": 8, "hops": 3}
    assert overrides_for(method_named("gamlp-jk+rlu"), overrides) == {"hidden": 8, "hops": 4}
    assert overrides_for(method_named("mlp"), overrides) == {"hidden": 8}  # an MLP has no hops


def test_two_names_for_the_same_are_said(planted, caplog):
    caplog.set_level("WARNING", "gamlp")
    asked(planted, "gamlp-jk-labels", "gamlp-jk+labels", "gamlp-jk", "gcn", "gat")
    said = [message for message in caplog.messages if "the same" in message]
    assert said == ["gamlp-jk-labels and gamlp-jk are the same here: every setting agrees."]  # for few labels


def test_names_of_methods(monkeypatch):
    assert methods_named(" sgc, gamlp-jk+rlu,sgc ") == ["sgc", "gamlp-jk+rlu"]
    assert "gamlp-jk+rlu" in methods_named(None)
    assert "gcn" not in methods_named(None)
    assert "gcn" in methods_named("all")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert methods_named("all") == methods_named(None)
    with pytest.raises(SettingsError, match="No method"):
        methods_named(" , ")


def test_the_peak_is_of_the_work_since_the_reset():
    large = np.ones(2**23)  # 64 MiB
    assert large.sum() == 2**23
    del large
    before = peak_bytes()
    if not reset_peak():
        pytest.skip("this system cannot reset the peak")
    assert peak_bytes() < before - 2**25
    again = np.ones(2**22)
    assert again.sum() == 2**22
    assert peak_bytes() < before


def test_a_row_that_differs_in_more_than_its_name_is_told_of():
    settings = {
        "sgc": {"hops": 3, "epochs": [100], "hidden": 8, "consistency": 0.0},
        "sgc+scr": {"hops": 3, "epochs": [100], "hidden": 8, "consistency": 1.0},
        "sgc+rlu": {"hops": 5, "epochs": [50, 20], "hidden": 8, "consistency": 0.0},
        "mlp+scr": {"hops": 0, "epochs": [100], "hidden": 4, "consistency": 1.0},  # its base is not beside it
    }
    told = {name: own_settings(name, settings) for name in settings}
    assert told == {"sgc": "", "sgc+scr": "", "sgc+rlu": "hops epochs", "mlp+scr": ""}
    rows = [{"method": name, "own_settings": text} for name, text in told.items()]
    assert told_apart(rows) == " sgc+rlu also has settings of its own: hops, epochs."
    assert told_apart([{**rows[2], "column": "cora"}]) == " sgc+rlu on cora also has settings of its own: hops, epochs."
