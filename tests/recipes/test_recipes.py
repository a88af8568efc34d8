"""Every recipe of the package can be used, and a recipe's values win in the stated order."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gamlp.errors import FormatError, MissingFileError, SettingsError
from gamlp.methods import method_named
from gamlp.recipes import load_recipe, recipe_names
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import as_toml, recipe_from, write_recipe


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_resolves_for_every_method_it_names(name):
    recipe = load_recipe(name)
    assert recipe.title
    assert recipe.source
    for method in {recipe.method, *recipe.tried, *recipe.methods, *recipe.published}:
        recipe.resolve(method_named(method))
    assert all(0 < mean < 100 and (std is None or 0 < std < 5) for mean, std in recipe.published.values())


@pytest.mark.parametrize("name", recipe_names())
def test_no_recipe_has_a_setting_that_its_method_does_not_read(name):
    recipe = load_recipe(name)
    types = ("papers",) if method_named(recipe.method).needs_relations else ()
    graph = SimpleNamespace(name=name, types=types, features=np.empty((3, 2)))
    for key, values in recipe.methods.items():
        method = method_named(key)
        idle = method.idle(graph, recipe.resolve(method))
        assert not idle.keys() & values.keys(), (key, idle)


def test_the_paper_tables_are_in_the_recipes():
    products, papers = load_recipe("ogbn-products"), load_recipe("ogbn-papers100M-published")
    assert products.published["gamlp-recursive+rlu"] == (84.59, 0.10)
    assert products.published["mlp+cs"] == (84.18, 0.07)
    assert products.published["sgc"] == (75.87, None)
    assert papers.published["gamlp-recursive+rlu"] == (68.25, 0.11)
    settings = products.resolve(method_named("gamlp-recursive+rlu"))
    assert settings.epochs == (400, 300, 300, 300)
    assert (settings.gamma, settings.threshold, settings.batch_size) == (0.1, 0.85, 50_000)
    assert (settings.normalization, settings.self_loops) == (0.0, False)
    assert products.resolve(method_named("gamlp-recursive")).epochs == (400,)  # the paper: only run the first stage


def test_what_a_recipe_tries_joins_the_portfolio_with_its_own_settings():
    """Of nodes without a label all may become reliable: a mixture does not know which ones are of the split."""
    recipe = recipe_from(
        "mine", {"method": "sgc", "tried": ["sgc", "sagn+rlu"], "settings": {"hops": 7, "reliable_from": "split"}}
    )
    outline = Outline(100, 1_000, 16, 3, 60, sparse=False)
    assert recipe.method_for(outline) == "portfolio"
    assert recipe.method_for(outline, ["hidden"]) == recipe.method_for(outline, network=True) == "sgc"
    assert recipe.method_for(replace(outline, nodes=10**6)) == "sgc"
    usual = recipe.resolve(method_named("portfolio"), {}, outline).usual
    assert [(one.method, one.settings["hops"]) for one in usual] == [("sgc", 7), ("sagn+rlu", 7)]
    assert usual[1].settings["reliable_from"] == "all"
    assert replace(recipe, tried=()).method_for(outline) == "sgc"


def test_each_later_source_wins():
    recipe = recipe_from(
        "mine",
        {
            "method": "sgc",
            "settings": {"dropout": 0.3, "head_layers": 3, "hidden": 16, "hops": 2, "patience": 7},
            "methods": {"sgc": {"hops": 4, "patience": 8}, "sgc+cs": {"patience": 9}},
        },
    )
    settings = recipe.resolve(method_named("sgc+cs"), {"dropout": 0.1})
    assert settings.label_layers == 4  # the default
    assert settings.hidden == 16  # [settings] over the default
    assert settings.head_layers == 1  # the method over [settings]: SGC is linear
    assert settings.hops == 4  # [methods.sgc] over [settings]
    assert settings.patience == 9  # [methods."sgc+cs"] over [methods.sgc]
    assert settings.dropout == 0.1  # --set over all
    assert recipe.resolve(method_named("sgc")).patience == 8
    assert recipe.resolve(method_named("sign")).head_layers == 3


def test_a_method_recipe_can_overrule_what_the_method_fixes():
    recipe = recipe_from("mine", {"methods": {"sgc": {"head_layers": 2}}})
    assert recipe.resolve(method_named("sgc")).head_layers == 2


@pytest.mark.parametrize(
    ("content", "suggestion"),
    [
        ({"setings": {}}, "'settings'"),
        ({"settings": {"hidde": 3}}, "'hidden'"),
        ({"methods": {"sgc": {"hopps": 3}}}, "'hops'"),
        ({"methods": {"gcn": {"layer": 3}}}, "'layers'"),
        ({"methods": {"gamlp-jj": {}}}, "'gamlp-jk'"),
        ({"method": "gamlp-jk+rul"}, r"'\+rlu'"),
        ({"settings": {"dropout": 1.5}}, "default is 0.5"),
        ({"settings": 3}, r"a table, \[settings\]"),
        ({"methods": {"sgc": 3}}, r"\[methods.sgc\]"),
        ({"method": 3}, "text in quotes"),
        ({"adapt": "yes"}, "true or false"),
        ({"published": {"sgc": 75.0}}, r"\[mean, std\]"),
    ],
)
def test_a_wrong_recipe_says_what_is_right(content, suggestion):
    with pytest.raises(SettingsError, match=suggestion):
        recipe_from("mine", content)


def test_recipe_files_that_cannot_be_read(tmp_path):
    with pytest.raises(MissingFileError, match="cannot be read"):
        load_recipe(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("method = gamlp\n")
    with pytest.raises(FormatError, match="not valid TOML"):
        load_recipe(tmp_path / "broken.toml")
    with pytest.raises(SettingsError, match="Did you mean 'ogbn-products'"):
        load_recipe("ogbn-product")


def test_what_is_written_is_read_back(tmp_path):
    content = {
        "title": 'quotes " and \\ and\nlines\tand \x07',
        "source": "naïve – Ü",
        "method": "gamlp-jk+rlu",
        "published": {"gamlp-jk+rlu": [84.3, 0.8], "sgc": [81.0]},
        "settings": {"learning_rate": 1e-05, "epochs": [3, 2], "self_loops": False, "hidden": 16, "rows": "all"},
        "methods": {"gamlp-jk+rlu": {"gamma": 0.1}, "sgc": {"hops": 2}},
    }
    recipe = write_recipe(tmp_path / "mine.toml", content)
    assert (recipe.title, recipe.source, recipe.method) == (content["title"], content["source"], content["method"])
    assert recipe.published == {"gamlp-jk+rlu": (84.3, 0.8), "sgc": (81.0, None)}
    assert recipe.settings == content["settings"]
    assert recipe.methods == content["methods"]


def test_toml_by_hand():
    content = {"a": {"b": 1, "c d": True}, "e": "x", "f": {"g+h": {"i": [1, "k"]}}}
    assert as_toml(content) == 'e = "x"\n\n[a]\nb = 1\n"c d" = true\n\n[f."g+h"]\ni = [1, "k"]\n'


@pytest.mark.parametrize(
    ("training", "entries", "kept"), [(60, 500, "last"), (60, 2_000, "best"), (600, 500, "best"), (600, 2_000, "best")]
)
def test_the_last_stage_is_kept_where_labels_and_neighbours_are_few(training, entries, kept):
    outline = Outline(100, entries, 16, 3, training, sparse=False)
    assert load_recipe("default").resolve(method_named("gamlp-recursive+rlu"), {}, outline).keep_stage == kept
