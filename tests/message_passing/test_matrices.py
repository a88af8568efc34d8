"""Normalisations and scalings by hand, and against PyG."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gamlp.graph.graph import Adjacency
from gamlp.message_passing import views as matrices
from gamlp.message_passing.features import InputLinear, features_of, scaled
from gamlp.message_passing.networks import Convolution
from gamlp.message_passing.pyg import layers
from gamlp.message_passing.sparse import SparseMatrix, drop
from gamlp.message_passing.views import view_of
from gamlp.propagate.scaling import Scaling

PATH = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))  # 0 – 1 – 2


def test_symmetric_on_a_path_by_hand():
    cross = 1 / np.sqrt(6)  # degrees with self-loops 2, 3, 2
    expected = [[1 / 2, cross, 0], [cross, 1 / 3, cross], [0, cross, 1 / 2]]
    np.testing.assert_allclose(matrices.symmetric(PATH).toarray(), expected, rtol=1e-6)


def test_mean_enhanced_and_looped_on_a_path_by_hand():
    np.testing.assert_allclose(matrices.mean(PATH).toarray(), [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]])
    enhanced = [[0.55, 0.5, 0], [1 / 3, 1.1 / 3, 1 / 3], [0, 0.5, 0.55]]  # diagonal × 1.1
    np.testing.assert_allclose(matrices.enhanced(PATH).toarray(), enhanced, rtol=1e-6)
    np.testing.assert_array_equal(matrices.looped(PATH).toarray(), [[1, 1, 0], [1, 1, 1], [0, 1, 1]])


def test_an_isolated_node_gets_nothing_and_no_division_by_zero():
    alone = sp.csr_array((1, 1), dtype=np.float32)
    assert matrices.mean(alone).toarray() == 0
    assert matrices.symmetric(alone).toarray() == 1


def test_weights_and_existing_loops_are_kept():
    adjacency = Adjacency(np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([2, 3, 3], np.float32))
    np.testing.assert_array_equal(matrices.with_loops(matrices.matrix_of(adjacency)).toarray(), [[2, 3], [3, 1]])


def test_a_convolution_agrees_with_pygs_own_normalisation():
    features = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    view = view_of(features, matrices.symmetric(PATH))
    plain = view_of(features, PATH)
    ours, theirs = Convolution(4, 2), layers.GCNConv(4, 2)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(view.features, view.adjacency), theirs(plain.features, plain.edges))


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        ("none", [[3, 4], [0, 0], [0, 2]]),
        ("row", [[3 / 7, 4 / 7], [0, 0], [0, 1]]),
        ("unit", [[0.6, 0.8], [0, 0], [0, 1]]),
        ("standard", [[np.sqrt(2), np.sqrt(1.5)], [-np.sqrt(0.5), -np.sqrt(1.5)], [-np.sqrt(0.5), 0]]),
    ],
)
def test_scalings_by_hand(scaling, expected):
    features = np.array([[3, 4], [0, 0], [0, 2]], dtype=np.float32)
    np.testing.assert_allclose(scaled(features, Scaling.fit(scaling, features)), expected, rtol=1e-6)


def test_mostly_zero_features_stay_sparse_and_give_the_same_product_and_gradient():
    features = np.zeros((30, 20), dtype=np.float32)
    features[np.arange(30), np.arange(30) % 20] = np.arange(1, 31)
    sparse = scaled(features, Scaling())
    assert sp.issparse(sparse)
    read = InputLinear(20, 3, dropout=0.0)
    torch.nn.init.normal_(read.bias)
    read(features_of(sparse)).square().sum().backward()
    weight = read.weight.detach().clone().requires_grad_()
    (torch.from_numpy(features) @ weight + read.bias.detach()).square().sum().backward()
    torch.testing.assert_close(read.weight.grad, weight.grad)


def test_a_product_and_its_gradient_by_hand_where_rows_and_columns_differ():
    matrix = SparseMatrix.of(sp.csr_array(np.array([[0, 2, 0], [3, 0, 5]], np.float32)))
    dense = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], requires_grad=True)
    product = matrix @ dense
    torch.testing.assert_close(product, torch.tensor([[4.0, 40.0], [18.0, 180.0]]))
    product.backward(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    torch.testing.assert_close(dense.grad, torch.tensor([[0.0, 3.0], [2.0, 0.0], [0.0, 5.0]]))


def test_dropped_entries_are_the_same_in_the_product_and_in_its_gradient():
    torch.manual_seed(0)
    matrix = SparseMatrix.of(sp.csr_array(np.ones((30, 20), np.float32))).dropped(0.5, training=True)
    dense = torch.randn(20, 3, requires_grad=True)
    (matrix @ dense).backward(gradient := torch.randn(30, 3))
    torch.testing.assert_close(dense.grad, matrix.to_dense().T @ gradient)
    assert 0 < int((matrix.to_dense() == 0).sum()) < 600


def test_dropout_of_sparse_features_keeps_the_mean():
    features = scaled(np.eye(400, dtype=np.float32), Scaling())
    read = InputLinear(400, 1, dropout=0.75)
    torch.nn.init.ones_(read.weight)
    torch.manual_seed(0)
    kept = read(features_of(features)).detach()
    assert set(kept.unique().tolist()) == {0.0, 4.0}  # dropped, or scaled by 1 / 0.25
    assert 60 <= int((kept > 0).sum()) <= 140  # 100 expected, standard deviation 8.7


def test_dropped_elements_are_a_share_of_all_and_the_others_make_up_for_them():
    torch.manual_seed(0)
    ones = torch.ones(1001, 101, requires_grad=True)
    dropped = drop(ones, 0.25, training=True)
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float((dropped == 0).float().mean()) == pytest.approx(0.25, abs=0.007)  # 5 standard deviations
    dropped.sum().backward()
    torch.testing.assert_close(ones.grad, dropped.detach())  # what was dropped passes no gradient
    assert drop(ones, 0.25, training=False) is ones
