import pytest

from gamlp.errors import SettingsError
from gamlp.methods import BASES, method_named
from gamlp.recipes import load_recipe


def test_additions_change_what_they_say():
    method = method_named("gamlp-jk+rlu+scr+cs")
    assert method.base == "gamlp-jk"
    assert method.staged
    assert method.fixed["consistency"] > 0
    assert method.fixed["correct_and_smooth"]
    assert not method_named("gamlp-jk").staged
    assert method_named("sagn+sle").fixed["pseudo_labels"] == "train"
    assert method_named("gamlp-jk+cs+scr+rlu") == method
    assert method_named("gamlp-jk-labels").fixed["labels"] is False
    assert method_named("unimp+cs+reuse").name == "unimp+reuse+cs"


@pytest.mark.parametrize("name", BASES)
def test_every_base_has_a_reference_and_resolves(name):
    method = method_named(name)
    assert method.declared.reference
    if method.on_hops:
        assert len(load_recipe("default").resolve(method).epochs) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gamlp-kj", "gamlp-jk"),
        ("gamlp-jk+rul", r"\+rlu"),
        ("gcn+rlu", "cannot take"),
        ("gcn+reuse", "cannot take"),
        ("sagn+reuse", "cannot take"),
        ("", "no method"),
        ("gamlp-jk+rlu+sle", r"\+rlu has pseudo_labels = 'distil', \+sle has pseudo_labels = 'train'"),
        ("gamlp-jk+labels-labels", "Leave out one"),
        ("sagn+sle-labels", "Leave out one"),
        ("sgc-labels", "-labels changes nothing"),
        ("sagn+sle+labels", r"\+labels changes nothing"),
    ],
)
def test_a_wrong_name_is_told_the_right_one(name, words):
    with pytest.raises(SettingsError, match=words):
        method_named(name)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("gamlp-jk+rlu", {"epochs": 100}, "the epochs of one stage, 100"),
        ("sagn+sle", {"epochs": [100]}, "the epochs of one stage, 100"),
        ("gamlp-jk-labels+rlu", {"gamma": 0}, "learn nothing from its first stage"),
        ("gamlp-jk+labels+rlu", {"gamma": 0, "reliable_propagation": False}, "learn nothing from its first stage"),
        ("gamlp-jk+rlu", {"threshold": 1}, "less than 1"),
        ("gamlp-jk+scr", {"consistency_threshold": 1}, "less than 1"),
    ],
)
def test_an_addition_that_would_change_nothing_is_refused(name, settings, words):
    with pytest.raises(SettingsError, match=words):
        load_recipe("default").resolve(method_named(name), settings)


@pytest.mark.parametrize(
    ("method", "settings", "idle"),
    [
        ("gamlp-jk", {"jk_reference": "none"}, {"jk_layers"}),
        ("gamlp-recursive", {}, {"jk_layers", "jk_reference", "decay"}),
        ("gbp", {}, {"attention_dropout", "jk_reference"}),
        ("gamlp-jk-labels+rlu", {}, {"label_weights", "reliable_propagation"}),
        ("sagn+sle", {}, {"reliable_propagation", "gamma", "unlabelled_rows"}),
        ("gamlp-recursive", {}, {"unlabelled_rows", "temperature"}),
        ("gamlp-jk", {"head_layers": 2, "jk_layers": 2}, {"initial_residual"}),
        ("gamlp-recursive", {"head_residual": "features"}, {"initial_residual"}),
    ],
)
def test_settings_that_change_nothing_are_known(planted, method, settings, idle):
    found = method_named(method)
    chosen = found.settings_from({**found.fixed, **settings})
    assert idle <= found.idle(planted, chosen).keys()
    plain = method_named("gamlp-jk+rlu")
    told = plain.idle(planted, plain.settings_from(plain.fixed)).keys()  # which reads them all but for these
    assert idle & told <= {"decay"}
