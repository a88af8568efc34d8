"""Relation subsets that do not fit in memory: in turns the output stays that of all of them, and runs resume."""

import dataclasses

import numpy as np
import pytest
import torch

from gamlp.errors import SettingsError, ShapeError
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero, projected
from gamlp.methods import method_named
from gamlp.model import build_network
from gamlp.model_file import load_fitted
from gamlp.pipeline import Pipeline, hide_labels
from gamlp.propagate.engines.local import LocalEngine
from gamlp.settings import Settings
from gamlp.train import stage as stage_module
from gamlp.train.hop_source import HopSource
from gamlp.train.stages import StageTask, fit_stages, known_labels
from gamlp.train.subset_rotation import TurnInputs, inputs_for, relation_shares, subset_shares

SUBSETS = (("near",), ("far",), ("wrote",), ("near", "wrote"))
SMALL = Settings(
    relations="subsets", subsets=SUBSETS, hops=2, hidden=16, head_layers=2, jk_layers=2, label_layers=2, hop_layers=1,
    epochs=(5, 2), batch_size=20, threshold=0.5, learning_rate=0.02, subset_turn=2, normalization=0.0, self_loops=False,
)  # fmt: skip
ROW = 3 * 12 * 4  # bytes of one subset's hops of a node
TWO = 240 * ROW * 3 / 2**30  # GiB that two open subsets need with the sum over the others


@pytest.fixture(scope="module")
def graph(make_planted):
    """The planted graph with its edges in two relations, and authors who write within a class."""
    planted = make_planted()
    rows = np.repeat(np.arange(planted.nodes), np.diff(planted.adjacency.indptr))
    ends = np.stack([rows, planted.adjacency.indices])[:, rows < planted.adjacency.indices]
    near, far = ends[:, ::2], ends[:, 1::2]
    papers = np.arange(planted.nodes)
    paper = TypeParts(planted.nodes, planted.features, planted.labels, planted.classes, planted.split)
    relations = {
        "near": RelationParts("paper", "paper", *near),
        "far": RelationParts("paper", "paper", *far),
        "wrote": RelationParts("author", "paper", papers % 60, papers),
    }
    return assemble_hetero({"paper": paper, "author": TypeParts(60)}, relations, target="paper")


def train(graph, *, folder=None, **change):
    settings = SMALL.model_copy(update=change)
    hidden = hide_labels(graph, graph.split)
    task = StageTask(graph.adjacency, hops_of(graph, settings), len(graph.classes), settings, LocalEngine(), seed=0)
    return fit_stages(task, known_labels(hidden, graph.split, task.rows, settings), folder=folder)


def hops_of(graph, settings):
    return Pipeline(method_named("nars-gamlp-jk"), settings).hops(graph, graph.split)


def inputs_in_turns(graph, memory=TWO):
    settings = SMALL.model_copy(update={"subset_memory": memory, "dropout": 0.0, "labels": False})
    hops = hops_of(graph, settings)
    network = build_network(settings, features=12, classes=3, subsets=4, seed=0)
    with torch.no_grad():
        for number, weight in enumerate(network.mixer.weights):
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(number)), alpha=0.1)
    return inputs_for(hops, None, "cpu", settings), network


def test_the_open_subsets_and_the_sum_over_the_others_are_all_of_them(graph):
    inputs, network = inputs_in_turns(graph)
    assert isinstance(inputs, TurnInputs)
    ids = graph.split.train
    whole = network.mixer(inputs.gather(ids)[0])
    for epoch in range(8):
        inputs.begin_epoch(network, ids, [0, 0, epoch])
        batch = inputs.gather(ids[3:9])[0]
        assert batch.shape == (6, 3, 3, 12)  # two open ones and the sum
        torch.testing.assert_close(network.mixer(batch), whole[3:9])
        with inputs.reading_all(network):
            assert inputs.gather(ids[:2])[0].shape == (2, 4, 3, 12)


def test_turns_change_the_open_subsets_and_each_has_its_turn(graph):
    inputs, network = inputs_in_turns(graph)
    seen = []
    for epoch in range(20):
        inputs.begin_epoch(network, graph.split.train, [0, 0, epoch])
        seen.append(tuple(inputs.open))
    assert all(len(one) == 2 for one in seen)
    assert seen[::2] == seen[1::2]  # a turn is two epochs
    assert set().union(*seen) == {0, 1, 2, 3}


def test_only_open_subsets_learn(graph):
    inputs, network = inputs_in_turns(graph)
    inputs.begin_epoch(network, graph.split.train, [0, 0, 0])
    network.train()
    network(*inputs.gather(graph.split.train)).logits.square().sum().backward()
    learning = [number for number, weight in enumerate(network.mixer.weights) if weight.grad is not None]
    assert learning == inputs.open


def test_training_in_turns_learns_as_much(graph):
    test = graph.split.test
    for memory in (8.0, TWO):
        trained = train(graph, subset_memory=memory, epochs=(30,))
        assert (trained.logits[test].argmax(axis=1) == graph.labels[test]).mean() > 0.7  # chance is 1/3
        assert trained.logits.shape == (240, 3)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("memory", [8.0, TWO])
