"""Every method by name, as a small declaration over the same parts.

A name is a base and what is added to it: `gamlp-jk+rlu+cs`.

    base                 the settings that make the method what it is
    +rlu                 reliable label utilization: later stages learn from the stage before (paper, section 3.3)
    +sle                 self-label enhancement: later stages train on confident predictions
    +scr                 consistency against an averaged teacher
    +reuse               predictions become label input in turn, where labels are input in every step (unimp)
    +cs                  correct and smooth the final probabilities
    +labels, -labels     with or without propagated labels as a second input

FAMILIES says which class runs a base; it is imported when a method of it is named. Methods of other packages come by
entry points (`gamlp.plugins`), or by the decorator `register_method`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeVar

from gamlp.errors import SettingsError, did_you_mean
from gamlp.methods.base import ADDITIONS, STAGED, Base, Method
from gamlp.plugins import imported, installed, place_of

Kind = TypeVar("Kind", bound=Method)
_NO_LABELS = {"residual": False, "labels": False}
_ON_FEATURES = {"hop_layers": 0, **_NO_LABELS}  # one combination of the hops themselves, then the head
# … and the head is one linear layer
_LINEAR = {"head_layers": 1, "head_residual": "first", "batch_norm": False, **_ON_FEATURES}
_GBP = {"combiner": "decay", **_ON_FEATURES}
_SIGN = {"combiner": "concat", "hop_layers": 1, **_NO_LABELS}
_SIGN_XL = {"combiner": "concat", "hidden": 2048, "head_layers": 3, "dropout": 0.5, **_ON_FEATURES}
_SAGN = {"combiner": "gate", "labels": False}
_TREES = {"combiner": "concat", "labels": False}
_ROUNDS = {"hops": 3, "normalization": 0.0, "self_loops": False, "components": 64, "epochs": 100, "learning_rate": 0.1,
           "evaluate_every": 20, "patience": 40}  # fmt: skip
_SUBSETS = {"relations": "subsets"}  # the hops of relation subsets, mixed: heterogeneous graphs only
_PAPER = "Zhang et al. 2022, Graph Attention MLP with Reliable Label Utilization"


def passing(reference: str, network: str, *, drops_features: bool = True, **defaults: Any) -> Base:
    """Declare a method of message passing; its default settings are what its authors published, where they did."""
    own = {"input_dropout": None} if drops_features else {}
    return Base(reference, network=network, defaults={**own, **defaults})


_SUBGRAPHS: dict[str, Any] = {"batch_size": 128, "rounds": 6, "nodes_a_type": 520, "full_batch_up_to": 50_000}
# fmt: off
PASSING = {
    "gcn": passing("Kipf & Welling 2017", "networks:GCN", layers=2),
    "gat": passing("Veličković et al. 2018", "networks:GAT", layers=2, heads=8, output_heads=1, hidden=8, dropout=0.6,
            edge_dropout=0.6, learning_rate=0.005, weight_decay_on="all"),
    "graphsage": passing("Hamilton et al. 2017", "networks:GraphSAGE", layers=2, batch_size=1024, fanout=10,
            full_batch_up_to=50_000),
    "appnp": passing("Klicpera et al. 2019", "networks:APPNP", layers=2, iterations=10, teleport=0.1, edge_dropout=0.5,
            weight_decay=5e-3),
    "jknet": passing("Xu et al. 2018", "networks:JKNet", layers=3, jumping="cat"),
    "resgcn": passing("Li et al. 2019, DeepGCNs", "networks:ResGCN", layers=3),
    "deepergcn": passing("Li et al. 2020", "networks:DeeperGCN", layers=7, dropout=0.5, weight_decay_on="all",
            parts=1),
    "dagnn": passing("Liu et al. 2020", "networks:DAGNN", layers=2, iterations=10, dropout=0.8, weight_decay=5e-3,
            weight_decay_on="all"),
    "cluster-gcn": passing("Chiang et al. 2019", "networks:ClusterGCN", layers=2, parts=20, parts_a_batch=5),
    "graphsaint": passing("Zeng et al. 2020", "networks:GraphSAINT", layers=2, walk_roots=200, walk_length=2, batches=5,
            coverage=50),
    "ap-gcn": passing("Spinelli et al. 2020, Adaptive Propagation GCN", "adaptive:APGCN", layers=2, iterations=10,
            ponder_cost=0.005, edge_dropout=0.5, weight_decay=5e-3),
    "fastgcn": passing("Chen, Ma & Xiao 2018, FastGCN", "layerwise:FastGCN", layers=2, batch_size=256, layer_nodes=400),
    "vr-gcn": passing("Chen, Zhu & Song 2018, Stochastic Training of GCNs with Variance Reduction", "layerwise:VRGCN",
            layers=2, batch_size=1024, fanout=2),
    "as-gcn": passing("Huang et al. 2018, Adaptive Sampling Towards Fast Graph Representation Learning",
            "adaptive_sampling:ASGCN", layers=2, batch_size=256, layer_nodes=128, variance=0.5),
}
PASSING_WITH_LABELS = {
    "unimp": passing("Shi et al. 2021", "networks:UniMP", layers=2, heads=2, hidden=32, edge_dropout=0.1,
            label_rate=0.6, label_reuse=0, weight_decay_on="all", batch_size=1024, fanout=10, full_batch_up_to=50_000),
}
PASSING_OVER_RELATIONS = {
    "rgcn": passing("Schlichtkrull et al. 2018", "relational:RGCN", layers=2, weight_decay_on="all"),
    "hgt": passing("Hu et al. 2020, Heterogeneous Graph Transformer", "relational:HGT", layers=2, heads=4, dropout=0.2,
            drops_features=False, weight_decay_on="all", **_SUBGRAPHS),
    "r-gsn": passing("Wu et al. 2021, R-GSN", "similar:RGSN", layers=2, learning_rate=0.004, weight_decay=0.0,
            **_SUBGRAPHS),
    "hgconv": passing("Yu et al. 2020, Hybrid Micro/Macro Level Convolution", "relation_attention:HGConv", layers=2,
            heads=8, hidden=32, learning_rate=0.001, weight_decay=0.0, drops_features=False, **_SUBGRAPHS),
    "r-hgnn": passing("Yu et al. 2021, Heterogeneous Graph Representation Learning with Relation Awareness",
            "relation_attention:RHGNN", layers=2, heads=8, hidden=64, learning_rate=0.001, weight_decay=0.0,
            drops_features=False, **_SUBGRAPHS),
}
# fmt: on

FAMILIES: dict[str, dict[str, Base]] = {
    "gamlp.methods.hop_network:HopNetwork": {
        "mlp": Base("a multi-layer perceptron on the features alone", {"combiner": "last", "hops": 0, **_ON_FEATURES}),
        "sgc": Base("Wu et al. 2019, Simplifying Graph Convolutional Networks", {"combiner": "last", **_LINEAR}),
        "s2gc": Base("Zhu & Koniusz 2021, Simple Spectral Graph Convolution", {"combiner": "mean", **_LINEAR}),
        "gbp": Base("Chen et al. 2020, Scalable GNNs via Bidirectional Propagation", _GBP),
        "sign": Base("Frasca et al. 2020, SIGN", _SIGN),
        "sign-xl": Base("Frasca et al. 2020, SIGN; its larger network, on ogbn-papers100M", _SIGN_XL),
        "sagn": Base("Sun et al. 2021, Scalable and Adaptive Graph Neural Networks", _SAGN),
        "gamlp": Base(f"{_PAPER}; the combiner is a setting"),
        "gamlp-smoothing": Base(_PAPER, {"combiner": "smoothing"}),
        "gamlp-recursive": Base(_PAPER, {"combiner": "recursive"}),
        "gamlp-jk": Base(_PAPER, {"combiner": "jk"}),
    },
    "gamlp.methods.hop_network:SubsetNetwork": {
        "nars": Base("Yu et al. 2020, NARS", {**_SIGN, **_SUBSETS}),
        "nars-sagn": Base("NARS in front of SAGN", {**_SAGN, **_SUBSETS}),
        "nars-gamlp-smoothing": Base(_PAPER, {"combiner": "smoothing", **_SUBSETS}),
        "nars-gamlp-recursive": Base(_PAPER, {"combiner": "recursive", **_SUBSETS}),
        "nars-gamlp-jk": Base(_PAPER, {"combiner": "jk", **_SUBSETS}),
    },
    "gamlp.methods.boosting:Boosting": {
        "boosting": Base("Friedman 2001; scikit-learn's histogram booster on hop rows", _TREES, defaults=_ROUNDS)
    },
    "gamlp.methods.label_propagation:LabelPropagation": {"label-propagation": Base("Zhu & Ghahramani 2002")},
    "gamlp.methods.portfolio:Portfolio": {"portfolio": Base("Caruana et al. 2004, Ensemble Selection; what suits")},
    "gamlp.message_passing.method:MessagePassing": PASSING,
    "gamlp.message_passing.method:LabelledMessagePassing": PASSING_WITH_LABELS,
    "gamlp.message_passing.method:RelationalMessagePassing": PASSING_OVER_RELATIONS,
}
BASES: dict[str, Base] = {name: base for family in FAMILIES.values() for name, base in family.items()}
FAMILY_OF = {name: family for family, bases in FAMILIES.items() for name in bases}
for _name, (_place, _package) in installed("methods", but=BASES).items():
    BASES[_name], FAMILY_OF[_name] = Base(f"of the package {_package}"), _place


def register_method(name: str, reference: str = "") -> Callable[[type[Kind]], type[Kind]]:
    """Return a decorator that registers a method of one's own under a name, for all commands and the estimator."""

    def register(kind: type[Kind]) -> type[Kind]:
        FAMILY_OF[name] = place_of(kind, name, FAMILY_OF)
        BASES[name] = Base(reference or f"of the module {kind.__module__}")
        return kind

    return register


