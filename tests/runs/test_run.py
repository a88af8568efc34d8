"""A run directory holds what is needed afterwards, and seeds draw their own splits."""

import dataclasses
import json

import numpy as np
import pyarrow.parquet as parquet
import pytest

from gamlp.errors import StorageError
from gamlp.graph.splits import SplitRule
from gamlp.methods import method_named
from gamlp.model_file import load_fitted
from gamlp.runs.run import train_run
from gamlp.runs.spec import RunSpec
from gamlp.targets.metrics import mean_and_std

QUICK = {"hidden": 8, "hops": 2, "hop_layers": 1, "head_layers": 1, "jk_layers": 1, "label_layers": 1, "epochs": [6, 4]}


def spec(graph, method="gamlp-jk", seeds=(0, 1), **change):
    """A small run; what the method fixes itself is left to it."""
    wanted = {key: value for key, value in {**QUICK, **change}.items() if method_named(method).takes(key)}
    return RunSpec.of(graph, method, "default", wanted, list(seeds))


def test_a_run_directory_tells_everything(planted, tmp_path):
    result = train_run(planted, spec(planted), folder=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["result"] == json.loads(json.dumps(result))
    each = [seed["test_accuracy"] for seed in result["runs"]]
    assert (result["test_accuracy"], result["test_accuracy_std"]) == mean_and_std(each)
    table = parquet.read_table(tmp_path / "run" / "predictions.parquet")
    assert table.column_names == ["id", "predicted", "confidence", "label", "set"]
    best = result["best_seed"]
    stored = np.load(tmp_path / "run" / f"seed-{best}" / "probabilities.npy")
    right = np.array([a == b for a, b in zip(table["predicted"].to_pylist(), table["label"].to_pylist(), strict=True)])
    assert right[planted.split.test].mean() == pytest.approx(result["runs"][best]["test_accuracy"])
    assert stored.shape == (planted.nodes, 3)


@pytest.mark.parametrize(
    "method", ["gamlp-jk", "gamlp-jk+rlu", "sagn+sle", "gamlp-recursive+scr", "sgc+cs", "gcn+cs", "unimp"]
)
def test_a_stored_model_says_the_same_of_the_same_graph(planted, tmp_path, method):
    change = {"epochs": 8} if method in {"gcn+cs", "unimp"} else {**QUICK, "label_folds": 3}
    train_run(planted, spec(planted, method, [0], **change), folder=tmp_path)
    said = load_fitted(tmp_path / "seed-0").predict(planted, split=planted.split)
    np.testing.assert_array_equal(said.probabilities, np.load(tmp_path / "seed-0" / "probabilities.npy"))
    if said.weights is not None:
        np.testing.assert_array_equal(said.weights, np.load(tmp_path / "seed-0" / "attention.npy"))


def test_without_a_fixed_split_each_seed_draws_its_own(planted, tmp_path):
    free = dataclasses.replace(planted, split=SplitRule(10, 10))
    train_run(free, spec(free, seeds=[0, 1]), folder=tmp_path)
    assert not np.array_equal(free.split_for(0).train, free.split_for(1).train)
    again = train_run(free, spec(free, seeds=[1]), folder=None)
    assert (
        again["runs"][0]["test_accuracy"]
        == json.loads((tmp_path / "seed-1" / "result.json").read_text())["test_accuracy"]
    )


def test_a_finished_run_is_not_trained_again(planted, tmp_path, monkeypatch):
    first = train_run(planted, spec(planted), folder=tmp_path)
    monkeypatch.setattr("gamlp.runs.run.train_seed", lambda *a, **k: pytest.fail("trained again"))
    assert train_run(planted, spec(planted), folder=tmp_path) == json.loads(json.dumps(first))


@pytest.mark.parametrize("other", [{"hidden": 9}, {"method": "sgc"}, {"seeds": [5]}])
def test_another_order_is_refused_in_the_same_directory(planted, tmp_path, other):
    train_run(planted, spec(planted, seeds=[0]), folder=tmp_path)
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(StorageError, match="another run"):
        train_run(planted, spec(planted, **{"seeds": [0], **other}), folder=tmp_path)
    assert (tmp_path / "run.json").read_bytes() == before


METHODS = (
    "mlp sgc s2gc gbp sign sagn sagn+sle mlp+cs label-propagation "
    "gamlp-smoothing gamlp-recursive+rlu gamlp-jk+scr gamlp-jk+rlu+cs"
)


@pytest.mark.parametrize("method", METHODS.split())
def test_every_method_beats_chance(planted, method):
    result = train_run(planted, spec(planted, method, seeds=[0], epochs=[30, 10], learning_rate=0.02), folder=None)
    assert result["test_accuracy"] > (0.4 if method == "mlp" else 0.5)  # chance is 1/3


def test_hidden_test_labels_change_no_prediction_of_a_run(planted, tmp_path):
    test = planted.split.test
    labels = planted.labels.copy()
    labels[test] = np.random.default_rng(0).permutation(labels[test])
    for method in ("gamlp-jk+rlu+cs", "label-propagation"):
        train_run(planted, spec(planted, method, seeds=[0]), folder=tmp_path / method)
        other = planted.with_labels(labels)
        train_run(other, spec(other, method, seeds=[0]), folder=tmp_path / f"{method}-shuffled")
        one, other = (
            np.load(tmp_path / name / "seed-0" / "probabilities.npy") for name in (method, f"{method}-shuffled")
        )
        np.testing.assert_array_equal(one, other)
