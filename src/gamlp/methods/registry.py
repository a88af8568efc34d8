"""Every method by name, as a small declaration over the same parts.

A name is a base and what is added to it: `gamlp-jk+rlu+cs`.

    base                 the settings that make the method what it is
    +rlu                 reliable label utilization: later stages learn from the stage before (paper, section 3.3)
    +sle                 self-label enhancement: later stages train on confident predictions
    +scr                 consistency against an averaged teacher
    +cs                  correct and smooth the final probabilities
    +labels, -labels     with or without propagated labels as a second input

FAMILIES says which class runs a base; it is imported when a method of it is named.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from gamlp.errors import SettingsError, did_you_mean
from gamlp.methods.base import ADDITIONS, Base, Method

_NO_LABELS = {"residual": False, "labels": False}
_ON_FEATURES = {"hop_layers": 0, **_NO_LABELS}  # one combination of the hops themselves, then the head
_LINEAR = {"head_layers": 1, "batch_norm": False, **_ON_FEATURES}  # … and the head is one linear layer
_SIGN = {"combiner": "concat", "hop_layers": 1, **_NO_LABELS}
_SAGN = {"combiner": "gate", "labels": False}
_SUBSETS = {"relations": "subsets"}  # the hops of relation subsets, mixed: heterogeneous graphs only
_PAPER = "Zhang et al. 2022, Graph Attention MLP with Reliable Label Utilization"

FAMILIES: dict[str, dict[str, Base]] = {
    "gamlp.methods.hop_network:HopNetwork": {
        "mlp": Base("a multi-layer perceptron on the features alone", {"combiner": "last", "hops": 0, **_ON_FEATURES}),
        "sgc": Base("Wu et al. 2019, Simplifying Graph Convolutional Networks", {"combiner": "last", **_LINEAR}),
        "s2gc": Base("Zhu & Koniusz 2021, Simple Spectral Graph Convolution", {"combiner": "mean", **_LINEAR}),
        "gbp": Base(
            "Chen et al. 2020, Scalable GNNs via Bidirectional Propagation", {"combiner": "decay", **_ON_FEATURES}
        ),
        "sign": Base("Frasca et al. 2020, SIGN", _SIGN),
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
    "gamlp.methods.label_propagation:LabelPropagation": {
        "label-propagation": Base("Zhu & Ghahramani 2002"),
    },
    "gamlp.message_passing.method:MessagePassing": {
        "gcn": Base("Kipf & Welling 2017"),
        "gat": Base("Veličković et al. 2018"),
        "graphsage": Base("Hamilton et al. 2017"),
        "appnp": Base("Klicpera et al. 2019"),
        "jknet": Base("Xu et al. 2018"),
        "resgcn": Base("Li et al. 2019, DeepGCNs"),
        "deepergcn": Base("Li et al. 2020"),
        "unimp": Base("Shi et al. 2021"),
        "dagnn": Base("Liu et al. 2020"),
        "cluster-gcn": Base("Chiang et al. 2019"),
        "graphsaint": Base("Zeng et al. 2020"),
    },
    "gamlp.message_passing.method:RelationalMessagePassing": {
        "rgcn": Base("Schlichtkrull et al. 2018"),
        "hgt": Base("Hu et al. 2020, Heterogeneous Graph Transformer"),
    },
}
BASES: dict[str, Base] = {name: base for family in FAMILIES.values() for name, base in family.items()}
FAMILY_OF = {name: family for family, bases in FAMILIES.items() for name in bases}


@lru_cache(maxsize=256)
def method_named(name: str) -> Method:
    """Return the method of that name; an unknown base or addition is one clear error."""
    found = re.fullmatch(r"(.+?)((?:\+(?:rlu|sle|scr|cs|labels)|-labels)*)", name)
    base, added = (found[1], re.findall(r"[+-][a-z]+", found[2])) if found else (name, [])
    if base not in BASES:
        word, *extra = re.split(r"(?=\+)", base)
        if word in BASES and extra:
            raise SettingsError(
                f"Method '{name}': nothing is called '{extra[0]}'.\n{did_you_mean(extra[0], ADDITIONS)}"
            )
        raise SettingsError(f"There is no method '{name}'.\n{did_you_mean(base, BASES)}")
    module, kind = FAMILY_OF[base].split(":")
    family: Any = getattr(import_module(module), kind)
    refused = [addition for addition in added if addition not in family.additions]
    if refused:
        raise SettingsError(
            f"Method '{name}': {base} cannot take {refused[0]}.\nIt can take: {', '.join(family.additions)}."
        )
    ordered = tuple(addition for addition in ADDITIONS if addition in added)
    return family(base, ordered, BASES[base])  # type: ignore[no-any-return]
