"""The mixture against hand calculation, the budget, and what chooses."""

from dataclasses import replace

import numpy as np
import pytest

from gamlp.errors import NotFiniteError, SettingsError
from gamlp.graph.build.new_nodes import NewNodes
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.methods import method_named
from gamlp.methods.base import Context, labels_of
from gamlp.methods.portfolio import Candidate, FittedPortfolio, Member, mixed, mixed_attention, planned
from gamlp.methods.selection import mixture_weights
from gamlp.pipeline import Pipeline
from gamlp.propagate.engines.local import LocalEngine
from gamlp.recipes.adapt import Outline
from gamlp.recipes.candidates import candidates_for
from gamlp.recipes.recipe import load_recipe, recipe_from
from gamlp.targets.objective import Objective
from gamlp.train.hop_source import HopSource
from gamlp.train.prediction import Prediction
from gamlp.trust.temperature import Temperature

QUICK = ["label-propagation", "sgc", "s2gc"]


def fit(graph, split=None, **settings):
    method = method_named("portfolio")
    return Pipeline(method, method.settings_from({"candidates": QUICK, **settings})).fit(graph, split or graph.split, 0)


def member(weight, temperature=1.0):
    return Member(Candidate(method_named("sgc"), None), None, Temperature(temperature), weight)


def test_members_are_tempered_and_added_by_their_weights():
    first = Prediction(np.array([4]), np.array([[0.9, 0.1]], np.float32))
    second = Prediction(np.array([4]), np.array([[0.2, 0.8]], np.float32))
    said = mixed([member(0.25, 2.0), member(0.75)], [first, second])
    # √0.9 : √0.1 = 3 : 1
    np.testing.assert_allclose(said.probabilities, [[0.25 * 0.75 + 0.75 * 0.2, 0.25 * 0.25 + 0.75 * 0.8]], rtol=1e-6)
    assert said.logits is None


def test_attention_is_the_mean_of_those_who_attend():
    parts = [(0.3, np.array([[1.0, 0.0]])), (0.1, np.array([[0.0, 0.5, 0.5]]))]
    np.testing.assert_allclose(mixed_attention(parts), [[0.75, 0.125, 0.125]], rtol=1e-6)
    assert mixed_attention([]) is None


def sure_of(labels, right, sure=0.9):
    """Probabilities of two classes that favour the label where `right`."""
    chosen = np.where(right, labels, 1 - labels)
    rows = np.full((len(labels), 2), 1 - sure, np.float32)
    rows[np.arange(len(labels)), chosen] = sure
    return rows


def test_what_helps_weighs_and_what_does_not_is_left_out():
    labels = np.arange(400) % 2
    good, other, bad = np.arange(400) % 10 != 0, np.arange(400) % 10 != 1, np.arange(400) % 3 == 0
    said = [sure_of(labels, right) for right in (good, other, bad)]
    weights = mixture_weights(Objective(), said, labels, seed=0)
    assert weights[2] == 0
    assert weights.sum() == pytest.approx(1)
    assert min(weights[:2]) > 0.3  # each is right where the other is not
    assert mixture_weights(Objective(), said[:1], labels, seed=0).tolist() == [1]


