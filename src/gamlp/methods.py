"""Every method by name, as a small declaration over the same parts.

A name is a base and what is added to it: `gamlp-jk+rlu+cs`.

    base                 the settings that make the method what it is
    +rlu                 reliable label utilization: later stages learn from the stage before (paper, section 3.3)
    +sle                 self-label enhancement: later stages train on confident predictions
    +scr                 consistency against an averaged teacher
    +cs                  correct and smooth the final probabilities
    +labels, -labels     with or without propagated labels as a second input
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gamlp.errors import SettingsError, did_you_mean

Kind = Literal["network", "label-propagation", "message-passing"]


@dataclass(frozen=True)
class Method:
    """What a method fixes; all else comes from the recipe."""

    name: str
    kind: Kind
    base: str
    fixed: Mapping[str, Any]
    staged: bool  # whether stages after the first are run
    reference: str


@dataclass(frozen=True)
class Base:
    """A method before anything is added to it."""

    reference: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = "network"


_NO_LABELS = {"residual": False, "labels": False}
_ON_FEATURES = {"hop_layers": 0, **_NO_LABELS}  # one combination of the hops themselves, then the head
_LINEAR = {"head_layers": 1, "batch_norm": False, **_ON_FEATURES}  # … and the head is one linear layer
_SIGN = {"combiner": "concat", "hop_layers": 1, **_NO_LABELS}
_SAGN = {"combiner": "gate", "labels": False}
_SUBSETS = {"relations": "subsets"}  # the hops of relation subsets, mixed: heterogeneous graphs only
_PAPER = "Zhang et al. 2022, Graph Attention MLP with Reliable Label Utilization"

BASES: dict[str, Base] = {
    "mlp": Base("a multi-layer perceptron on the features alone", {"combiner": "last", "hops": 0, **_ON_FEATURES}),
    "label-propagation": Base("Zhu & Ghahramani 2002", kind="label-propagation"),
    "sgc": Base("Wu et al. 2019, Simplifying Graph Convolutional Networks", {"combiner": "last", **_LINEAR}),
    "s2gc": Base("Zhu & Koniusz 2021, Simple Spectral Graph Convolution", {"combiner": "mean", **_LINEAR}),
    "gbp": Base("Chen et al. 2020, Scalable GNNs via Bidirectional Propagation", {"combiner": "decay", **_ON_FEATURES}),
    "sign": Base("Frasca et al. 2020, SIGN", _SIGN),
    "sagn": Base("Sun et al. 2021, Scalable and Adaptive Graph Neural Networks", _SAGN),
    "gamlp-smoothing": Base(_PAPER, {"combiner": "smoothing"}),
    "gamlp-recursive": Base(_PAPER, {"combiner": "recursive"}),
    "gamlp-jk": Base(_PAPER, {"combiner": "jk"}),
    "nars": Base("Yu et al. 2020, NARS", {**_SIGN, **_SUBSETS}),
    "nars-sagn": Base("NARS in front of SAGN", {**_SAGN, **_SUBSETS}),
    "nars-gamlp-smoothing": Base(_PAPER, {"combiner": "smoothing", **_SUBSETS}),
    "nars-gamlp-recursive": Base(_PAPER, {"combiner": "recursive", **_SUBSETS}),
    "nars-gamlp-jk": Base(_PAPER, {"combiner": "jk", **_SUBSETS}),
    "gcn": Base("Kipf & Welling 2017", kind="message-passing"),
    "gat": Base("Veličković et al. 2018", kind="message-passing"),
    "graphsage": Base("Hamilton et al. 2017", kind="message-passing"),
    "appnp": Base("Klicpera et al. 2019", kind="message-passing"),
    "jknet": Base("Xu et al. 2018", kind="message-passing"),
    "resgcn": Base("Li et al. 2019, DeepGCNs", kind="message-passing"),
    "deepergcn": Base("Li et al. 2020", kind="message-passing"),
    "unimp": Base("Shi et al. 2021", kind="message-passing"),
    "dagnn": Base("Liu et al. 2020", kind="message-passing"),
    "cluster-gcn": Base("Chiang et al. 2019", kind="message-passing"),
    "graphsaint": Base("Zeng et al. 2020", kind="message-passing"),
    "rgcn": Base("Schlichtkrull et al. 2018", kind="message-passing"),
    "hgt": Base("Hu et al. 2020, Heterogeneous Graph Transformer", kind="message-passing"),
}

RELATIONAL = frozenset({"rgcn", "hgt"})  # message passing that needs types and relations

ADDITIONS: dict[str, dict[str, Any]] = {
    "+rlu": {"pseudo_labels": "distil"},
    "+sle": {"pseudo_labels": "train", "labels": True},
    "+scr": {"consistency": 1.0},
    "+cs": {"correct_and_smooth": True},
    "+labels": {"labels": True},
    "-labels": {"labels": False},
}


def method_named(name: str) -> Method:
    """Return the method of that name; an unknown base or addition is one clear error."""
    found = re.fullmatch(r"(.+?)((?:\+(?:rlu|sle|scr|cs|labels)|-labels)*)", name)
    base_name, added = (found[1], re.findall(r"[+-][a-z]+", found[2])) if found else (name, [])
    base = BASES.get(base_name)
    if base is None:
        word, *extra = re.split(r"(?=\+)", base_name)
        if word in BASES and extra:
            raise SettingsError(
                f"Method '{name}': nothing is called '{extra[0]}'.\n{did_you_mean(extra[0], ADDITIONS)}"
            )
        raise SettingsError(f"There is no method '{name}'.\n{did_you_mean(base_name, BASES)}")
    if base.kind != "network" and added and set(added) != {"+cs"}:
        raise SettingsError(
            f"Method '{name}': {base_name} can only take +cs.\nThe others belong to the methods on hops."
        )
    fixed = dict(base.fixed)
    added.sort(key=list(ADDITIONS).index)  # a+rlu+scr and a+scr+rlu are one method
    for addition in added:
        fixed |= ADDITIONS[addition]
    staged = "+rlu" in added or "+sle" in added
    return Method(base_name + "".join(added), base.kind, base_name, fixed, staged, base.reference)
