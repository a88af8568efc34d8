"""Sets for the nodes of a prediction, with all that must be said beside them: by how many labels, and why perhaps not.

A promise is "kept apart" where the calibration nodes chose nothing else, "about" where they also chose the epoch, and
"none" where the nodes are not like the validation nodes, or those of another graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.storage.files import Array
from gamlp.trust.shift import warning_of
from gamlp.trust.trust import needed_trust

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.pipeline import Fitted
    from gamlp.train.prediction import Prediction


@dataclass(frozen=True, eq=False)
class Promise:
    """The sets of R rows and what is to be said of them."""

    sets: Array  # (R, C) bool
    facts: dict[str, Any]
    warnings: list[str]

    @property
    def words(self) -> str:
        """What was promised and by what, in a sentence."""
        asked, found = f"{100 * self.facts['coverage']:g} %", self.facts
        about = ", about (they also chose the epoch; --set calibration_share=0.5 keeps half of them apart)"
        return (
            f"Sets of {found['mean_size']:.2f} classes contain the truth in {asked} of the cases by the word of "
            f"{found['calibration_nodes']:,} validation nodes{'' if found['apart'] else about}; "
            f"{100 * found['one_class']:.1f} % have one class, {100 * found['empty']:.1f} % none."
        )


def promised_sets(fitted: Fitted, said: Prediction, graph: Graph, coverage: float, *, own: bool) -> Promise:
    """Return the sets of a prediction of `graph`, which is the graph of training where `own`.

    Rows without edges are independent of each other, and so as good as nodes of the same graph.
    """
    trust = needed_trust(fitted.trust)
    shift, like = (trust.own_shift, trust.own_likeness) if own else trust.compare(said, graph, said.rows)
    sets = fitted.sets(said, graph, coverage, like=like)
    told = [warning_of(shift, "test nodes" if own else "nodes of this graph")]
    if not own and graph.adjacency.entries:
        told.append("The coverage is promised for nodes of the graph of training; this is another one.")
    warnings = [sentence for sentence in told if sentence is not None]
    sizes, promised = sets.sum(axis=1), trust.conformal
    facts = {
        "coverage": coverage,
        "promise": "none" if warnings else "kept apart" if promised.apart else "about",
        "calibration_nodes": len(promised.scores),
        "apart": promised.apart,
        "weighted": like is not None,
        "diffusion": promised.diffusion,
        "mean_size": float(np.mean(sizes)),
        "one_class": float(np.mean(sizes == 1)),
        "empty": float(np.mean(sizes == 0)),
        "shift": shift,
    }
    return Promise(sets, facts, warnings)
