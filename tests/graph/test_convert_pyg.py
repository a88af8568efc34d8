import warnings

import numpy as np
import pytest
import torch

from gamlp.errors import InputError, LabelError, ShapeError, SplitError
from gamlp.graph.readers.convert import from_pyg
from gamlp.graph.splits import Split
from gamlp.graph.store import load_graph, save_graph

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the library's own, while it is imported
    Data = pytest.importorskip("torch_geometric.data").Data

X = np.arange(6, dtype=np.float64).reshape(3, 2)


def dense(graph):
    adjacency = graph.adjacency
    matrix = np.zeros((graph.nodes, graph.nodes))
    rows = np.repeat(np.arange(graph.nodes), np.diff(adjacency.indptr))
    matrix[rows, adjacency.indices] = 1 if adjacency.weights is None else adjacency.weights
    return matrix


def pyg(**values):
    return Data(x=torch.tensor(X), edge_index=torch.tensor([[0, 1], [1, 2]]), **values)


def test_pyg_with_masks():
    masks = {
        f"{part}_mask": torch.tensor([at == number for at in (0, 0, 1)]) for part, number in (("train", 0), ("test", 1))
    }
    graph = from_pyg(pyg(y=torch.tensor([[3], [5], [-1]]), **masks))
    assert dense(graph).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.classes == ("3", "5")
    assert graph.labels.tolist() == [0, 1, -1]
    assert isinstance(graph.split, Split)
    assert [part.tolist() for part in (graph.split.train, graph.split.valid, graph.split.test)] == [[0, 1], [], [2]]


def test_pyg_with_several_splits_uses_one_a_seed(tmp_path):
    train = torch.tensor([[True, False], [True, True], [False, True]])
    graph = from_pyg(pyg(y=torch.tensor([0, 1, 0]), train_mask=train, val_mask=~train, test_mask=torch.zeros(3) > 0))
    save_graph(graph, tmp_path / "kept")
    for one in (graph, load_graph(tmp_path / "kept")):
        drawn = [one.split_for(seed) for seed in (0, 1, 2)]
        assert [split.train.tolist() for split in drawn] == [[0, 1], [1, 2], [0, 1]]
        assert [split.valid.tolist() for split in drawn] == [[2], [0], [2]]
        assert one.split.fingerprint == graph.split.fingerprint
    with pytest.raises(SplitError, match="node 0 for one"):
        from_pyg(pyg(y=torch.tensor([0, 1, 0]), train_mask=train, val_mask=train, test_mask=train))
    with pytest.raises(ShapeError, match=r"valid masks have the shape \(3, 3\)"):
        from_pyg(pyg(y=torch.tensor([0, 1, 0]), train_mask=train, val_mask=torch.zeros(3, 3), test_mask=train))


def test_pyg_weights_that_go_both_ways_are_not_doubled():
    both = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = Data(x=torch.tensor(X), edge_index=both, edge_weight=torch.tensor([0.5, 0.5, 2, 2]))
    assert dense(from_pyg(data)).tolist() == [[0, 0.5, 0], [0.5, 0, 2], [0, 2, 0]]


def test_what_pyg_can_get_wrong():
    with pytest.raises(InputError, match="has no x"):
        from_pyg(Data(edge_index=torch.tensor([[0], [1]])))
    with pytest.raises(ShapeError, match=r"edge_index has the shape \(1, 3\)"):
        from_pyg(Data(x=torch.tensor(X), edge_index=torch.tensor([[0, 1, 2]])))
    with pytest.raises(InputError, match="names node 3"):
        from_pyg(Data(x=torch.tensor(X), edge_index=torch.tensor([[0], [3]])))
    every = torch.ones(3, dtype=torch.bool)
    with pytest.raises(SplitError, match="3 nodes stand in more than one"):
        from_pyg(pyg(y=torch.tensor([0, 1, 0]), train_mask=every, val_mask=every, test_mask=every))
    with pytest.raises(ShapeError, match=r"train mask has the shape \(2,\)"):
        from_pyg(pyg(y=torch.tensor([0, 1, 0]), train_mask=every[:2]))
    with pytest.raises(LabelError, match=r"label of node 1 is 0\.5"):
        from_pyg(pyg(y=torch.tensor([0, 0.5, 1])))
