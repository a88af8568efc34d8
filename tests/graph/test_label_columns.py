"""Several labels a node, in every way that a table has them, and back from a graph directory."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from gamlp.errors import FormatError, LabelError, ShapeError
from gamlp.graph import read_graph
from gamlp.graph.build.assemble import encode_labels
from gamlp.graph.readers.source import GraphSource
from gamlp.graph.store import load_graph, save_graph

EDGES = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})
EXPECTED = [[1, 0], [1, 1], [0, -1], [-1, -1]]
ROWS = {"id": [0, 1, 2, 3], "x": [0.1, 0.2, 0.3, 0.4]}
COLUMNS = {**ROWS, "go_a": [1, 1, 0, None], "go_b": [0, 1, None, None]}


@pytest.mark.parametrize("named", ["go_a,go_b", "go_*", ["go_a", "go_b"]])
def test_several_columns(named):
    graph = read_graph([EDGES, pa.table(COLUMNS)], label=named)
    assert (graph.labels.tolist(), graph.classes) == (EXPECTED, ("go_a", "go_b"))
    assert graph.labels.dtype == np.int8
    assert graph.feature_names == ("x",)


def test_text_and_truth_values(tmp_path):
    csv.write_csv(EDGES, tmp_path / "edges.csv")
    (tmp_path / "nodes.csv").write_text("id,x,go_a,go_b\n0,1,true,0\n1,2,TRUE,1\n2,3,false,\n3,4,,\n")
    graph = read_graph([tmp_path / "edges.csv", tmp_path / "nodes.csv"], label="go_a,go_b")
    assert graph.labels.tolist() == EXPECTED
    (tmp_path / "nodes.csv").write_text("id,x,go_a,go_b\n0,1,1,0\n1,2,1,7\n2,3,0,\n3,4,,\n")
    with pytest.raises(LabelError, match=r"column 'go_b' has 7 in line 3"):
        read_graph([tmp_path / "edges.csv", tmp_path / "nodes.csv"], label="go_a,go_b")
    with pytest.raises(FormatError, match="has no column 'go_c'"):
        read_graph([tmp_path / "edges.csv", tmp_path / "nodes.csv"], label="go_a,go_c")


@pytest.mark.parametrize(
    ("values", "expected", "classes"),
    [
        (pa.array([[1, 0], [1, 1], [0, None], None]), EXPECTED, ("0", "1")),
        (pa.array([["a"], ["a", "b"], [], None]), [[1, 0], [1, 1], [0, 0], [-1, -1]], ("a", "b")),
        (pa.array(["a", "b; a", ";", None]), [[1, 0], [1, 1], [0, 0], [-1, -1]], ("a", "b")),
    ],
)
def test_lists_and_names_in_one_column(values, expected, classes, tmp_path):
    parquet.write_table(EDGES, tmp_path / "edges.parquet")
    parquet.write_table(pa.table({**ROWS, "label": values}), tmp_path / "nodes.parquet")
    graph = read_graph([tmp_path / "edges.parquet", tmp_path / "nodes.parquet"])
    assert (graph.labels.tolist(), graph.classes) == (expected, classes)


def test_two_dimensions_of_an_array(tmp_path):
    np.savez(tmp_path / "nodes.npz", features=np.ones((4, 1)), y=np.array([[1, 0], [1, 1], [0, np.nan], [np.nan] * 2]))
    np.save(tmp_path / "edges.npy", np.array([[0, 1], [1, 2]]))
    graph = read_graph([tmp_path / "edges.npy", tmp_path / "nodes.npz"])
    assert (graph.labels.tolist(), graph.classes) == (EXPECTED, ("0", "1"))
    with pytest.raises(LabelError, match=r"Label 1 of node 0 is 2.0"):
        encode_labels(np.array([[1.0, 2.0]]))
    with pytest.raises(ShapeError, match="Expected one class per node"):
        encode_labels(np.zeros((2, 2, 2)))


def test_a_graph_directory_keeps_them_and_an_import_makes_the_same(tmp_path):
    graph = read_graph([EDGES, pa.table(COLUMNS)], label="go_*", name="several")
    save_graph(graph, tmp_path / "graph")
    again = load_graph(tmp_path / "graph")
    assert again.fingerprints == graph.fingerprints
    from gamlp.graph.build.import_directory import import_files

    parquet.write_table(EDGES, tmp_path / "edges.parquet")
    parquet.write_table(pa.table(COLUMNS), tmp_path / "nodes.parquet")
    words = [str(tmp_path / "edges.parquet"), str(tmp_path / "nodes.parquet")]
    files = GraphSource.named(words, columns={"label": "go_*"}).open()
    told = import_files(tmp_path / "imported", files, memory=2**26)
    assert (told["classes"], told["labelled"]) == (2, 3)
    np.testing.assert_array_equal(load_graph(tmp_path / "imported").labels, graph.labels)


def test_a_split_is_drawn_from_the_nodes_that_have_a_label():
    graph = read_graph([EDGES, pa.table(COLUMNS)], label="go_*")
    split = graph.split_for(0)
    assert sorted(np.concatenate([split.train, split.valid, split.test]).tolist()) == [0, 1, 2]
