"""Every method learns, does not see what it must not, and repeats itself."""

from __future__ import annotations

from dataclasses import replace
from pkgutil import resolve_name

import numpy as np
import pytest
import torch

from gamlp.errors import NotFiniteError, SettingsError
from gamlp.graph.splits import Split
from gamlp.message_passing import features
from gamlp.message_passing.fit import fit as fit_options
from gamlp.message_passing.network import Network
from gamlp.message_passing.networks import UniMP
from gamlp.message_passing.views import looped, matrix_of, view_of
from gamlp.methods import BASES, method_named

NAMES = [name for name, base in BASES.items() if base.network]
PLAIN = [name for name in NAMES if not method_named(name).needs_relations]  # the others: test_relational.py
QUICK = {"epochs": 40, "feature_scaling": "none", "hidden": 16, "dropout": 0.2}
SMALL = {
    "gat": {"hidden": 4, "heads": 2},
    "unimp": {"hidden": 8, "full_batch_up_to": 0, "batch_size": 8, "fanout": 5},
    "deepergcn": {"layers": 3, "parts": 2},
    "graphsage": {"full_batch_up_to": 0, "batch_size": 8, "fanout": 5},
    "cluster-gcn": {"parts": 6, "parts_a_batch": 3},
    "graphsaint": {"walk_roots": 20, "coverage": 20, "batches": 3},
    "fastgcn": {"batch_size": 8, "layer_nodes": 40},
    "vr-gcn": {"batch_size": 8},
    "as-gcn": {"batch_size": 8, "layer_nodes": 40},
}


def options_for(name, options):
    return method_named(name).settings_from(options)


def fit(name, graph, split, *, options, seed):
    return fit_options(name, graph, split, options=options_for(name, options), seed=seed)


def options(name, **more):
    return {**QUICK, **SMALL.get(name, {}), **more}


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_defaults_and_a_network(name):
    assert issubclass(resolve_name(f"gamlp.message_passing.{BASES[name].network}"), Network)
    assert BASES[name].defaults


@pytest.mark.parametrize("name", PLAIN)
def test_learns_two_communities_that_features_alone_do_not_tell(name, planted, hidden):
    fitted = fit(name, hidden, planted.split, options=options(name), seed=0)
    test = planted.split.test
    assert fitted.probabilities.shape == (120, 2) and fitted.probabilities.dtype == np.float32
    np.testing.assert_allclose(fitted.probabilities.sum(axis=1), 1, rtol=1e-5)
    assert (fitted.probabilities[test].argmax(axis=1) == planted.labels[test]).mean() >= 0.85  # chance is 0.5
    assert fitted.parameters == sum(each.numel() for each in fitted.network.parameters())
    assert fitted.valid_score == max(row["valid_accuracy"] for row in fitted.history)


@pytest.mark.parametrize("name", PLAIN)
def test_labels_outside_train_and_valid_change_nothing_and_a_seed_repeats_itself(name, planted, hidden):
    wrong = planted.labels.copy()
    wrong[planted.split.test] = 1 - wrong[planted.split.test]
    first = fit(name, hidden, planted.split, options=options(name, epochs=5), seed=1)
    second = fit(name, planted.with_labels(wrong), planted.split, options=options(name, epochs=5), seed=1)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.history == second.history
    other = fit(name, hidden, planted.split, options=options(name, epochs=5), seed=2)
    assert not np.array_equal(first.probabilities, other.probabilities)


@pytest.mark.parametrize("name", ["unimp", "gcn"])
def test_validation_labels_are_never_input(name, planted, hidden):
    """With one epoch nothing is chosen: validation labels may then not show in the probabilities at all."""
    wrong = hidden.labels.copy()
    wrong[planted.split.valid] = 1 - wrong[planted.split.valid]
    once = options(name, epochs=1)
    right = fit(name, hidden, planted.split, options=once, seed=0)
    flipped = fit(name, hidden.with_labels(wrong), planted.split, options=once, seed=0)
    np.testing.assert_array_equal(right.probabilities, flipped.probabilities)
    assert right.valid_score == pytest.approx(1 - flipped.valid_score)


def test_unimp_reads_training_labels(planted, hidden):
    """The guard above would pass for a network that reads no labels: training labels must show."""
    view = view_of(hidden.features, looped(matrix_of(hidden.adjacency)))
    network = UniMP(view, 2, options_for("unimp", {})).eval()
    given = torch.full((120,), -1)
    given[0] = 1
    change = (network(view.with_given(given)) - network(view)).abs().sum(dim=1)
    near = hidden.adjacency.indices[: hidden.adjacency.indptr[1]]
    assert change[0] > 0 and (change[torch.from_numpy(near.astype(np.int64))] > 0).all()


