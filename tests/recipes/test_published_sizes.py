"""Every row of the large tables has as many parameters as its authors published, or differs by a part that is named.

F features, H hidden, C classes and K hops are those of the recipe; a batch norm has two numbers a column.
"""

from pkgutil import resolve_name
from types import SimpleNamespace

import pytest
import torch

from gamlp.methods import BASES, method_named
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


def view_of(features, edges):
    """A view as networks of message passing are built from: no nodes, but the shape of the features and relations."""
    ranges = dict.fromkeys(("paper", "author", "field_of_study", "institution"), (0, 0))
    none = torch.empty(2, 0, dtype=torch.int64)
    return SimpleNamespace(features=torch.empty(0, features), edges=dict.fromkeys(edges, none), ranges=ranges)


MAG = [
    ("author", "affiliated_with", "institution"), ("institution", "rev_affiliated_with", "author"),
    ("author", "writes", "paper"), ("paper", "rev_writes", "author"),
    ("paper", "cites", "paper"), ("paper", "rev_cites", "paper"),
    ("paper", "has_topic", "field_of_study"), ("field_of_study", "rev_has_topic", "paper"),
]  # fmt: skip
EMBEDDED = (1_134_649 + 59_965 + 8_740) * 128  # learned rows of authors, fields and institutions


def passing_parameters(recipe, method):
    options, sizes = resolved(recipe, method), load_recipe(recipe).sizes
    network = resolve_name(f"gamlp.message_passing.{BASES[method].network}")
    view = view_of(100, []) if recipe == "ogbn-products" else view_of(128, MAG)
    return count_parameters(network(view, sizes["classes"], options))


@pytest.mark.parametrize(
    ("published", "recipe", "method"),
    [
        (103_727, "ogbn-products", "gcn"),
        (206_895 + 256, "ogbn-products", "graphsage"),  # a bias of each of both maps in the first layer
        (253_743, "ogbn-products", "deepergcn"),
        (2_850_405, "ogbn-mag", "hgconv"),
    ],
)
def test_message_passing_to_the_last_parameter(published, recipe, method):
    assert passing_parameters(recipe, method) == published


def test_unimp():
    """Ours is gated in every layer, theirs in the last alone, with a bias; theirs has a norm of the input.

    The published count has two maps of the features, 100 to 512, fewer than query, key, value and skip need.
    """
    gates, two_maps = 2 * 3 * 512 - 1, 2 * 100 * 512
    assert passing_parameters("ogbn-products", "unimp") == 1_475_605 + two_maps + gates - 2 * 100


def test_graphsaint():
    """Theirs attends to the neighbours, 331,661 parameters; ours is GraphSAGE's network, as in OGB's example."""
    assert passing_parameters("ogbn-products", "graphsaint") == 206_895 + 256


def test_rgcn():
    """Citations are two relations here and one there; a node's own map is one for all types here."""
    relation, own = 128 * 64 + 64 * 349, (128 + 1) * 64 + (64 + 1) * 349
    assert passing_parameters("ogbn-mag", "rgcn") == 154_366_772 - EMBEDDED + relation - 3 * own


def test_r_gsn():
    """As R-GCN, with a map for each type; the second vector of the attention, which softmax cancels, is left out."""
    relation, vectors = 128 * 64 + 64 * 349, 128 + 64
    assert passing_parameters("ogbn-mag", "r-gsn") == 154_373_028 - EMBEDDED + relation + (8 - 2 * 7) * vectors


def test_hgt():
    """Theirs has a 129th feature, and in each layer a norm a type, times of publication, and a relation to itself."""
    times, itself = 240 * 512 + 512 * 512 + 512, 8 * (1 + 2 * 64 * 64)
    assert passing_parameters("ogbn-mag", "hgt") == 21_173_389 - 4 * 512 - 4 * (4 * 2 * 512 + times + itself)


def test_r_hgnn():
    """Rows of relations are as wide as a head here, 64, theirs 8 at first; only relations to papers are fused here.

    The published count, 5,638,053, has 57,344 more than the layers that were published.
    """
    wider = 8 * (64 - 8) * (1 + 1024 + 64)  # the rows, the queries and the maps onward, in the first layer
    fused = 4 * (64 * 512) - 8 * (8 * 512)  # of the rows of relations …
    not_fused = 4 * 8 * 64 * 64  # … and of those of nodes
    assert passing_parameters("ogbn-mag", "r-hgnn") == 5_638_053 - 57_344 + wider + fused - not_fused
