"""Do well connected nodes look less far? Train on a graph in two files, then read what the attention learned.

python examples/how_far_nodes_look.py edges.csv nodes.csv --out look
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gamlp import read_graph
from gamlp.explain.figures.attention import by_degree, weights_chart
from gamlp.explain.figures.chart import write_charts
from gamlp.explain.finished_run import open_run
from gamlp.explain.report import write_report
from gamlp.runs.run import train_run
from gamlp.runs.spec import RunSpec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="EDGES NODES, or the name of a data set")
    parser.add_argument("--out", type=Path, default=Path("look"))
    parser.add_argument("--epochs", type=int, default=100)
    options = parser.parse_args()

    graph = read_graph(options.files)
    spec = RunSpec.of(graph, "gamlp-recursive", overrides={"epochs": options.epochs})
    result = train_run(graph, spec, folder=options.out)
    print(f"validation accuracy {100 * result['valid_accuracy']:.1f} %")

    run = open_run(graph, options.out)
    weights = by_degree(run.needed_attention(), run.degrees)
    for group, nodes, mean in zip(weights.groups, weights.nodes, weights.mean, strict=True):
        print(f"{group:>12} neighbours, {nodes:6,} nodes: " + "  ".join(f"{weight:.2f}" for weight in mean))
    write_charts([weights_chart(weights)], options.out)
    print(f"the page is {write_report(graph, options.out)}")


if __name__ == "__main__":
    main()
