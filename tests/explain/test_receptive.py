"""Breadth-first rings, by hand and against networkx."""

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose

from gamlp.explain.figures import receptive
from gamlp.explain.figures.receptive import receptive_fields, rings, share_within


def test_rings_of_a_path_that_ends_in_a_star(tiny_graph):
    found = [ring.tolist() for ring in rings(tiny_graph.adjacency, 2, hops=3)]
    assert found == [[2], [1, 3], [0, 4], [5, 6, 7, 8]]


def test_shares_by_hand(tiny_graph):
    assert_allclose(share_within(tiny_graph.adjacency, 4, hops=2), [0.1, 0.6, 0.7])
    assert_allclose(share_within(tiny_graph.adjacency, 9, hops=2), [0.1, 0.1, 0.1])  # an isolated node sees itself


@pytest.mark.parametrize("block", [1, 7, 2**22])
def test_rings_equal_networkx_distances(planted, monkeypatch, block):
    monkeypatch.setattr(receptive, "BLOCK", block)
    adjacency = planted.adjacency
    other = nx.Graph()
    other.add_nodes_from(range(planted.nodes))
    rows = np.repeat(np.arange(planted.nodes), np.diff(adjacency.indptr))
    other.add_edges_from(zip(rows.tolist(), adjacency.indices.tolist(), strict=True))
    distances = nx.single_source_shortest_path_length(other, 5)
    for hop, ring in enumerate(rings(adjacency, 5, hops=4)):
        assert ring.tolist() == sorted(node for node, distance in distances.items() if distance == hop)


def test_a_limit_ends_the_search_before_a_large_ring(tiny_graph):
    # ring 1 of node 3 is {2, 4} with 2 + 5 entries: more than 6 are not read
    assert [ring.tolist() for ring in rings(tiny_graph.adjacency, 3, hops=3, limit=6)] == [[3], [2, 4]]
    assert len(list(rings(tiny_graph.adjacency, 3, hops=3, limit=7))) == 4


def test_sparse_and_dense_regions(tiny_graph):
    sparse, dense = receptive_fields(tiny_graph.adjacency, hops=1)
    assert sparse.starts.tolist() == [0, 5, 6, 7, 8]  # degree 1; the isolated node is no start
    assert dense.starts.tolist() == [4]
    assert_allclose(dense.shares, [[0.1, 0.6]])
    assert_allclose(sparse.shares[:, 1], 0.2)