def test_luck_on_one_half_weighs_little():
    """Of twenty guessers the best on validation is lucky; one that is truly better takes the weight."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 60)
    guesses = [sure_of(labels, random.random(60) < 0.5, 0.6) for _ in range(20)]
    knows = sure_of(labels, random.random(60) < 0.8, 0.75)
    assert mixture_weights(Objective(), [*guesses, knows], labels, seed=0)[-1] > 0.5


def test_the_mixture_is_what_its_members_say(planted):
    fitted = fit(planted)
    known = labels_of(planted.labels, planted.split.train)
    expected = sum(
        np.float32(one.weight) * one.temperature(one.fitted.predict(planted, known).probabilities)
        for one in fitted.learned.members
    )
    np.testing.assert_allclose(fitted.uncalibrated, expected, rtol=1e-6)
    tried = fitted.facts["tried"]
    assert [line["method"] for line in tried] == QUICK
    assert sum(line["weight"] for line in tried) == pytest.approx(1)


def test_what_has_no_time_is_not_begun(planted, monkeypatch):
    monkeypatch.setattr("gamlp.machine.training.network_seconds", lambda *_: 400.0)
    tried = fit(planted, minutes=1.0).facts["tried"]
    assert [line["seconds"] is None for line in tried] == [False, True, True]
    assert tried[0]["weight"] == 1
    assert all(line["seconds"] is not None for line in fit(planted, minutes=10.0).facts["tried"])


def test_training_stops_when_the_time_is_over(planted):
    """The budget ends while the first network trains: it is scored once, and taken as it is."""
    fitted = fit(planted, candidates=["gamlp-jk+rlu"], minutes=1e-9)
    assert [stage["epochs"] for stage in fitted.facts["stages"]] == [2]
    assert np.isfinite(fitted.prediction.probabilities).all()


def test_test_labels_change_nothing(planted):
    labels = planted.labels.copy()
    labels[planted.split.test] = np.random.default_rng(0).permutation(labels[planted.split.test])
    one, other = fit(planted), fit(planted.with_labels(labels))
    np.testing.assert_array_equal(one.prediction.probabilities, other.prediction.probabilities)
    assert [line["weight"] for line in one.facts["tried"]] == [line["weight"] for line in other.facts["tried"]]


def test_without_validation_nodes_the_last_candidate_is_taken(planted):
    split = Split(planted.split.train, planted.split.valid[:0], planted.split.test)
    assert [line["method"] for line in fit(planted, split).facts["tried"]] == QUICK[-1:]


def test_metric_and_class_weights_reach_the_candidates(planted):
    settings = method_named("portfolio").settings_from({"metric": "macro_f1", "class_weight": "balanced"})
    for one in planned(planted, planted.split, settings):
        assert one.settings.metric == "macro_f1"
        if one.method.on_hops:
            assert one.settings.class_weight == "balanced"


def test_methods_of_a_recipe_are_tried_last_and_only_where_no_others_are_named(planted):
    usual = [{"method": "sgc", "settings": {"hops": 1, "epochs": [2]}}]
    settings = method_named("portfolio").settings_from({"usual": usual, "metric": "macro_f1"})
    last = planned(planted, planted.split, settings)[-1]
    assert (last.method.name, last.settings.hops, last.settings.metric) == ("sgc", 1, "macro_f1")
    named = planned(planted, planted.split, settings.model_copy(update={"candidates": ("s2gc",)}))
    assert [one.method.name for one in named] == ["s2gc"]
    assert method_named("portfolio").settings_from({"usual": usual}).featureless == ""
    embedded = [{"method": "nars", "settings": {"featureless": "embeddings"}}]
    assert method_named("portfolio").settings_from({"usual": embedded}).featureless == "embeddings"


def test_with_few_labels_the_recipes_for_few_are_the_usual_ones(planted, monkeypatch):
    """The last of what is tried on any graph, and the graph's own; not with many labels, nor among named ones."""
    own = {"method": "sgc", "settings": {"hops": 1, "epochs": [2]}}
    settings = method_named("portfolio").settings_from({"usual": [own]})
    few = Split(planted.split.train[:20], planted.split.valid, planted.split.test)
    found = [(one.method.name, one.usual) for one in planned(planted, few, settings)]
    assert found[-2:] == [("gamlp-recursive+rlu+scr", True), ("sgc", True)]
    assert not any(usual for _, usual in found[:-2])
    named = settings.model_copy(update={"candidates": ("s2gc",)})
    assert not any(one.usual for one in planned(planted, few, named))
    monkeypatch.setattr("gamlp.recipes.adapt.FEW", 0)
    assert not any(one.usual for one in planned(planted, few, settings))