def test_label_reuse_is_the_network_on_its_own_predictions(planted, hidden):
    """Two passes by hand, with soft rows through the embedding; nodes with a label keep it."""
    view = view_of(hidden.features, looped(matrix_of(hidden.adjacency)))
    view = view.with_given(torch.from_numpy(np.where(np.arange(120) < 16, planted.labels, -1)))
    torch.manual_seed(0)
    once, reused = (UniMP(view, 2, options_for("unimp", {"label_reuse": times})).eval() for times in (0, 1))
    reused.load_state_dict(once.state_dict())
    rows = once(view).softmax(dim=1)
    rows[:16] = torch.eye(2)[view.given[:16]]
    expected = once.attended(view, rows @ once.label @ once.entry.weight)
    torch.testing.assert_close(reused(view), expected)
    assert not torch.allclose(reused(view), once(view))


def test_the_best_epoch_is_kept_and_patience_ends_training(planted, hidden):
    restless = {"learning_rate": 0.3, "dropout": 0.5}
    fitted = fit("gcn", hidden, planted.split, options=options("gcn", **restless, epochs=200, patience=3), seed=0)
    assert len(fitted.history) < 200
    scores = [(row["valid_accuracy"], -row["valid_loss"]) for row in fitted.history]
    best = max(range(len(scores)), key=lambda at: scores[at])
    assert len(scores) - 1 - best == 3
    stopped = fit("gcn", hidden, planted.split, options=options("gcn", **restless, epochs=best + 1), seed=0)
    np.testing.assert_array_equal(fitted.probabilities, stopped.probabilities)


def test_evaluation_now_and_then_changes_no_step(planted, hidden):
    often, seldom = (
        fit("gcn", hidden, planted.split, options=options("gcn", epochs=7, evaluate_every=every), seed=0)
        for every in (1, 3)
    )
    assert [row["epoch"] for row in seldom.history] == [3, 6, 7]
    assert seldom.history == [row for row in often.history if row["epoch"] in (3, 6, 7)]


def test_dropout_of_the_features_can_differ(planted, hidden):
    same, none = (
        fit("gcn", hidden, planted.split, options=options("gcn", epochs=3, input_dropout=share), seed=0)
        for share in (None, 0.0)
    )
    given = fit("gcn", hidden, planted.split, options=options("gcn", epochs=3, input_dropout=0.2), seed=0)
    assert same.history == given.history != none.history


def test_without_validation_nodes_the_last_epoch_is_kept(planted, hidden):
    alone = Split(planted.split.train, np.empty(0, np.int64), planted.split.test)
    five, one = (fit("gcn", hidden, alone, options=options("gcn", epochs=n, patience=1), seed=0) for n in (5, 1))
    assert len(five.history) == 5
    assert not np.allclose(five.probabilities, one.probabilities)


def test_a_loss_that_runs_away_is_an_error(planted, hidden):
    with pytest.raises(NotFiniteError, match="Lower learning_rate"):
        fit("gcn", hidden, planted.split, options=options("gcn", learning_rate=1e30), seed=0)


def test_the_random_state_of_torch_is_left_alone(planted, hidden):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit("gcn", hidden, planted.split, options=options("gcn", epochs=2), seed=0)
    assert torch.equal(torch.rand(3), expected)


def test_sparse_features_give_what_dense_ones_give(planted, hidden, monkeypatch):
    plain = options("gcn", dropout=0, epochs=10)
    dense = fit("gcn", hidden, planted.split, options=plain, seed=0)
    monkeypatch.setattr(features, "SPARSE_BELOW", 2.0)
    sparse = fit("gcn", hidden, planted.split, options=plain, seed=0)
    np.testing.assert_allclose(sparse.probabilities, dense.probabilities, atol=1e-5)


@pytest.mark.parametrize("name", PLAIN)
def test_edge_weights_are_used_or_refused(name, planted, hidden):
    """Every other entry weighs a thousandth: a method that cannot see this must say so."""
    adjacency = hidden.adjacency
    weights = np.where(np.arange(adjacency.entries) % 2, 1.0, 1e-3).astype(np.float32)
    weighted = replace(hidden, adjacency=replace(adjacency, weights=weights))
    if name in ("gat", "unimp", "deepergcn"):
        with pytest.raises(SettingsError, match=f"{name} takes no edge weights.*\n.*leave those of the graph out"):
            fit(name, weighted, planted.split, options=options(name, epochs=1), seed=0)
    else:
        results = [fit(name, g, planted.split, options=options(name, epochs=2), seed=0) for g in (hidden, weighted)]
        assert not np.array_equal(results[0].probabilities, results[1].probabilities)
