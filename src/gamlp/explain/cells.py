"""Tables whose cells are coloured by their numbers: attention, and the confusion of classes.

A cell carries its number as text, and how strongly it is coloured as a share; the page's style sheet mixes the colour,
for light and dark alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gamlp.explain.attention import Weights
from gamlp.explain.mistakes import Confusion


@dataclass(frozen=True)
class Cell:
    """One number of a coloured table."""

    text: str
    share: float  # in [0, 1]
    own: bool = False  # whether it is framed

    @property
    def strong(self) -> bool:
        """Whether the colour needs light ink."""
        return self.share > 0.65


def heat_table(weights: Weights) -> dict[str, Any]:
    """Return a heat map as rows of cells; the colours begin at the tenth below the smallest relative weight."""
    relative = weights.relative
    low = min(0.9, float(np.floor(10 * relative.min()) / 10))
    rows = [
        {
            "name": name,
            "nodes": int(nodes),
            "cells": [
                Cell(f"{value:.3f}", (shade - low) / (1 - low)) for value, shade in zip(mean, shades, strict=True)
            ],
        }
        for name, nodes, mean, shades in zip(weights.groups, weights.nodes, weights.mean, relative, strict=True)
    ]
    return {"title": weights.title, "rows": rows, "hops": range(relative.shape[1])}


def confusion_table(found: Confusion) -> dict[str, Any]:
    """Return the confusion matrix as rows of cells, coloured by their share of the row; right ones are framed."""
    rows = []
    for place, (name, counts, total) in enumerate(zip(found.classes, found.counts, found.totals, strict=True)):
        cells = [
            Cell(f"{number:,}" if number else "", float(number) / max(int(total), 1), own=place == column)
            for column, number in enumerate(counts)
        ]
        rows.append({"name": name, "nodes": int(total), "cells": cells})
    return {"classes": found.classes, "rows": rows}
