"""How much each subset of a heterogeneous graph's relations counts: the weights that mix their hops (NARS).

A run on several subsets leaves `seed-N/relations.json` beside its other files:

    {"subsets": ["depends", "depends + has_tag", …], "weights": [[…] per subset],              weights (S, K+1)
     "relations": ["depends", "has_tag"], "relation_weights": [[…] per relation]}

where weights[s][l] is the share of subset s in hop l (`train/subset_rotation.py`), and a relation has its part of the
shares of its subsets. Other runs have no such file.
"""

from __future__ import annotations

import numpy as np

from gamlp.errors import FormatError
from gamlp.explain.figures.attention import Weights, weights_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun
from gamlp.storage.files import read_json

TABLES = {  # names in the file → weights in the file; name and title of the figure
    "subsets": ("weights", "relations", "Weights of the relation subsets"),
    "relations": ("relation_weights", "single-relations", "Single relations"),
}


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the shares of the subsets, and those of the single relations."""
    subsets, single = relation_weights(run, "subsets"), relation_weights(run, "relations")
    note = "Each subset's share, divided among its relations."
    drawn = [] if subsets is None else [weights_chart(subsets, ylabel="subset of the relations")]
    return drawn if single is None else [*drawn, weights_chart(single, ylabel="relation", note=note)]


def relation_weights(run: FinishedRun, groups: str) -> Weights | None:
    """Return one group a subset, or one a relation; None where the run did not mix subsets."""
    file = run.folder / f"seed-{run.seed}" / "relations.json"
    content = read_json(file) if file.exists() else None
    if content is None or (groups == "relations" and groups not in content):
        return None
    weights, name, title = TABLES[groups]
    try:
        names, mean = [str(name) for name in content[groups]], np.array(content[weights], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{file} does not hold weights of subsets ({error}).\nRestore it, or train again.") from error
    if mean.ndim != 2 or len(mean) != len(names):
        raise FormatError(f"{file} names {len(names)} {groups} for weights {mean.shape}.\nRestore it, or train again.")
    return Weights(name, title, tuple(names), np.zeros(len(names), dtype=np.int64), mean)