@pytest.mark.parametrize(
    ("rows", "few", "most", "drawn"),
    [(0, True, 10, 10), (5, True, 10, 5), (0, False, 10, 0), (0, True, 10**6, 80)],  # a third of 240 nodes
)
def test_a_recipe_that_reads_all_nodes_draws_some_as_one_of_several(planted, monkeypatch, rows, few, most, drawn):
    method = method_named("gamlp-jk+rlu")
    own = method.settings_data(
        method.settings_from({"unlabelled_rows": rows, "epochs": [2, 2], "reliable_from": "all"})
    )
    settings = method_named("portfolio").settings_from({"usual": [{"method": method.name, "settings": own}]})
    monkeypatch.setattr("gamlp.recipes.adapt.FEW", 10**6 if few else 0)
    monkeypatch.setattr("gamlp.recipes.candidates.DRAWN", most)
    last = planned(planted, planted.split, settings)[-1]
    assert (last.method.name, last.settings.unlabelled_rows) == ("gamlp-jk+rlu", drawn)


def test_what_is_usual_is_kept_with_the_model(planted):
    fitted = fit(planted).learned
    marked = [replace(one, candidate=replace(one.candidate, usual=True)) for one in fitted.members]
    context = Context(HopSource(LocalEngine()), len(planted.classes))
    for members, expected in ((fitted.members, False), (marked, True)):
        one = FittedPortfolio(members)
        again = method_named("portfolio").load(None, one.state(), one.tensors(), context)
        assert [member.candidate.usual for member in again.members] == [expected] * len(members)


def test_candidates_know_what_the_others_scored(planted, monkeypatch):
    """Each is told the best so far on validation, so that one far below it can be given up."""
    from gamlp.methods.hop_network import HopNetwork

    told, plain = [], HopNetwork.fit

    def fit_and_tell(self, graph, split, settings, context):
        told.append(context.rival)
        return plain(self, graph, split, settings, context)

    monkeypatch.setattr(HopNetwork, "fit", fit_and_tell)
    scores = [line["valid"] for line in fit(planted, candidates=["sgc", "s2gc", "mlp"]).facts["tried"]]
    assert told == [-np.inf, scores[0], max(scores[:2])]


def test_an_unknown_candidate_is_refused():
    with pytest.raises(SettingsError, match="no method 'gamlp-kj'"):
        method_named("portfolio").settings_from({"candidates": ["gamlp-kj"]})


@pytest.mark.parametrize(
    "outline",
    [
        Outline(2_700, 10_000, 1_433, 7, 140, sparse=True),
        Outline(2_700, 10_000, 1_433, 7, 1_600, sparse=True),
        Outline(100_000, 10**6, 128, 40, 60_000, sparse=False),
        Outline(5_000, 10**5, 128, 3, 1_000, sparse=False, bare=True),
        Outline(5_000, 10**5, 16, 3, 1_000, sparse=False, relations=3),
    ],
)
def test_every_plan_resolves(outline):
    recipe = load_recipe("default")
    assert recipe.method_for(outline) == ("portfolio+cs" if outline.bare else "portfolio")
    for name, own in candidates_for(outline):
        method = method_named(name)
        taken = {key: value for key, value in own.items() if method.takes(key)}
        assert recipe.resolve(method, taken, outline) is not None


@pytest.mark.parametrize("named", [(), ("nars-gamlp-recursive+rlu",)])
def test_reliable_nodes_are_looked_for_among_all(planted, monkeypatch, named):
    """As predict does, where no split is given."""
    outline = Outline(5_000, 10**5, 16, 3, 1_000, sparse=False, relations=3)
    monkeypatch.setattr(Outline, "of", lambda *_: outline)
    settings = method_named("portfolio").settings_from({"candidates": named})
    staged = [one.settings for one in planned(planted, planted.split, settings) if one.method.staged]
    assert [one.reliable_from for one in staged] == ["all"]
    assert (
        load_recipe("default").resolve(method_named("nars-gamlp-recursive+rlu"), {}, outline).reliable_from == "split"
    )