@lru_cache(maxsize=256)
def method_named(name: str) -> Method:
    """Return the method of that name; an unknown base or addition is one clear error."""
    found = re.fullmatch(r"(.+?)((?:\+(?:rlu|sle|scr|reuse|cs|labels)|-labels)*)", name)
    base, added = (found[1], re.findall(r"[+-][a-z]+", found[2])) if found else (name, [])
    if base not in BASES:
        word, *extra = re.split(r"(?=\+)", base)
        if word in BASES and extra:
            raise SettingsError(
                f"Method '{name}': nothing is called '{extra[0]}'.\n{did_you_mean(extra[0], ADDITIONS)}"
            )
        raise SettingsError(f"There is no method '{name}'.\n{did_you_mean(base, BASES)}")
    family: Any = imported(FAMILY_OF[base], base)
    declared = BASES[base]
    if isinstance(family, Base):  # of another package: settings that make a network on hops
        family, declared = imported("gamlp.methods.hop_network:HopNetwork", base), family
    refused = [addition for addition in added if addition not in family.additions]
    if refused:
        raise SettingsError(
            f"Method '{name}': {base} cannot take {refused[0]}.\nIt can take: {', '.join(family.additions)}."
        )
    ordered = tuple(addition for addition in ADDITIONS if addition in added)
    check_additions(name, BASES[base], ordered)
    return family(base, ordered, declared)  # type: ignore[no-any-return]


def check_additions(name: str, base: Base, added: Sequence[str]) -> None:
    """Refuse additions that contradict each other, and one that says what the method has without it."""
    for one, other in combinations(added, 2):
        for key in ADDITIONS[one].keys() & ADDITIONS[other].keys():
            mine, theirs = ADDITIONS[one][key], ADDITIONS[other][key]
            if mine != theirs:
                raise SettingsError(
                    f"Method '{name}': {one} has {key} = {mine!r}, {other} has {key} = {theirs!r}.\nLeave out one."
                )
    for one in added:
        others = [base.fixed, *(ADDITIONS[other] for other in added if other != one)]
        if one not in STAGED and any(ADDITIONS[one].items() <= other.items() for other in others):
            raise SettingsError(f"Method '{name}': {one} changes nothing, the rest of the name says it.\nLeave it out.")
