"""What a portfolio tries on a graph never seen before: small networks of every family, and the usual recipe last.

    label-propagation        the edges alone
    mlp                      the features alone
    gbp, near and far        a decaying sum of the hops: what GCN does, decoupled
    sign                     every hop with weights of its own, so that a node's features stand apart from those of its
                             neighbours: where these differ, they say what it is not, and the second hop what it is
    boosting                 trees on the hops, where labels are many: what columns say together
    gamlp-jk with labels     attention over the hops, and the labels of the neighbourhood; with many labels also with a
                             net for every hop, as the recipe has it

Bags of words stay as they are up to WIDE values: with many labels a rotation onto 256 directions loses one to two
points on Cora and CiteSeer (60 % of the labels). GBP drops from the sum of the hops, as published, so that they are
added up once and not in every step. Fewer labels need more dropout and weight decay, and are trained on
all at once. The settings were chosen on validation of Cora, CiteSeer, PubMed and Photo, split 60/20/20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gamlp.recipes.adapt import Outline

WIDE = 2 * 10**7  # values of the features (N·F)
MOST_CLASSES = 20  # up to which trees are grown: every round grows one for each class
SEVERAL = 2_000  # labels from which on networks train in batches
DRAWN = 2_000  # nodes without labels, or a third of all nodes, that an epoch of a graph's own recipe draws at most
Plan = list[tuple[str, dict[str, Any]]]

_SMALL: dict[str, Any] = {
    "normalization": 0.5, "self_loops": True, "head_layers": 2, "batch_norm": False, "dropout": 0.5,
    "learning_rate": 0.01, "evaluate_every": 2,
}  # fmt: skip
_FEW = {"batch_size": 10_000, "epochs": 200, "patience": 40, "weight_decay": 5e-4, "input_dropout": 0.5}
_MANY = {"epochs": 80, "patience": 16, "weight_decay": 1e-4, "input_dropout": 0.3}
_JK = {
    "hops": 4, "hop_layers": 0, "hidden": 128, "jk_layers": 1, "residual": False, "label_layers": 1, "label_hops": 5,
    "label_folds": 10,
}  # fmt: skip


def candidates_for(outline: Outline, *, several: bool = False) -> Plan:
    """Return methods and the settings in which they differ from the recipe that adapts itself.

    Where nodes have `several` labels, methods that read one class a node are left out.
    """
    if outline.relations:
        return [("nars", {}), ("nars-sagn", {}), ("nars-gamlp-recursive+rlu", {})]
    usual = "gamlp-recursive+rlu" + ("+scr" if outline.few_labels else "")
    # one of several: what a longer look would find, another member mostly has
    soon = {"patience": 12, "unlabelled_rows": max(10_000, outline.training)}
    trees = not (outline.few_labels or several or outline.classes > MOST_CLASSES)
    raw = {} if outline.nodes * outline.features > WIDE or outline.bare else {"components": 0}
    if outline.training < SEVERAL:
        small = {**_SMALL, **_FEW}
        near = {"hops": 6, "decay": 0.2, "combined_dropout": 0.5}
        far = {"hops": 10, "decay": 0.1, "combined_dropout": 0.3, "dropout": 0.8}
        sign = {"hidden": 128, "head_layers": 1}
    else:
        small = {**_SMALL, **_MANY, "batch_size": min(max(outline.training // 6, 1_000), 10_000)}
        near = {"hops": 4, "decay": 0.4, "combined_dropout": 0.1}
        far = {"hops": 6, "decay": 0.2, "combined_dropout": 0.1}
        sign = {"hidden": 256}
    return [
        ("label-propagation", {}),
        ("mlp", {**small, **raw, "hidden": 128}),
        ("gbp", {**small, **raw, "hidden": 256, "input_dropout": 0.0, **near}),
        ("gbp", {**small, **raw, "hidden": 256, "input_dropout": 0.0, **far}),
        ("sign", {**small, **raw, "hops": 3, "self_loops": False, **sign}),
        *([("boosting", {})] if trees else []),
        ("gamlp-jk+labels", {**small, **_JK}),
        *([] if outline.few_labels else [("gamlp-jk", soon)]),
        (usual, {} if outline.few_labels else soon),
    ]


def as_candidate(settings: Mapping[str, Any], outline: Outline) -> dict[str, Any]:
    """Return settings of a graph's own recipe for its method as one of several.

    With few labels nearly all nodes are without, and they are most of the work: on Physics 4 s instead of 49. Over two
    splits each that no table shows test accuracy moved by 0.0 points on Physics, +0.1 on Photo, −0.1 on CS and −0.7 on
    Computers, where what is tried on any graph is above its own recipe.
    """
    all_of_them = settings.get("unlabelled_rows") == 0
    some = {"unlabelled_rows": min(DRAWN, outline.nodes // 3)}
    return {**settings, **(some if outline.few_labels and all_of_them else {})}
