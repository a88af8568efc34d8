import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from gamlp.errors import FormatError, InputError, LabelError, NotFiniteError, ShapeError, SplitError
from gamlp.graph.graph import check_trainable
from gamlp.graph.readers.convert import from_networkx, from_scipy
from gamlp.graph.splits import Split, SplitRule

PATH = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])  # 0 → 1 → 2
BOTH = PATH + PATH.T
X = np.arange(6, dtype=np.float64).reshape(3, 2)


def dense(graph):
    adjacency = graph.adjacency
    values = np.ones(adjacency.entries) if adjacency.weights is None else adjacency.weights
    return sp.csr_array((values, adjacency.indices, adjacency.indptr), shape=(graph.nodes,) * 2).toarray()


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, sp.coo_array, sp.lil_matrix, sp.dok_array, np.asarray])
@pytest.mark.parametrize("kind", [bool, np.int8, np.float32, np.uint64])
def test_scipy_in_any_form(form, kind):
    graph = from_scipy(form(PATH.astype(kind)), X)
    assert np.array_equal(dense(graph), BOTH)
    assert graph.adjacency.weights is None
    assert graph.features.dtype == np.float32
    assert graph.features.tolist() == X.tolist()
    assert np.array_equal(dense(from_scipy(form(PATH.astype(kind)), X, symmetric=False)), PATH)


def test_values_other_than_one_are_weights():
    graph = from_scipy(sp.csr_array(PATH * 0.5), sp.csr_matrix(X), ["b", None, "a"], split=SplitRule(1, 1), name="mine")
    assert np.array_equal(dense(graph), BOTH * 0.5)
    assert graph.features.tolist() == X.tolist()
    assert graph.labels.tolist() == [1, -1, 0]
    assert graph.split == SplitRule(1, 1)
    assert graph.name == "mine"


def test_stored_zeros_and_loops_are_no_edges():
    matrix = sp.coo_array((np.array([0.0, 1, 1, 1]), ([0, 1, 1, 2], [1, 2, 2, 2])), shape=(3, 3))
    assert dense(from_scipy(matrix, X)).tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("adjacency", "features", "error", "message"),
    [
        (np.ones((2, 3)), X, ShapeError, r"shape \(2, 3\)"),
        (BOTH, X[:2], ShapeError, "2 rows, the adjacency 3"),
        (BOTH, X[:, 0], ShapeError, "1 dimensions"),
        (BOTH, X * np.nan, NotFiniteError, "Feature 0 of node 0 is nan"),
        (BOTH, X * 1e300, NotFiniteError, "is inf"),
        (BOTH, np.array([["a"], ["b"], ["c"]]), FormatError, "Features are of type <U1"),
        (BOTH * np.nan, X, NotFiniteError, "weights"),
        (BOTH * -1, X, NotFiniteError, "weights"),
        (BOTH * 1j, X, FormatError, "complex"),
        (np.empty((0, 0)), X[:0], InputError, "no nodes"),
    ],
)
def test_what_scipy_can_get_wrong(adjacency, features, error, message):
    with pytest.raises(error, match=message):
        from_scipy(adjacency, features)


def test_labels_must_fit():
    with pytest.raises(ShapeError, match="2 labels, the graph has 3 nodes"):
        from_scipy(BOTH, X, [0, 1])
    with pytest.raises(LabelError, match="All labelled nodes have the class '1'"):
        check_trainable(from_scipy(BOTH, X, [1, -1, 1]))


def people():
    graph = nx.DiGraph()
    graph.add_node("ann", x=[1.0, 2.0], age=30, kind="cat", part="train")
    graph.add_node("bob", x=[3.0, 4.0], age=40, kind="dog", part="train")
    graph.add_node("cat", x=[5.0, 6.0], age=50)
    graph.add_edge("bob", "ann", strength=2)
    graph.add_edge("cat", "bob")
    return graph


def test_networkx():
    graph = from_networkx(people(), features=["x", "age"], label="kind", split="part", weight="strength")
    assert graph.names is not None
    assert graph.names.tolist() == ["ann", "bob", "cat"]
    assert graph.features.tolist() == [[1, 2, 30], [3, 4, 40], [5, 6, 50]]
    assert dense(graph).tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert graph.classes == ("cat", "dog")
    assert graph.labels.tolist() == [0, 1, -1]
    assert isinstance(graph.split, Split)
    assert graph.split.train.tolist() == [0, 1]


def test_networkx_numbers_as_names():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 1.0, 1: 2.0, 2: 3.0}, "x")
    assert from_networkx(graph, features="x").names is None
    names = from_networkx(nx.relabel_nodes(graph, {0: 10, 1: 11, 2: 12}), features="x").names
    assert names is not None
    assert names.tolist() == [10, 11, 12]


@pytest.mark.parametrize(
    ("change", "features", "error", "message"),
    [
        ({}, "weight", ShapeError, "Node 'ann' has no attribute 'weight'"),
        ({}, "kind", FormatError, "Features of node 'ann' are no numbers"),
        ({"x": [1.0]}, "x", ShapeError, "Node 'bob' has 1 features, the first node 2"),
        ({"part": "trian"}, "x", SplitError, "node 'bob': the split is 'trian'"),
    ],
)
def test_what_networkx_can_get_wrong(change, features, error, message):
    graph = people()
    graph.nodes["bob"].update(change)
    with pytest.raises(error, match=message):
        from_networkx(graph, features=features, split="part")
