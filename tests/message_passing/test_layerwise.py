"""FastGCN, VR-GCN and AS-GCN: what a sampled layer receives is Â H in the mean, and what evaluation reads is exact."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gamlp.message_passing import features
from gamlp.message_passing.adaptive_sampling import ASGCN, Adapted, Seeds
from gamlp.message_passing.layerwise import VRGCN, Controlled, FastGCN, controlled, drawn_columns, important, some_of
from gamlp.message_passing.views import matrix_of, symmetric
from gamlp.methods import method_named
from gamlp.propagate.scaling import Scaling

KINDS = {"fastgcn": FastGCN, "vr-gcn": VRGCN, "as-gcn": ASGCN}
SEEDS = np.array([7, 3, 50])
DRAWS = 600


def source_of(name, graph, **options):
    settings = method_named(name).settings_from({"hidden": 4, **options})
    return KINDS[name].source(graph, settings, Scaling("none"), "cpu")


def network_of(name, source):
    torch.manual_seed(0)
    return KINDS[name](source.view, 2, source.options)


def dense(graph):
    return symmetric(matrix_of(graph.adjacency)).toarray().astype(np.float64)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_whole_graph_against_float64(name, layers, planted):
    source = source_of(name, planted, layers=layers)
    network = network_of(name, source).eval()
    matrix = dense(planted)
    weights = [(network.entry.weight, network.entry.bias), *((each.weight.T, each.bias) for each in network.linears)]
    hidden = planted.features.astype(np.float64)
    for number, (weight, bias) in enumerate(weights):
        received = matrix @ (np.maximum(hidden, 0) if number else hidden)
        hidden = received @ weight.detach().double().numpy() + bias.detach().double().numpy()
    np.testing.assert_allclose(network(source.view).detach().numpy(), hidden, atol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_sparse_features_give_what_dense_ones_give(name, planted, monkeypatch):
    source = source_of(name, planted)
    full = network_of(name, source).eval()(source.view)
    monkeypatch.setattr(features, "SPARSE_BELOW", 2.0)
    monkeypatch.setattr("gamlp.message_passing.layerwise.SPARSE_BELOW", 2.0)
    source = source_of(name, planted)
    assert sp.issparse(source.features)
    torch.testing.assert_close(network_of(name, source).eval()(source.view), full)


def test_fastgcn_draws_by_the_squares_of_columns_and_is_unbiased(planted):
    source, matrix = source_of("fastgcn", planted, layer_nodes=200), dense(planted)
    hidden = np.random.default_rng(1).normal(size=(120, 3)).astype(np.float32)
    sampler, random = important(source), np.random.default_rng(0)
    total, count = {int(node): np.zeros(3) for node in SEEDS}, np.zeros(120)
    numbered = {row.tobytes(): node for node, row in enumerate(source.features)}
    for _ in range(DRAWS):
        (batch,) = sampler(random, SEEDS)
        drawn = np.array([numbered[row.tobytes()] for row in batch.view.features.numpy()])
        count[drawn] += 1
        received = batch.view.receive(0, torch.from_numpy(hidden[drawn])).numpy()
        for node, row in zip(batch.nodes.tolist(), received, strict=True):
            total[node] += row
    for node in SEEDS.tolist():
        np.testing.assert_allclose(total[node] / DRAWS, matrix[node] @ hidden, atol=0.05)
    chances = (matrix**2).sum(axis=0) / (matrix**2).sum()
    np.testing.assert_allclose(count / DRAWS, 1 - (1 - chances) ** 200, atol=0.1)  # at least once in 200 draws


def test_drawn_columns_by_hand():
    """Of chances ¼ and ¾ every draw of the first counts four times, of the second four thirds: by the number drawn."""
    matrix = sp.csr_array(np.array([[3.0, 6.0]], dtype=np.float32))
    drawn, times, scaled = drawn_columns(matrix, np.array([0.25, 0.75]), 8, np.random.default_rng(0))
    assert drawn.tolist() == [0, 1] and times.sum() == 8
    np.testing.assert_allclose(scaled.toarray()[0], [3 * 4 * times[0] / 8, 6 * 4 / 3 * times[1] / 8], rtol=1e-6)


def test_some_entries_of_rows_are_unbiased():
    rows = sp.csr_array(np.array([[1, 2, 0, 5], [0, 3, 0, 0]], dtype=np.float32))
    random = np.random.default_rng(0)
    drawn = [some_of(rows, 2, random) for _ in range(DRAWS)]
    assert all(each.nnz <= 3 for each in drawn)
    np.testing.assert_allclose(sum(drawn).toarray() / DRAWS, rows.toarray(), atol=0.2)  # five standard errors of 5


def test_vr_gcn_is_unbiased_whatever_it_remembers(planted):
    source, matrix = source_of("vr-gcn", planted, fanout=8), dense(planted)
    random = np.random.default_rng(0)
    hidden, past = (torch.from_numpy(random.normal(size=(120, 4)).astype(np.float32)) for _ in range(2))
    sampler, total = controlled(source), {int(node): np.zeros(4) for node in SEEDS}
    for _ in range(DRAWS):
        (batch,) = sampler(random, SEEDS)
        view = batch.view
        assert view.adjacencies[0].values.numel() <= 8 * len(SEEDS)  # eight neighbours each
        view.history[0].copy_(past)
        received = view.receive(0, hidden[view.nodes[0]]).numpy()
        assert torch.equal(view.history[0][view.nodes[0]], hidden[view.nodes[0]])  # it remembers these, and no others
        others = np.setdiff1d(np.arange(120), view.nodes[0].numpy())
        assert torch.equal(view.history[0][others], past[others])
        for node, row in zip(batch.nodes.tolist(), received, strict=True):
            total[node] += row
    for node in SEEDS.tolist():
        np.testing.assert_allclose(total[node] / DRAWS, matrix[node] @ hidden.numpy(), atol=0.1)


def test_vr_gcn_is_exact_once_its_memory_is(planted):
    source, matrix = source_of("vr-gcn", planted, layers=3), dense(planted)
    (batch,) = controlled(source)(np.random.default_rng(0), SEEDS)
    assert isinstance(batch.view, Controlled)
    hidden = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    batch.view.history[1].copy_(hidden)
    received = batch.view.receive(1, hidden[batch.view.nodes[1]])
    np.testing.assert_allclose(received.numpy(), (matrix @ hidden.numpy())[batch.nodes], atol=1e-5)


class TestAdaptiveSampling:
    @pytest.fixture
    def source(self, planted):
        return source_of("as-gcn", planted, layer_nodes=64)

    @pytest.fixture
    def network(self, source):
        return network_of("as-gcn", source).eval()

    def chances(self, network, planted):
        """q(u) among the neighbours of the seeds, from its equation."""
        matrix = dense(planted)
        received = matrix[SEEDS].sum(axis=0)
        weight, bias = (each.detach().double().numpy() for each in (network.score.weight, network.score.bias))
        weights = received * (1 + np.maximum((matrix @ planted.features) @ weight + bias, 0)[:, 0])
        return weights / weights.sum()

    def test_draws_by_what_it_has_learned_and_is_unbiased(self, network, source, planted):
        random, matrix = np.random.default_rng(0), dense(planted)
        expected = torch.relu(network.entry(source.view.features)).detach().numpy()
        total, count = np.zeros((3, 4)), np.zeros(120)
        numbered = {row.tobytes(): node for node, row in enumerate(source.features)}
        for _ in range(DRAWS):
            view = network.drawn(Seeds(source, SEEDS, random))
            drawn = np.array([numbered[row.tobytes()] for row in view.features.numpy()])
            count[drawn] += view.times.numpy()
            total += view.receive(0, torch.from_numpy(expected[drawn])).detach().numpy()
        np.testing.assert_allclose(count / DRAWS / 64, self.chances(network, planted), atol=0.005)
        np.testing.assert_allclose(total / DRAWS, matrix[SEEDS] @ expected, atol=0.02)

    def test_the_variance_by_a_loop_over_draws(self, network, source, planted):
        view = network.drawn(Seeds(source, SEEDS, np.random.default_rng(0)))
        assert isinstance(view, Adapted)
        hidden = torch.rand(len(view.times), 4, generator=torch.Generator().manual_seed(0))
        estimate = view.receive(0, hidden).detach().numpy()
        weights = view.adjacencies[0].to_dense().numpy()
        for row in range(3):
            terms = []  # 64 draws, each alone an estimate
            for node, times in enumerate(view.times.int().tolist()):
                terms += times * [64 * weights[row, node] / times * hidden[node].numpy()]
            np.testing.assert_allclose(np.mean(terms, axis=0), estimate[row], rtol=1e-4)
            found = view.variance[row].item()
            assert found == pytest.approx(np.var(terms, axis=0).mean() / 64, rel=1e-3)

    def test_the_sampler_learns_from_the_true_variance(self, network, source, planted):
        """In the mean over draws, the derivative is that of Σ_v 1/t Σ_u Â(v, u)² |h(u)|² / q(u)."""
        random, matrix = np.random.default_rng(0), dense(planted)
        numbered = {row.tobytes(): node for node, row in enumerate(source.features)}
        hidden = torch.rand(120, 4, generator=torch.Generator().manual_seed(0))
        for _ in range(DRAWS):
            view = network.drawn(Seeds(source, SEEDS, random))
            view.receive(0, hidden[[numbered[row.tobytes()] for row in view.features.numpy()]])
            (view.variance.sum() / DRAWS).backward()
        found = network.score.weight.grad.clone()
        network.zero_grad()
        rows = torch.from_numpy(matrix[SEEDS]).float()
        weights = rows.sum(dim=0) * (1 + network.score(source.view.features)[:, 0].relu())
        chances, near = weights / weights.sum(), rows.sum(dim=0) > 0
        ((rows**2 @ torch.eye(120)[:, near] * hidden[near].square().mean(dim=1) / chances[near]).sum() / 64).backward()
        expected = network.score.weight.grad
        assert (found - expected).norm() < 0.2 * expected.norm()

    def test_the_loss_has_the_variance_in_it(self, network, source):
        network.train()(Seeds(source, SEEDS, np.random.default_rng(0)))
        assert network.penalty.shape == (3,) and (network.penalty > -1e-6).all()
        network.penalty.sum().backward()
        assert network.score.weight.grad.abs().sum() > 0
