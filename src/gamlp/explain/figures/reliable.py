"""The reliable set: how many nodes each stage takes the class of from the stage before."""

from __future__ import annotations

import numpy as np

from gamlp.explain.figures.cells import Cells, bar_chart
from gamlp.explain.figures.chart import Chart
from gamlp.explain.finished_run import FinishedRun


def charts(run: FinishedRun) -> list[Chart]:
    """Draw the counts of the stages, where a stage has reliable nodes."""
    counts = [int(stage["reliable"]) for stage in run.stages]
    if not any(counts):
        return []
    cells = Cells(
        style="bars",
        rows=[f"stage {stage}" for stage in range(1, len(counts) + 1)],
        nodes=[0] * len(counts),
        columns=["reliable nodes"],
        texts=[[f"{count:,}"] for count in counts],
        shares=np.array(counts)[:, None] / run.graph.nodes,
    )
    note = "Reliable nodes are those whose class the stage before was sure of; the bar is their share of all nodes."
    header, rows = ("stage", "reliable nodes"), list(enumerate(counts, start=1))
    return [bar_chart("reliable-set", "The reliable set", cells, xlabel="share of all nodes",
                      header=header, rows=rows, note=note)]  # fmt: skip