def test_a_loss_that_is_no_number_leaves_the_others(planted, caplog):
    settings = method_named("portfolio").settings_from({"candidates": ["sgc", "s2gc"]})
    wild = {"learning_rate": 1e30, "batch_norm": False}

    def planned_wildly(*asked):
        return [replace(one, settings=one.settings.model_copy(update=wild)) if one.method.name in which else one
                for one in planned(*asked)]  # fmt: skip

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gamlp.methods.portfolio.planned", planned_wildly)
        for which, left in (({"sgc"}, "s2gc"), ({"s2gc"}, "sgc")):
            tried = Pipeline(method_named("portfolio"), settings).fit(planted, planted.split, 0).facts["tried"]
            assert {line["method"]: line["weight"] for line in tried} == {left: 1, **dict.fromkeys(which, 0)}
            assert f"{which.pop()} is left out: The loss is" in caplog.text
        which = {"sgc", "s2gc"}
        with pytest.raises(NotFiniteError, match="The loss is"):
            Pipeline(method_named("portfolio"), settings).fit(planted, planted.split, 0)


def test_a_recipe_tries_what_it_names_on_all_nodes_and_with_what_the_method_has(planted):
    own = {"method": "sgc", "tried": ["sgc", "label-propagation"], "settings": {"hops": 1, "rows": "labelled"}}
    settings = recipe_from("mine", own).resolve(method_named("portfolio"), {"class_weight": "balanced"})
    *_, first, second = planned(planted, planted.split, settings)
    assert (first.method.name, first.settings.rows, first.settings.class_weight) == ("sgc", "all", "balanced")
    assert second.method.name == "label-propagation"


def test_a_setting_of_a_network_asks_for_the_network():
    outline, recipe = Outline(2_700, 10_000, 1_433, 7, 140, sparse=True), load_recipe("default")
    assert recipe.method_for(outline, ["metric", "minutes"]) == "portfolio"
    assert recipe.method_for(outline, ["hidden"]).startswith("gamlp-recursive")
    assert recipe.method_for(replace(outline, nodes=10**6)).startswith("gamlp-recursive")


def new_nodes(graph, source, target, count=1):
    bare = replace(graph.adjacency, indptr=np.zeros(count + 1, np.int64), indices=np.zeros(0, np.int32))
    features, labels = np.zeros((count, graph.features.shape[1]), np.float32), np.full(count, -1)
    nodes = Graph(adjacency=bare, features=features, labels=labels, classes=graph.classes, split=graph.split)
    return NewNodes(nodes, np.array(source), np.array(target))


def test_labels_spread_to_a_new_node_by_one_step(planted):
    """By hand: y_i = α Σ_j y_j / √(d_i d_j) over its neighbours, whose degrees the new edge has raised."""
    method = method_named("label-propagation")
    fitted = Pipeline(method, method.settings_from({"alphas": [0.8]})).fit(planted, planted.split, 0)
    living = fitted.living(planted, split=planted.split)
    near = np.array([3, 17])
    said = replace(living, trust=None).predict(new_nodes(planted, [planted.nodes] * 2, near))
    votes = living.votes.columns[near]  # of the old nodes, as they were left
    degree = np.diff(planted.adjacency.indptr)[near] + 1
    score = 0.8 * (votes / np.sqrt(2 * degree)[:, None]).sum(axis=0)
    np.testing.assert_allclose(said.probabilities[0], score / score.sum(), rtol=1e-5)


def test_a_mixture_takes_new_nodes(planted):
    fitted = fit(planted)
    living = fitted.living(planted, split=planted.split)
    new = new_nodes(planted, [planted.nodes, planted.nodes + 1], [3, planted.nodes], count=2)
    said = living.predict(new)
    pairs = list(zip(fitted.learned.members, living.members, strict=True))
    expected = sum(one.weight * one.calibrated(part.predict(new)).probabilities for one, part in pairs)
    np.testing.assert_allclose(fitted.trust.temperature(expected.astype(np.float32)), said.probabilities, rtol=1e-5)
    assert said.rows.tolist() == [planted.nodes, planted.nodes + 1]
