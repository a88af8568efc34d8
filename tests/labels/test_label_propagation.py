from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.labels import label_propagation
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.normalize import Normalization

TRAIN = np.arange(0, 20, 2)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 0, 0, 1])


def edge_index(adjacency):
    targets = np.repeat(np.arange(adjacency.nodes), np.diff(adjacency.indptr))
    return torch.from_numpy(np.stack([adjacency.indices.astype(np.int64), targets]))


@pytest.mark.parametrize(("alpha", "steps"), [(0.9, 30), (0.5, 3)])
def test_equals_pytorch_geometric(random_graph, alpha, steps):
    pyg = pytest.importorskip("torch_geometric.nn")
    labels = torch.zeros(40, dtype=torch.long)
    labels[TRAIN] = torch.from_numpy(LABELS)
    scores = pyg.LabelPropagation(steps, alpha)(labels, edge_index(random_graph), mask=torch.from_numpy(TRAIN)).numpy()
    reached = scores.sum(axis=1) > 0
    result = label_propagation(LocalEngine(), random_graph, TRAIN, LABELS, classes=3, alpha=alpha, steps=steps)
    assert 35 < reached.sum() < 40
    assert_allclose(result[reached], scores[reached] / scores[reached].sum(axis=1, keepdims=True), atol=1e-6)


def test_one_step_on_a_path_by_hand(graph_of):
    path = graph_of(4, [(0, 1), (1, 2)])  # node 3 is isolated
    result = label_propagation(
        LocalEngine(),
        path,
        np.array([0, 2]),
        np.array([0, 1]),
        classes=2,
        alpha=0.75,
        steps=1,
        normalization=Normalization(r=0.0, self_loops=False),
    )
    # the ends keep (1−α) of their own, the middle gets α/2 of each end; nothing reaches node 3: the class shares
    assert_allclose(result, [[1, 0], [0.5, 0.5], [0, 1], [0.5, 0.5]], atol=1e-6)


def test_scores_are_clipped_at_one_by_hand(graph_of):
    star = graph_of(4, [(0, 1), (0, 2), (0, 3)])
    sender = Normalization(r=1.0, self_loops=False)  # each leaf gives all it has: the hub gets (2, 1)
    options = {"classes": 2, "normalization": sender, "alpha": 0.8, "steps": 1}
    result = label_propagation(LocalEngine(), star, np.array([1, 2, 3]), np.array([0, 0, 1]), **options)
    assert_allclose(result[0], [1 / 1.8, 0.8 / 1.8], rtol=1e-6)  # 0.8·(2, 1) = (1.6, 0.8), clipped to (1, 0.8)


def test_an_unreached_node_takes_the_class_shares(random_graph):
    result = label_propagation(LocalEngine(), random_graph, TRAIN, LABELS, classes=3)
    assert_allclose(result[39], [5 / 10, 3 / 10, 2 / 10], rtol=1e-6)
    assert_allclose(result.sum(axis=1), 1, rtol=1e-5)


def test_two_communities_are_told_apart(graph_of):
    cliques = [(a, b) for low in (0, 5) for a in range(low, low + 5) for b in range(a) if b >= low]
    graph = graph_of(10, [*cliques, (4, 5)])
    result = label_propagation(LocalEngine(), graph, np.array([0, 9]), np.array([0, 1]), classes=2)
    assert result.argmax(axis=1).tolist() == [0] * 5 + [1] * 5


def test_rows_are_those_of_the_whole(random_graph):
    rows = np.array([39, 3, 3, 0])
    result = label_propagation(LocalEngine(), random_graph, TRAIN, LABELS, classes=3, rows=rows)
    assert_array_equal(result, label_propagation(LocalEngine(), random_graph, TRAIN, LABELS, classes=3)[rows])


def test_without_a_label_all_classes_are_alike(random_graph):
    none = np.zeros(0, np.int64)
    assert_allclose(label_propagation(LocalEngine(), random_graph, none, none, classes=4), 0.25)


def test_a_memory_limit_changes_no_bit(random_graph):
    limited = label_propagation(LocalEngine(memory=2**23), random_graph, TRAIN, LABELS, classes=3)
    assert_array_equal(limited, label_propagation(LocalEngine(), random_graph, TRAIN, LABELS, classes=3))


def test_the_default_is_fifty_symmetric_steps_with_an_alpha_of_09(graph_of):
    pair = graph_of(2, [(0, 1)])
    # after t steps: y_0 = 0.1 Σ_{even k<t} 0.9ᵏ + 0.9ᵗ [t even], y_1 the same of the odd ones
    even, odd = (0.1 * sum(0.9**k for k in range(50) if k % 2 == parity) for parity in (0, 1))
    first = label_propagation(LocalEngine(), pair, np.array([0, 1]), np.array([0, 1]), classes=2)
    assert_allclose(first[0], np.array([even + 0.9**50, odd]) / (even + odd + 0.9**50), rtol=1e-5)
