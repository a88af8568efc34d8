"""A graph from numpy and scipy arrays: what do neighbours add to features, and what is a new node?

python examples/arrays_of_your_own.py
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gamlp import GAMLPClassifier

NODES, CLASSES = 600, 3


def main() -> None:
    random = np.random.default_rng(0)
    labels = np.arange(NODES) % CLASSES
    features = labels[:, None] + random.normal(scale=3, size=(NODES, 8))  # they tell the class only faintly
    source = np.repeat(np.arange(NODES), 4)
    like = random.integers(0, NODES // CLASSES, len(source)) * CLASSES + labels[source]
    target = np.where(random.random(len(source)) < 0.7, like, random.integers(0, NODES, len(source)))
    adjacency = sparse.coo_array((np.ones(len(source)), (source, target)), shape=(NODES, NODES)).tocsr()

    known = np.where(random.random(NODES) < 0.2, labels, -1)  # a fifth is labelled
    hidden = known < 0
    for method in ("mlp", "sgc", "gamlp-jk"):
        model = GAMLPClassifier(method, hidden=32, epochs=60).fit(features, known, adjacency=adjacency)
        accuracy = (model.predict(features, adjacency=adjacency) == labels)[hidden].mean()
        print(f"{method:10} {100 * accuracy:.1f} % of the hidden labels")

    # A node that was not there: a graph with one more row; y says which labels are known in it.
    larger = sparse.block_array([[adjacency, None], [None, sparse.coo_array((1, 1))]]).tolil()
    larger[NODES, [1, 4, 7, 10]] = 1  # neighbours of class 1
    row = random.normal(loc=1, scale=3, size=(1, 8))
    predicted = model.predict(np.vstack([features, row]), adjacency=larger.tocsr(), y=np.append(known, -1))
    print(f"the new node is predicted to be of class {predicted[-1]}")


if __name__ == "__main__":
    main()
