"""Which Debian packages are probably filed in the wrong section?

Train on the built-in graph, then list the test packages that were given another section with the greatest confidence.

    python examples/misfiled_packages.py --epochs 60
"""

from __future__ import annotations

import argparse

import numpy as np

from gamlp import GAMLPClassifier, read_graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--most", type=int, default=20, help="how many packages to list")
    options = parser.parse_args()

    graph = read_graph(["debian"])
    known = graph.labels.copy()
    known[graph.split.test] = -1  # −1: not known, to be predicted
    model = GAMLPClassifier("gamlp-recursive", recipe="debian", epochs=options.epochs)
    model.fit(graph.features, known, adjacency=graph.adjacency, valid=graph.split.valid)

    test = graph.split.test
    probabilities = model.probabilities_[test]
    given = model.classes_[probabilities.argmax(axis=1)]
    right = given == graph.labels[test]
    print(f"{100 * right.mean():.1f} % of {len(test):,} test packages are in the section that was predicted.")
    doubted = np.flatnonzero(~right)
    doubted = doubted[np.argsort(-probabilities[doubted].max(axis=1))][: options.most]
    for place in doubted:
        name, label = graph.names[test[place]], graph.classes[graph.labels[test[place]]]
        print(f"{name:40} is in {label:12} predicted {graph.classes[given[place]]}")


if __name__ == "__main__":
    main()