def test_a_killed_run_resumes_to_the_same_bits(graph, tmp_path, monkeypatch, memory):
    whole = train(graph, subset_memory=memory)
    monkeypatch.setattr("gamlp.train.checkpoint.Checkpoint.due", lambda self: self.path is not None)
    epochs = []
    real = stage_module.run_epoch

    def killing(*arguments, **named):
        if len(epochs) == 3:  # in the middle of a turn
            raise Killed
        epochs.append(1)
        return real(*arguments, **named)

    monkeypatch.setattr(stage_module, "run_epoch", killing)
    with pytest.raises(Killed):
        train(graph, folder=tmp_path, subset_memory=memory)
    monkeypatch.setattr(stage_module, "run_epoch", real)
    resumed = train(graph, folder=tmp_path, subset_memory=memory)
    np.testing.assert_array_equal(resumed.logits, whole.logits)
    assert resumed.history == whole.history


def test_hidden_labels_do_not_leak(graph):
    labels = graph.labels.copy()
    labels[graph.split.test] = np.random.default_rng(1).permutation(labels[graph.split.test])
    np.testing.assert_array_equal(train(graph).logits, train(graph.with_labels(labels)).logits)


def test_consistency_needs_all_subsets_in_memory(graph):
    with pytest.raises(SettingsError, match="subset_memory"):
        train(graph, subset_memory=TWO, consistency=1.0)


def test_shares_by_hand():
    names, shares = relation_shares([("a",), ("a", "b")], np.array([[0.25, 0.5], [0.75, 0.5]]))
    assert names == ["a", "b"]
    assert shares.tolist() == [[0.625, 0.75], [0.375, 0.25]]


def test_shares_weigh_weights_by_what_they_weigh(graph):
    settings = SMALL.model_copy(update={"labels": False})
    hops = hops_of(graph, settings)
    network = build_network(settings, features=12, classes=3, subsets=4, seed=0)
    network.mixer.weights[2].data.fill_(0)
    found = subset_shares(network, hops, graph.split.train, SUBSETS)
    size = np.sqrt(np.square(hops.values[graph.split.train].astype(float)).mean(axis=0)).sum(axis=2)  # (S, K+1)
    size[2] = 0
    np.testing.assert_allclose(found["weights"], size / size.sum(axis=0), rtol=1e-6)
    assert found["subsets"] == ["near", "far", "wrote", "near + wrote"]


def test_embeddings_fill_types_and_stay_in_the_cache(graph, tmp_path):
    change = {"featureless": "embeddings", "embedding": {"dimension": 16, "steps": 20, "batch_size": 100, "chunk": 50}}
    settings = SMALL.model_copy(update=change)
    features = HopSource(LocalEngine(cache=tmp_path)).features(graph, settings)
    assert features.shape == (300, 16)  # the papers' 12 features were projected
    (place,) = tmp_path.glob("embeddings-*")
    np.testing.assert_array_equal(features[240:], np.load(place / "entities.npy")[240:])
    np.testing.assert_array_equal(HopSource(LocalEngine(cache=tmp_path)).features(graph, settings), features)
    np.testing.assert_array_equal(features[:240], projected(graph.features[:240], 16, key="paper"))


def test_embeddings_made_elsewhere_take_their_place(graph, tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 12)).astype(np.float32)
    np.save(tmp_path / "entities.npy", rows)
    for place in (tmp_path, tmp_path / "entities.npy"):
        settings = SMALL.model_copy(update={"featureless": "embeddings", "embedding_file": str(place)})
        features = HopSource(LocalEngine()).features(graph, settings)
        np.testing.assert_array_equal(features[240:], rows[240:])
        np.testing.assert_array_equal(features[:240], graph.features[:240])  # papers have features of their own
    np.save(tmp_path / "entities.npy", rows[:60])
    with pytest.raises(ShapeError, match="240 of paper, 60 of author"):
        HopSource(LocalEngine()).features(graph, settings)


def test_a_graph_without_any_features_learns_from_embeddings(graph):
    parts = {kind.name: TypeParts(kind.nodes) for kind in graph.types}
    parts["paper"] = TypeParts(240, None, graph.labels[:240], graph.classes, graph.split)
    spans = {kind.name: kind.start for kind in graph.types}
    relations = {
        one.name: RelationParts(one.source, one.target, one.heads - spans[one.source], one.tails - spans[one.target])
        for one in graph.relations
    }
    bare = assemble_hetero(parts, relations, target="paper")
    steps = {"dimension": 8, "steps": 20, "batch_size": 100, "chunk": 50}
    trained = train(bare, featureless="embeddings", embedding=steps, epochs=(2,))
    assert np.isfinite(trained.logits).all()


@pytest.mark.parametrize("method", ["nars", "rgcn"])
def test_embeddings_of_one_graph_are_refused_for_another(graph, tmp_path, method):
    small = {"dimension": 16, "steps": 20, "batch_size": 100, "chunk": 50}
    change = {"featureless": "embeddings", "embedding": small, "epochs": 2, "hidden": 8}
    chosen = method_named(method)
    settings = chosen.settings_from({**change, **chosen.fixed})
    fitted = Pipeline(chosen, settings, work=tmp_path).fit(graph, graph.split, 0)
    fitted.save(tmp_path)
    loaded = load_fitted(tmp_path, engine=LocalEngine(cache=tmp_path))
    again = loaded.predict(graph, split=graph.split)
    np.testing.assert_array_equal(again.probabilities, fitted.prediction.probabilities)
    other = dataclasses.replace(graph, features=graph.features + 1)
    with pytest.raises(SettingsError, match="trained for one graph"):
        loaded.predict(other)
