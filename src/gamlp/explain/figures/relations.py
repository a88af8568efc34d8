"""How much each subset of a heterogeneous graph's relations counts: the weights that mix their hops (NARS).

A run on several subsets leaves `seed-N/relations.json` beside its other files:

    {"subsets": ["depends", "depends + has_tag", …], "weights": [[…] per subset],              weights (S, K+1)
     "relations": ["depends", "has_tag"], "relation_weights": [[…] per relation]}

where weights[s][l] is the share of subset s in hop l (`train/subset_shares.py`), and a relation has its part of the
shares of its subsets. Other runs have no such file.
"""

from __future__ import annotations

import numpy as np

from gamlp.errors import FormatError
from gamlp.explain.figures.attention import Weights, weights_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.storage.files import read_json


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the shares of the subsets, and those of the single relations."""
    subsets, single = relation_weights(run), single_relation_weights(run)
    drawn = [] if subsets is None else [weights_chart(subsets, ylabel="subset of the relations")]
    if single is not None:
        drawn.append(weights_chart(single, ylabel="relation", note="Each subset's share, divided among its relations."))
    return drawn


def relation_weights(run: FinishedRun) -> Weights | None:
    """Return one group a subset, or None where the run did not mix subsets."""
    return weights_of(run, "subsets", "weights", "relations", "Weights of the relation subsets")


def single_relation_weights(run: FinishedRun) -> Weights | None:
    """Return one group a relation: what its subsets have, shared out among their relations."""
    return weights_of(run, "relations", "relation_weights", "single-relations", "Single relations")


def weights_of(run: FinishedRun, groups: str, weights: str, name: str, title: str) -> Weights | None:
    """Read one of the two tables."""
    file = run.folder / f"seed-{run.seed}" / "relations.json"
    if not file.exists():
        return None
    content = read_json(file)
    if groups not in content and groups == "relations":
        return None
    try:
        names, mean = [str(name) for name in content[groups]], np.array(content[weights], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{file} does not hold weights of subsets ({error}).\nRestore it, or train again.") from error
    if mean.ndim != 2 or len(mean) != len(names):
        raise FormatError(f"{file} names {len(names)} {groups} for weights {mean.shape}.\nRestore it, or train again.")
    return Weights(name, title, tuple(names), np.zeros(len(names), dtype=np.int64), mean)
