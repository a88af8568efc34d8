"""Every row of the large tables has as many parameters as its authors published, or differs by a part that is named.

F features, H hidden, C classes and K hops are those of the recipe; a batch norm has two numbers a column.
"""

import pytest

from gamlp.methods import method_named
from gamlp.model import build_network, count_parameters
from gamlp.recipes import load_recipe


def resolved(recipe, method):
    return load_recipe(recipe).resolve(method_named(method))


def parameters(recipe, method, *, features, subsets=0):
    settings, classes = resolved(recipe, method), load_recipe(recipe).sizes["classes"]
    return count_parameters(build_network(settings, features=features, classes=classes, subsets=subsets))


@pytest.mark.parametrize(
    ("published", "recipe", "method", "features", "subsets"),
    [
        (3_335_831, "ogbn-products", "gamlp-recursive+rlu", 100, 0),
        (16_308_751 - 132_097, "ogbn-papers100M-published", "gamlp-recursive+rlu", 128, 0),  # see the recipe
        (6_734_882, "ogbn-mag", "nars-gamlp-jk+rlu", 256, 8),
        (3_483_703, "ogbn-products", "sign", 100, 0),
        (3_724_645, "ogbn-mag", "sign", 128, 0),
        (4_130_149, "ogbn-mag", "nars", 256, 8),
    ],
)
def test_to_the_last_parameter(published, recipe, method, features, subsets):
    assert parameters(recipe, method, features=features, subsets=subsets) == published


@pytest.mark.parametrize(
    ("published", "recipe", "method", "features", "subsets"),
    [
        (2_233_391, "ogbn-products", "sagn", 100, 0),
        (2_179_678, "ogbn-products", "sagn+sle", 100, 0),
        (2_179_678, "ogbn-products", "sagn+sle+cs", 100, 0),
        (6_098_092, "ogbn-papers100M", "sagn", 128, 0),
        (8_556_888, "ogbn-papers100M", "sagn+sle", 128, 0),
        (3_846_330, "ogbn-mag", "nars-sagn+sle", 256, 8),
    ],
)
def test_sagn(published, recipe, method, features, subsets):
    """Theirs has relu and biases everywhere and a norm behind the residual; ours PReLU, and a norm of the logits."""
    settings, classes = resolved(recipe, method), load_recipe(recipe).sizes["classes"]
    slopes = (settings.hops + 1) + 1 + 1 + settings.labels  # of the hop nets, the residual, the head, the label branch
    biases = 1 + settings.hidden  # of the attention and the residual
    theirs = settings.hidden + classes + 2 * settings.hidden  # biases of the head, and the norm behind the residual
    ours = slopes + biases + 2 * classes
    assert parameters(recipe, method, features=features, subsets=subsets) == published - theirs + ours


@pytest.mark.parametrize(
    ("published", "recipe", "method", "features", "inputs"),
    [
        (96_247, "ogbn-products", "mlp+cs", 100, 128),  # spectral coordinates beside the features
        (144_044, "ogbn-papers100M", "sgc", 128, 0),
        (1_008_812, "ogbn-papers100M", "sign", 128, 6 * 128),  # three hops of three operators, ours of one
        (7_180_460, "ogbn-papers100M", "sign-xl", 128, 6 * 128),
    ],
)
def test_perceptrons(published, recipe, method, features, inputs):
    """Theirs have biases, which batch norm takes out again in all but the last layer; ours a norm there and PReLU."""
    settings, classes = resolved(recipe, method), load_recipe(recipe).sizes["classes"]
    assert settings.head_layers == 3
    theirs = inputs * settings.hidden + 2 * settings.hidden + classes
    assert parameters(recipe, method, features=features) == published - theirs + 2 * classes + 1
