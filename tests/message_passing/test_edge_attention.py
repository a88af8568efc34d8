"""Attention over edges against PyG's layer, and the compiled loops against plain torch: values and gradients."""

import pytest
import torch

from gamlp.message_passing.edge_attention import Attend, EdgeAttention, attend_plainly
from gamlp.message_passing.pyg import layers
from gamlp.message_passing.views import looped, matrix_of, view_of


@pytest.fixture
def view(planted):
    return view_of(planted.features, looped(matrix_of(planted.adjacency)))


@pytest.mark.parametrize(("heads", "width"), [(1, 3), (4, 5)])
def test_it_is_pygs_layer(view, heads, width):
    torch.manual_seed(0)
    ours = EdgeAttention(view.features.shape[1], width, heads, dropout=0.5).eval()
    theirs = layers.GATConv(view.features.shape[1], width, heads, dropout=0.5, add_self_loops=False).eval()
    theirs.load_state_dict(ours.state_dict())
    found, expected = ours(view.features, view.adjacency), theirs(view.features, view.edges)
    torch.testing.assert_close(found, expected)
    gradient = torch.randn_like(found)
    found.backward(gradient)
    expected.backward(gradient)
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, dict(theirs.named_parameters())[name].grad, rtol=1e-4, atol=1e-5)
        assert float(other.grad.abs().sum()) > 0


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_compiled_loops_are_plain_torch_in_float64(view, share):
    torch.manual_seed(0)
    nodes, edges, heads = len(view.features), len(view.adjacency.values), 3
    given = [torch.randn(nodes, size, requires_grad=True) for size in (heads * 4, heads, heads)]
    exact = [each.detach().double().requires_grad_() for each in given]
    keep = (torch.rand(edges, heads) >= share).float() / (1 - share) if share else None
    found = Attend.apply(*given, view.adjacency, keep)
    expected = attend_plainly(*exact, view.adjacency, None if keep is None else keep.double())
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    gradient = torch.randn_like(found)
    found.backward(gradient)
    expected.backward(gradient.double())
    for mine, other in zip(given, exact, strict=True):
        torch.testing.assert_close(mine.grad.double(), other.grad, rtol=1e-4, atol=1e-5)


def test_weights_are_dropped_while_training_only(view):
    torch.manual_seed(0)
    layer = EdgeAttention(view.features.shape[1], 4, 2, dropout=0.5)
    kept = layer.kept(view.adjacency)
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert float((kept == 0).float().mean()) == pytest.approx(0.5, abs=0.1)
    assert layer.eval().kept(view.adjacency) is None
