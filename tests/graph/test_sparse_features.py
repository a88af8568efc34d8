"""Triples (node, feature, value) and scipy's .npz as features."""

import json

import numpy as np
import pytest
from scipy import sparse

from gamlp import GAMLPClassifier, read_graph
from gamlp.errors import FormatError, IdError, ShapeError
from gamlp.graph.build.import_directory import import_files
from gamlp.graph.encode import Columns, bag
from gamlp.graph.readers.tables import open_tables, read_tables
from gamlp.graph.store import load_graph

EDGES = "id_1,id_2\nann,bob\nbob,cat\ncat,dan\n"
NODES = "id,target\nann,x\nbob,y\ncat,x\n"
TRIPLES = "node_id,feature,value\nann,red,2\nbob,blue,1\nann,blue,0.5\nann,red,1\ndan,green,4\n"
DENSE = [[0.5, 0, 3], [1, 0, 0], [0, 0, 0], [0, 4, 0]]  # blue, green, red; a value given twice is added


@pytest.fixture
def put(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_triples(put, tmp_path):
    edges, nodes, triples = put("e.csv", EDGES), put("n.csv", NODES), put("x.csv", TRIPLES)
    graph = read_tables(edges, nodes, features=triples)
    assert graph.names.tolist() == ["ann", "bob", "cat", "dan"]  # dan has edges and features, and no row
    assert graph.features.tolist() == DENSE
    assert graph.feature_names == ("blue", "green", "red")
    assert "features = feature (3 sparse features)" in graph.notes[0]
    assert read_tables(edges, features=triples).features.tolist() == DENSE  # no node table at all
    import_files(tmp_path / "graph", open_tables(edges, nodes, features=triples), memory=2**24)
    assert load_graph(tmp_path / "graph").features.tolist() == DENSE


def test_features_without_values_by_number_and_unseen_ones(put):
    edges, nodes = put("e.csv", "a,b\n0,1\n"), put("n.csv", "id,label\n0,x\n1,y\n")
    graph = read_tables(edges, nodes, features=put("x.csv", "node,feature\n0,10\n0,9\n1,10\n"))
    assert graph.feature_names == ("9", "10")
    assert graph.features.tolist() == [[1, 1], [0, 1]]
    new = put("new.csv", "node,feature\n1,9\n1,77\n")
    other = read_tables(edges, nodes, features=new, encoding=graph.encoded.columns)
    assert other.features.tolist() == [[0, 0], [1, 0]]
    model = GAMLPClassifier("gamlp-jk", hops=1, hidden=4, epochs=1, valid_fraction=0).fit(graph)
    assert model.predict(read_tables(edges, nodes, features=new)).shape == (2,)


def test_a_node_that_is_not_there(put):
    with pytest.raises(IdError, match=r"x\.csv, line 2, names node 'eve'"):
        read_tables(put("e.csv", EDGES), put("n.csv", NODES), features=put("x.csv", "id,word\neve,red\n"))


def test_too_many_features_are_rotated(put, monkeypatch):
    monkeypatch.setattr(bag, "LARGEST", 100)
    monkeypatch.setattr(bag, "DIRECTIONS", 4)
    random = np.random.default_rng(0)
    left, right = random.random((60, 4)), random.random((4, 30))
    matrix = (left @ right).astype(np.float32)  # of rank 4: four directions lose nothing
    rows = "".join(f"{node},{word},{matrix[node, word]}\n" for node in range(60) for word in range(30))
    nodes = put("n.csv", "id,label\n" + "".join(f"{node},{node % 2}\n" for node in range(60)))
    graph = read_tables(put("e.csv", "a,b\n0,59\n"), nodes, features=put("x.csv", f"node,word,count\n{rows}"))
    assert graph.features.shape == (60, 4)
    np.testing.assert_allclose(graph.features @ graph.features.T, matrix @ matrix.T, rtol=1e-3)
    described, flat = graph.encoded.columns[""].data()
    assert Columns.from_data(json.loads(json.dumps(described)), flat).key == graph.encoded.columns[""].key


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_matrices_of_scipy(form, put, tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.coo_matrix(DENSE).asformat(form))
    edges, nodes = put("e.csv", EDGES), put("n.csv", f"{NODES}dan,\n")
    assert read_tables(edges, nodes, features=tmp_path / "x.npz").features.tolist() == DENSE
    assert read_graph([put("f.csv", "0,1\n2,3\n"), tmp_path / "x.npz"]).features.tolist() == DENSE


def test_matrices_that_cannot_be_read(put, tmp_path):
    edges, nodes = put("e.csv", EDGES), put("n.csv", f"{NODES}dan,\n")
    sparse.save_npz(tmp_path / "x.npz", sparse.dia_matrix(np.eye(4)))
    with pytest.raises(FormatError, match="Save it as csr"):
        read_tables(edges, nodes, features=tmp_path / "x.npz")
    matrix = sparse.csr_matrix(DENSE)
    matrix.indices = matrix.indices + 7
    sparse.save_npz(tmp_path / "x.npz", matrix)
    with pytest.raises(FormatError, match="do not make a matrix"):
        read_tables(edges, nodes, features=tmp_path / "x.npz")
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_matrix(DENSE[:3]))
    with pytest.raises(ShapeError, match="3 rows"):
        read_tables(edges, nodes, features=tmp_path / "x.npz")
