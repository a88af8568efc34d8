"""Clusters, neighbour samples and walks: each an unbiased or exact picture of the graph."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gamlp.message_passing import sampled
from gamlp.message_passing import views as matrices
from gamlp.message_passing.sampled import clusters
from gamlp.methods import method_named


def options_for(name, options):
    return method_named(name).settings_from(options)


def ring_of_cliques(cliques=6, size=10):
    """Cliques joined in a ring by single edges, their nodes in shuffled order; returns the matrix and the clique."""
    order = np.random.default_rng(1).permutation(cliques * size)
    clique = np.arange(cliques * size) // size
    dense = (clique[:, None] == clique[None, :]) & ~np.eye(cliques * size, dtype=bool)
    for first in range(cliques):
        a, b = first * size, ((first + 1) % cliques) * size + 1
        dense[a, b] = dense[b, a] = True
    return sp.csr_array(dense[order][:, order].astype(np.float32)), clique[order]


def source(matrix, normalize, name, **options):
    features = np.arange(matrix.shape[0], dtype=np.float32)[:, None]  # each node's number: shows who is who in a batch
    return sampled.Source(features, matrix, normalize, options_for(name, options))


def test_clusters_cover_all_nodes_evenly_and_cut_few_edges():
    matrix, _ = ring_of_cliques()
    part = clusters(matrix, parts=6)
    sizes = np.bincount(part, minlength=6)
    assert sizes.sum() == 60 and sizes.min() >= 1 and sizes.max() <= 12  # 1.2 times the share of 10
    edges = matrix.tocoo()
    cut = (part[edges.row] != part[edges.col]).mean()
    assert cut < 0.4  # a random cut into six parts leaves 5/6 of the edges between parts


def test_clusters_of_a_graph_in_pieces_and_more_parts_than_nodes():
    assert sorted(clusters(sp.csr_array((3, 3), dtype=np.float32), parts=9)) == [0, 1, 2]


def test_an_epoch_of_clusters_visits_each_training_node_once_with_the_edges_inside():
    matrix, _ = ring_of_cliques()
    train = np.arange(0, 60, 3)
    sample = sampled.clustered(source(matrix, matrices.looped, "cluster-gcn", parts=6, parts_a_batch=2))
    batches = list(sample(np.random.default_rng(0), train))
    assert sorted(np.concatenate([batch.nodes for batch in batches])) == train.tolist()
    looped = matrices.looped(matrix).toarray()
    for batch in batches:
        nodes = batch.view.features[:, 0].numpy().astype(int)
        np.testing.assert_array_equal(nodes[batch.rows], batch.nodes)
        np.testing.assert_array_equal(batch.view.adjacency.to_dense().numpy(), looped[nodes][:, nodes])


def test_sampled_neighbours_are_an_unbiased_mean():
    matrix, _ = ring_of_cliques()
    mean = matrices.mean(matrix)
    random = np.random.default_rng(0)
    seeds = np.array([4, 17])
    total = np.zeros((2, 60))
    draws = 2000
    for _ in range(draws):
        nodes, drawn = sampled.around(mean, seeds, layers=1, fanout=3, random=random)
        assert drawn.nnz <= 6
        total[:, nodes] += drawn.toarray()[np.searchsorted(nodes, seeds)]
    np.testing.assert_allclose(total / draws, mean.toarray()[seeds], atol=0.03)  # 1/10 ± 5 standard errors of 0.004


def test_two_layers_of_neighbours_reach_two_hops_and_an_epoch_holds_each_seed_once():
    matrix, _ = ring_of_cliques()
    train = np.arange(10)
    options = {"full_batch_up_to": 0, "batch_size": 4, "fanout": 2}
    sample = sampled.neighbours(source(matrix, matrices.mean, "graphsage", **options))
    batches = list(sample(np.random.default_rng(0), train))
    assert [len(batch.nodes) for batch in batches] == [4, 4, 2]
    assert sorted(np.concatenate([batch.nodes for batch in batches])) == train.tolist()
    for batch in batches:
        np.testing.assert_array_equal(batch.view.features[batch.rows, 0].numpy(), batch.nodes)
        received = batch.view.adjacency.to_dense().sum(dim=1).numpy()
        np.testing.assert_allclose(received[batch.rows], 1, rtol=1e-5)  # of a mean with equal weights


def test_all_neighbours_are_drawn_where_there_are_no_more_and_never_one_twice():
    matrix, _ = ring_of_cliques()
    mean, random = matrices.mean(matrix), np.random.default_rng(0)
    _, drawn = sampled.around(mean, np.arange(60), layers=1, fanout=60, random=random)
    np.testing.assert_allclose(drawn.toarray(), mean.toarray(), rtol=1e-6)
    rows = np.repeat(np.arange(60), 200)
    entries, which, times = sampled.some_entries(mean.indptr, rows, 4, random)
    assert len(np.unique(which * mean.nnz + entries)) == len(entries) == 4 * len(rows)
    np.testing.assert_allclose(times, np.diff(mean.indptr)[rows[which]] / 4)
    share = np.bincount(entries, minlength=mean.nnz) / 200 / np.repeat(4 / np.diff(mean.indptr), np.diff(mean.indptr))
    np.testing.assert_allclose(share, 1, atol=0.5)  # every entry as often as any other; 5 standard errors of 0.09
    assert not len(sampled.some_entries(np.array([0, 0]), np.array([0]), 3, random)[0])


def test_dealt_parts_hold_every_node_once_with_the_edges_inside():
    matrix, _ = ring_of_cliques()
    train = np.arange(0, 60, 3)
    sample = sampled.dealt(source(matrix, matrices.looped, "deepergcn", parts=4))
    looped, random = matrices.looped(matrix).toarray(), np.random.default_rng(0)
    first, second = list(sample(random, train)), list(sample(random, train))
    for batches in (first, second):
        assert sorted(np.concatenate([batch.ids for batch in batches])) == list(range(60))
        assert sorted(np.concatenate([batch.nodes for batch in batches])) == train.tolist()
        for batch in batches:
            dense = batch.view.adjacency.to_dense().numpy()
            np.testing.assert_array_equal(dense, looped[batch.ids][:, batch.ids])
    assert any(not np.array_equal(one.ids, other.ids) for one, other in zip(first, second, strict=True))


def test_walks_give_unbiased_losses_and_messages():
    """The mean over subgraphs of the weighted loss terms and messages is that of the whole graph."""
    matrix, _ = ring_of_cliques(cliques=3, size=4)
    train = np.array([0, 3, 7, 8])
    options = {"walk_roots": 2, "walk_length": 2, "coverage": 1500, "batches": 1500}
    sample = sampled.walks(source(matrix, matrices.mean, "graphsaint", **options))
    terms, messages, present = np.zeros(12), np.zeros((12, 12)), np.zeros(12)
    for batch in sample(np.random.default_rng(0), train):
        nodes = batch.view.features[:, 0].numpy().astype(int)
        terms[batch.nodes] += batch.weights
        messages[np.ix_(nodes, nodes)] += batch.view.adjacency.to_dense().numpy()
        present[nodes] += 1
    np.testing.assert_allclose(
        terms[train] / 1500, 1 / 4, atol=0.025
    )  # four training nodes, each a quarter of the loss
    np.testing.assert_allclose(messages / present[:, None], matrices.mean(matrix).toarray(), atol=0.08)


def test_walks_stay_where_there_is_no_way_on():
    lonely = sp.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=np.float32))
    options = options_for("graphsaint", {"walk_roots": 5})
    nodes = sampled.walked(lonely, np.array([2]), options=options, random=np.random.default_rng(0))
    assert nodes.tolist() == [2]


@pytest.mark.parametrize("limit", [60, 59])
def test_a_small_graph_is_taken_whole(limit):
    matrix, _ = ring_of_cliques()
    sample = sampled.neighbours(source(matrix, matrices.mean, "graphsage", full_batch_up_to=limit))
    batch = next(sample(np.random.default_rng(0), np.array([0, 1])))
    assert (len(batch.view.given) == 60) == (limit == 60)
