from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gamlp.graph.graph import Adjacency, Graph
from gamlp.graph.splits import Split


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other take longer over 120 nodes than one alone."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def planted() -> Graph:
    """Two communities of 60 nodes, 20 times as many edges within as between, and features that tell little."""
    random = np.random.default_rng(3)
    nodes = 120
    labels = np.arange(nodes) % 2
    chance = np.where(labels[:, None] == labels[None, :], 0.2, 0.01)
    upper = np.triu(random.random((nodes, nodes)) < chance, k=1)
    matrix = sp.csr_array((upper | upper.T).astype(np.float32))
    features = (random.normal(size=(nodes, 8)) + 0.4 * (2 * labels - 1)[:, None]).astype(np.float32)
    split = Split(train=np.arange(0, 16), valid=np.arange(16, 40), test=np.arange(40, nodes))
    adjacency = Adjacency(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
    return Graph(adjacency, features, labels.astype(np.int64), classes=("even", "odd"), split=split).check()


@pytest.fixture(scope="session")
def hidden(planted: Graph) -> Graph:
    """The same graph as a method gets it: test labels unknown."""
    labels = planted.labels.copy()
    labels[planted.split.test] = -1
    return planted.with_labels(labels)
