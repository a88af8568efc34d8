"""The four examples of docs/extending.md: each is one file and one registration, and the contract tests accept it."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gamlp.graph.readers import datasets
from gamlp.methods import registry as methods
from gamlp.methods.base import Base
from gamlp.model import registry as combiners
from gamlp.model_file import load_fitted
from gamlp.pipeline import Pipeline
from gamlp.propagate import LocalEngine, Normalization, Propagation, Restart
from gamlp.propagate.engines import registry as engines
from gamlp.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "extending"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in ("combiner", "method", "reader", "engine"):
        sys.modules.pop(name, None)
    methods.method_named.cache_clear()


def test_a_combiner(planted, monkeypatch):
    monkeypatch.setitem(combiners.COMBINERS, "last-two", "combiner:LastTwo")
    method = methods.method_named("gamlp")
    settings = method.settings_from(
        {"combiner": "last-two", "hops": 3, "hidden": 8, "epochs": 20, "learning_rate": 0.02}
    )
    fitted = Pipeline(method, settings).fit(planted, planted.split, 0)
    weights = fitted.prediction.weights
    np.testing.assert_allclose(weights, np.tile([0, 0, 0.5, 0.5], (planted.nodes, 1)))
    built = combiners.combiner_named("last-two")(Settings(hops=3), hops=4, width=5, features=5).eval()
    from gamlp.model.hop_nets import HopRows

    rows = torch.randn(6, 4, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(built(HopRows(rows)).rows, (rows[:, 2] + rows[:, 3]) / 2)


def test_a_method(planted, tmp_path, monkeypatch):
    base = Base("nearest class centre of the propagated features")
    monkeypatch.setitem(methods.BASES, "centroid", base)
    monkeypatch.setitem(methods.FAMILY_OF, "centroid", "method:Centroid")
    method = methods.method_named("centroid+cs")
    settings = method.settings_from({"hops": 3, "feature_scaling": "standard", "correct_and_smooth": True})
    fitted = Pipeline(method, settings).fit(planted, planted.split, 0)
    test = planted.split.test
    assert (fitted.prediction.probabilities[test].argmax(axis=1) == planted.labels[test]).mean() > 0.6  # chance is 1/3
    fitted.save(tmp_path)
    again = load_fitted(tmp_path).predict(planted, split=planted.split)
    np.testing.assert_array_equal(again.probabilities, fitted.prediction.probabilities)
    from gamlp import GAMLPClassifier

    y = np.where(np.isin(np.arange(planted.nodes), test), -1, planted.labels)
    one = GAMLPClassifier("centroid", hops=3).fit(planted.features, y, adjacency=planted.adjacency)
    assert one.score(planted.features, planted.labels, adjacency=planted.adjacency) > 0.6


def test_a_reader(tmp_path, monkeypatch):
    from reader import read_graphml

    flights = datasets.Dataset("flights", 0, 0, 0, 0, (0, 0, 0), ("flights",), (("graph.graphml",),), read=read_graphml)
    monkeypatch.setitem(datasets.DATASETS, "flights", flights)
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights" / "graph.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="a" attr.name="size"/>'
        '<key id="b" attr.name="label"/><graph edgedefault="undirected">'
        '<node id="x"><data key="a">1.5</data><data key="b">north</data></node>'
        '<node id="y"><data key="a">2</data><data key="b">south</data></node>'
        '<node id="z"><data key="a">3</data></node><edge source="x" target="z"/></graph></graphml>'
    )
    graph = datasets.read_graph("flights", root=tmp_path)
    assert graph.names.tolist() == ["x", "y", "z"]
    assert graph.features.ravel().tolist() == [1.5, 2, 3]
    assert (graph.feature_names, graph.classes) == (("size",), ("north", "south"))
    assert graph.labels.tolist() == [0, 1, -1]
    assert np.diff(graph.adjacency.indptr).tolist() == [1, 0, 1]


@pytest.mark.parametrize("restart", [None, Restart(0.8, fixed=np.array([0, 3]))], ids=["hops", "restart"])
def test_an_engine(planted, monkeypatch, restart):
    monkeypatch.setitem(engines.ENGINES, "scipy", ("engine", "ScipyEngine"))
    engine = engines.EngineChoice(name="scipy").open()
    spec = Propagation(3, Normalization(0.3), rows=np.array([7, 2, 200]), restart=restart)
    found = engine.propagate(planted.adjacency, planted.features, spec)
    expected = LocalEngine().propagate(planted.adjacency, planted.features, spec)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-5)
