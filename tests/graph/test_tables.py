import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamlp.errors import (
    FormatError,
    IdError,
    InputError,
    LabelError,
    MissingFileError,
    NotFiniteError,
    SettingsError,
    ShapeError,
    SplitError,
)
from gamlp.graph.build.import_directory import import_files
from gamlp.graph.graph import Graph, check_trainable
from gamlp.graph.readers.datasets import read_graph
from gamlp.graph.readers.tables import open_tables, read_tables
from gamlp.graph.splits import Split, SplitRule
from gamlp.graph.store import load_graph

NODES = "id,label,split,height,width\nann,cat,train,1,0.5\nbob,dog,train,2,1.5\ncat,,valid,3,2.5\ndan,dog,test,4,3.5\n"
EDGES = "source,target\nann,bob\nbob,cat\ncat,bob\nann,ann\n"


@pytest.fixture
def put(tmp_path):
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def dense(graph: Graph) -> np.ndarray:
    """The adjacency as a matrix, by walking over its rows."""
    matrix = np.zeros((graph.nodes, graph.nodes))
    for node in range(graph.nodes):
        for at in range(graph.adjacency.indptr[node], graph.adjacency.indptr[node + 1]):
            matrix[node, graph.adjacency.indices[at]] += (
                1 if graph.adjacency.weights is None else graph.adjacency.weights[at]
            )
    return matrix


PATH = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]  # ann – bob – cat, and dan alone


def test_csv_with_words_as_ids(put):
    graph = read_tables(put("e.csv", EDGES), put("n.csv", NODES.replace("cat,,valid", "cat,cat,valid")))
    assert dense(graph).tolist() == PATH
    assert graph.names is not None
    assert graph.names.tolist() == ["ann", "bob", "cat", "dan"]
    assert graph.features.dtype == np.float32
    assert graph.features.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5], [4, 3.5]]
    assert graph.classes == ("cat", "dog")
    assert graph.labels.tolist() == [0, 1, 0, 1]
    assert isinstance(graph.split, Split)
    assert [part.tolist() for part in (graph.split.train, graph.split.valid, graph.split.test)] == [[0, 1], [2], [3]]
    assert graph.name == "e"


def test_parquet_gzip_and_tsv_say_the_same_as_csv(put, tmp_path):
    nodes = pa.table({"id": ["a", "b", "c"], "x": [1, 2, 3], "label": pa.array([1, 0, None], pa.int64())})
    pq.write_table(nodes, tmp_path / "n.parquet")
    pq.write_table(pa.table({"src": ["a", "c"], "dst": ["b", "b"]}), tmp_path / "e.parquet")
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"from,to\na,b\nc,b\n"))
    tsv = put("e.tsv", "one\ttwo\na\tb\nc\tb\n")
    for edges in (tmp_path / "e.parquet", tmp_path / "e.csv.gz", tsv):
        graph = read_tables(edges, tmp_path / "n.parquet")
        assert dense(graph).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
        assert graph.labels.tolist() == [1, 0, -1]
        assert graph.name == "e"


def test_list_column_is_the_features(tmp_path, put):
    for kind in (pa.list_(pa.float64()), pa.list_(pa.float64(), 2)):
        table = pa.table({"embedding": pa.array([[1, 2], [3, 4]], kind), "label": ["x", "y"]})
        pq.write_table(table, tmp_path / "n.parquet")
        graph = read_tables(put("e.csv", "source,target\n0,1\n"), tmp_path / "n.parquet")
        assert graph.features.tolist() == [[1, 2], [3, 4]]


def test_lists_of_different_lengths(tmp_path, put):
    pq.write_table(pa.table({"embedding": [[1.0, 2.0], [3.0]]}), tmp_path / "n.parquet")
    with pytest.raises(ShapeError, match=r"row 1: column 'embedding' has a list of 1 values, others have 2"):
        read_tables(put("e.csv", "0,1\n"), tmp_path / "n.parquet")


def test_arrays_alone(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3, dtype=np.float32))
    for edges in ([[0, 1], [1, 2], [0, 2]], [[0, 1, 0], [1, 2, 2]]):
        np.save(tmp_path / "e.npy", np.array(edges))
        graph = read_tables(tmp_path / "e.npy", features=tmp_path / "x.npy")
        assert dense(graph).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
        assert graph.classes == ()
        assert graph.labels.tolist() == [-1, -1, -1]


def test_large_features_stay_on_disk(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3, dtype=np.float32))
    np.save(tmp_path / "e.npy", np.array([[0, 1]]))
    features = read_tables(tmp_path / "e.npy", features=tmp_path / "x.npy").features
    assert not features.flags.owndata
    assert not features.flags.writeable  # a view of the mapped file, not a copy


def test_npz_of_edges_and_nodes(tmp_path):
    np.savez(tmp_path / "e.npz", source=np.array([7, 9]), target=np.array([9, 8]), weight=np.array([0.5, 2.0]))
    mask = np.array([True, True, False])
    np.savez(
        tmp_path / "n.npz",
        ids=np.array([7, 8, 9]),
        features=np.eye(3),
        labels=np.array([5, 3, -1]),
        train=mask,
        test=np.array([2]),
    )
    graph = read_tables(tmp_path / "e.npz", tmp_path / "n.npz")
    assert dense(graph).tolist() == [[0, 0, 0.5], [0, 0, 2], [0.5, 2, 0]]
    assert graph.classes == ("3", "5")
    assert graph.labels.tolist() == [1, 0, -1]
    assert isinstance(graph.split, Split)
    assert graph.split.train.tolist() == [0, 1]
    assert graph.split.test.tolist() == [2]
    np.savez(tmp_path / "i.npz", edge_index=np.array([[7, 7], [9, 8]]))
    assert dense(read_tables(tmp_path / "i.npz", tmp_path / "n.npz")).tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]


def test_directed_and_weighted(put):
    nodes = put("n.csv", "x\n1\n2\n3\n")
    graph = read_tables(put("e.csv", "source,target,weight\n0,1,2\n1,2,0.25\n"), nodes, directed=True)
    assert dense(graph).tolist() == [[0, 2, 0], [0, 0, 0.25], [0, 0, 0]]


def test_columns_by_other_names(put):
    nodes = put("n.csv", "code,sort,part,x,name\n5,a,train,1,2\n6,b,train,2,2\n")
    edges = put("e.csv", "w,begin,end\n3,5,6\n")
    options = {"source": "begin", "target": "end", "weight": "w", "id": "code", "label": "sort", "split": "part"}
    graph = read_tables(edges, nodes, **options)
    assert dense(graph).tolist() == [[0, 3], [3, 0]]
    assert graph.features.tolist() == [[1, 2], [2, 2]]
    with pytest.raises(FormatError, match=r"no column 'begn'.\nDid you mean 'begin'"):
        read_tables(edges, nodes, **{**options, "source": "begn"})


def test_files_without_header_and_ids(put):
    graph = read_tables(put("e.csv", "0,1\n1,2\n"), put("n.csv", "1.5,2\n3,4\n5,6\n"))
    assert dense(graph).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.features.tolist() == [[1.5, 2], [3, 4], [5, 6]]
    assert isinstance(graph.split, SplitRule)


def test_leading_zeros_of_ids_survive(put):
    graph = read_tables(put("e.csv", "a,b\n007,7\n"), put("n.csv", "id,x\n007,1\n7,2\n08,3\n"))
    assert graph.names is not None
    assert graph.names.tolist() == ["007", "7", "08"]
    assert dense(graph).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_numbers_in_one_file_words_in_the_other(put, tmp_path):
    pq.write_table(pa.table({"id": ["10", "20"], "x": [1.0, 2.0]}), tmp_path / "n.parquet")
    pq.write_table(pa.table({"source": [10], "target": [20]}), tmp_path / "e.parquet")
    assert dense(read_tables(tmp_path / "e.parquet", tmp_path / "n.parquet")).tolist() == [[0, 1], [1, 0]]


def test_nodes_without_edges_are_a_graph(put):
    graph = read_tables(put("e.csv", "source,target\n"), put("n.csv", "x\n1\n2\n"))
    assert dense(graph).tolist() == [[0, 0], [0, 0]]


def test_no_nodes_are_not(put):
    with pytest.raises(InputError, match="no nodes"):
        read_tables(put("e.csv", "source,target\n"), put("n.csv", "id,x\n"))


def test_unknown_id_is_named_with_its_line(put):
    nodes = put("n.csv", NODES.replace("cat,,valid", "cat,cat,valid"))
    with pytest.raises(IdError, match=r"line 4, names node 'eve', which is not among the 4 nodes"):
        read_tables(put("e.csv", "source,target\nann,bob\nbob,cat\ncat,eve\n"), nodes)
    with pytest.raises(IdError, match=r"line 3, names node 99,"):
        read_tables(put("e.csv", "source,target\n1,2\n99,1\n"), put("i.csv", "id,x\n1,1\n2,1\n"))
    with pytest.raises(IdError, match=r"line 3, names node 'bob',"):
        read_tables(put("e.csv", "source,target\n1,2\nbob,1\n"), put("i.csv", "id,x\n1,1\n2,1\n"))


@pytest.mark.parametrize("bad", [2, -1])
def test_row_ids_out_of_range(put, tmp_path, bad):
    nodes = put("n.csv", "x\n1\n2\n")
    with pytest.raises(IdError, match=rf"line 3, names node {bad}, .*\n.*0 to 1"):
        read_tables(put("e.csv", f"source,target\n0,1\n0,{bad}\n"), nodes)
    np.save(tmp_path / "e.npy", np.array([[0, 1], [bad, 0]]))
    with pytest.raises(IdError, match=f"row 1, names node {bad}"):
        read_tables(tmp_path / "e.npy", nodes)


def test_doubled_and_empty_ids(put, tmp_path):
    edges = put("e.csv", "source,target\n")
    with pytest.raises(IdError, match="id 'a' stands in 2 rows"):
        read_tables(edges, put("n.csv", "id,x\na,1\nb,2\na,3\n"))
    pq.write_table(pa.table({"id": ["a", None], "x": [1, 2]}), tmp_path / "n.parquet")
    with pytest.raises(IdError, match="row 1 is empty"):
        read_tables(edges, tmp_path / "n.parquet")


@pytest.mark.parametrize("value", ["nan", "inf", "", "1e300"])
def test_what_is_no_finite_number_is_a_gap(put, value):
    graph = read_tables(put("e.csv", "0,1\n"), put("n.csv", f"x,y\n1,1\n{value},1\n4,2\n"))
    assert graph.features.tolist() == [[1, 0, 1], [2.5, 1, 1], [4, 0, 2]]  # the median of 1 and 4
    assert graph.feature_names == ("x", "x is empty", "y")


def test_features_file_must_be_finite_and_fit(put, tmp_path):
    edges, nodes = put("e.csv", "0,1\n"), put("n.csv", "label,note\na,hello\nb,you\n")
    np.save(tmp_path / "x.npy", np.array([[1.0], [np.nan]]))
    with pytest.raises(NotFiniteError, match="Feature 0 of node 1 is nan"):
        read_tables(edges, nodes, features=tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.ones((3, 1)))
    with pytest.raises(ShapeError, match=r"3 rows, .* 2 nodes"):
        read_tables(edges, nodes, features=tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.ones((2, 1)))
    assert read_tables(edges, nodes, features=tmp_path / "x.npy").classes == ("a", "b")  # `note` is left alone


def test_npz_labels_must_fit(tmp_path, put):
    np.savez(tmp_path / "n.npz", features=np.eye(3), labels=np.array([0, 1]))
    with pytest.raises(ShapeError, match="2 labels, the graph has 3 nodes"):
        read_tables(put("e.csv", "0,1\n"), tmp_path / "n.npz")


def test_splits_that_cannot_be_used(put, tmp_path):
    edges = put("e.csv", "0,1\n")
    with pytest.raises(SplitError, match="no training node"):
        check_trainable(read_tables(edges, put("n.csv", "x,label,split\n1,a,test\n2,b,valid\n")))
    with pytest.raises(SplitError, match="line 3: the split is 'trian'"):
        read_tables(edges, put("n.csv", "x,label,split\n1,a,train\n2,b,trian\n"))
    np.savez(
        tmp_path / "n.npz",
        features=np.eye(3),
        labels=np.array([0, 1, 1]),
        train=np.array([0, 1]),
        valid=np.array([1]),
        test=np.array([2]),
    )
    with pytest.raises(SplitError, match="1 nodes stand in more than one"):
        read_tables(edges, tmp_path / "n.npz")


@pytest.mark.parametrize(
    ("nodes", "error", "words"),
    [
        ("x,label\n1,a\n2,\n3,a\n", LabelError, "All labelled nodes have the class 'a'"),
        ("x,label\n1,\n2,\n", SplitError, "No node has a label"),
        ("x\n1\n2\n", SplitError, "No node has a label"),
        ("x,label,split\n1,a,train\n2,b,train\n3,,train\n", SplitError, "1 nodes of the train set have no label"),
    ],
)
def test_what_cannot_be_trained_on_can_be_read(put, nodes, error, words):
    graph = read_tables(put("e.csv", "0,1\n"), put("n.csv", nodes))
    assert dense(graph)[:2, :2].tolist() == [[0, 1], [1, 0]]
    with pytest.raises(error, match=words):
        check_trainable(graph)


BIG = 2**53


@pytest.mark.parametrize(
    ("written", "labels", "classes"),
    [
        (["01", "1", "01"], [0, 1, 0], ("01", "1")),
        (["0x2", "2", ""], [0, 1, -1], ("0x2", "2")),
        (["10:00", "9:00", "-1"], [0, 1, -1], ("10:00", "9:00")),
        (["10", "9", ""], [1, 0, -1], ("9", "10")),
        (["1.0", "2.0", ""], [0, 1, -1], ("1.0", "2.0")),
        (["true", "True", ""], [1, 0, -1], ("True", "true")),
        ([str(BIG), str(BIG + 1), ""], [0, 1, -1], (str(BIG), str(BIG + 1))),
    ],
)
def test_labels_of_text_are_as_they_are_written(put, tmp_path, written, labels, classes):
    edges, nodes = put("e.csv", "0,1\n"), put("n.csv", "".join(["x,label\n", *(f"1,{word}\n" for word in written)]))
    import_files(tmp_path / "g", open_tables(edges, nodes), memory=2**20)
    for graph in (read_tables(edges, nodes), load_graph(tmp_path / "g")):
        assert graph.labels.tolist() == labels
        assert graph.classes == classes


@pytest.mark.parametrize(
    ("column", "labels", "classes"),
    [
        (pa.array([BIG, BIG + 1, None]), [0, 1, -1], (str(BIG), str(BIG + 1))),
        (pa.array([7, 250, None], pa.uint8()), [0, 1, -1], ("7", "250")),
        (pa.array(["01", "1", None]), [0, 1, -1], ("01", "1")),
        (pa.array([1.0, 0.0, None]), [1, 0, -1], ("0", "1")),
        (pa.array([True, False, None]), [1, 0, -1], ("0", "1")),
        (pa.array(["b", "a", None]).dictionary_encode(), [1, 0, -1], ("a", "b")),
    ],
)
def test_labels_of_parquet_keep_their_type(put, tmp_path, column, labels, classes):
    pq.write_table(pa.table({"x": [1.0, 2, 3], "label": column}), tmp_path / "n.parquet")
    graph = read_tables(put("e.csv", "0,1\n"), tmp_path / "n.parquet")
    assert graph.labels.tolist() == labels
    assert graph.classes == classes


def test_true_and_false_are_features(put):
    graph = read_tables(put("e.csv", "0,1\n"), put("n.csv", "x,old\n1,True\n2,False\n"))
    assert graph.features.tolist() == [[1, 1], [2, 0]]


def test_a_pipe_is_refused_and_not_waited_for(put, tmp_path):
    edges, nodes, pipe = put("e.csv", "0,1\n"), put("n.csv", "x\n1\n2\n"), tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(MissingFileError, match="not a regular file"):
        read_tables(edges, pipe)
    with pytest.raises(MissingFileError, match="not a regular file"):
        read_tables(pipe, nodes)
    with pytest.raises(MissingFileError):
        read_tables(edges, nodes, features=tmp_path / "pipe.npy")
    with pytest.raises(FormatError, match="not a regular file"):
        read_graph(pipe)


def test_columns_are_known_by_their_names(put, tmp_path):
    edges = put("e.csv", "0,1\n")
    graph = read_tables(edges, put("n.csv", "b,label,a\n1,x,2\n3,y,4\n"))
    assert graph.feature_names == ("b", "a")
    other = graph.with_columns(("a", "b"))
    assert other.features.tolist() == [[2, 1], [4, 3]]
    assert other.feature_names == ("a", "b")
    assert graph.with_columns(("b", "a")) is graph
    assert graph.with_columns(None) is graph
    with pytest.raises(SettingsError, match="no feature column 'c', which is one of the 3"):
        graph.with_columns(("a", "b", "c"))
    with pytest.raises(SettingsError, match="a feature column 'b' that is not one of the 1"):
        graph.with_columns(("a",))
    pq.write_table(pa.table({"x": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1]}), tmp_path / "n.parquet")
    assert read_tables(edges, tmp_path / "n.parquet").feature_names == ("x[0]", "x[1]", "y")
    np.save(tmp_path / "x.npy", np.eye(2))
    assert read_tables(edges, features=tmp_path / "x.npy").feature_names is None
    assert read_tables(edges, put("n.csv", "1,2\n3,4\n")).feature_names is None


def test_missing_and_foreign_files(put, tmp_path):
    nodes = put("n.csv", "x\n1\n2\n")
    with pytest.raises(MissingFileError, match=r"nowhere\.parquet is not there"):
        read_tables(tmp_path / "nowhere.parquet", nodes)
    with pytest.raises(FormatError, match=r"suffix '\.xlsx'"):
        read_tables(put("e.xlsx", ""), nodes)
    with pytest.raises(FormatError, match="columns one"):
        read_tables(put("e.csv", "one\n1\n"), nodes)
    with pytest.raises(FormatError, match="two columns 'x'"):
        read_tables(put("e.csv", "0,1\n"), put("n.csv", "x,x\n1,2\n"))


@pytest.mark.parametrize("name", ["e.parquet", "e.npy", "e.npz", "e.csv.gz"])
def test_truncated_files_are_named(tmp_path, put, name):
    path, numbers = tmp_path / name, np.arange(2000).reshape(-1, 2) % 2
    if name == "e.parquet":
        pq.write_table(pa.table({"source": numbers[:, 0], "target": numbers[:, 1]}), path)
    elif name == "e.npy":
        np.save(path, numbers)
    elif name == "e.npz":
        np.savez(path, source=numbers[:, 0], target=numbers[:, 1])
    else:
        lines = "\n".join(f"{a},{b}" for a, b in np.random.default_rng(0).integers(0, 2, (2000, 2)))
        path.write_bytes(gzip.compress(lines.encode()))
    nodes = put("n.csv", "x\n1\n2\n")
    assert read_tables(path, nodes).adjacency.entries == 2
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(FormatError, match=name):
        read_tables(path, nodes)


@pytest.mark.parametrize("name", ["e.parquet", "e.npy", "e.npz", "e.csv.gz"])
def test_rubbish_is_named(tmp_path, put, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04 this is not what the name says " * 20)
    with pytest.raises(FormatError, match=name):
        read_tables(tmp_path / name, put("n.csv", "x\n1\n2\n"))


def test_words_that_are_not_utf8(tmp_path, put):
    pq.write_table(pa.table({"id": ["ann", "bob"], "x": [1, 2]}), tmp_path / "n.parquet", compression="none")
    raw = (tmp_path / "n.parquet").read_bytes()
    (tmp_path / "n.parquet").write_bytes(raw.replace(b"bob", b"b\xffb"))
    with pytest.raises(FormatError, match=r"n\.parquet.*UTF8"):
        read_tables(put("e.csv", "source,target\nann,ann\n"), tmp_path / "n.parquet")


@pytest.mark.parametrize("shape", [(2**40, 2), (2**62, 2**62), (-1, 2)])
def test_gigantic_shape_in_a_header(tmp_path, put, shape):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    (tmp_path / "e.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64))
    with pytest.raises(FormatError, match=r"e\.npy"):
        read_tables(tmp_path / "e.npy", put("n.csv", "x\n1\n2\n"))


def test_pickled_arrays_are_refused(tmp_path, put):
    np.save(tmp_path / "e.npy", np.array([[0, 1], [None, 2]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "e.npz", source=np.array([0, None], dtype=object), target=np.array([1, 1]))
    for name in ("e.npy", "e.npz"):
        with pytest.raises(FormatError, match=name):
            read_tables(tmp_path / name, put("n.csv", "x\n1\n2\n"))


def test_negative_weights(put):
    with pytest.raises(NotFiniteError, match="weights"):
        read_tables(put("e.csv", "source,target,weight\n0,1,-1\n"), put("n.csv", "x\n1\n2\n"))


SEVEN = "source,target\n70,71\n71,72\n"  # ids that are no row numbers


@pytest.mark.parametrize("name", ["id", "node_id", "nodeId", "Node", "user_id", "whatever"])
def test_the_column_that_edges_name_nodes_by_is_the_id(put, name):
    nodes = put("n.csv", f"x,{name},label\n5,72,a\n6,71,b\n7,70,b\n")
    graph = read_tables(put("e.csv", SEVEN), nodes)
    assert graph.names is not None
    assert graph.names.tolist() == [72, 71, 70]
    assert graph.feature_names == ("x",)
    assert dense(graph).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_of_two_ids_the_one_that_edges_know(put):
    """As the Twitch graphs are published: `id` is another service's, `new_id` that of the edges."""
    nodes = put("n.csv", "id,views,new_id\n7100,9,1\n7200,8,0\n7300,7,2\n")
    graph = read_tables(put("e.csv", "from,to\n0,1\n1,2\n"), nodes)
    assert graph.names is not None
    assert graph.names.tolist() == [1, 0, 2]
    assert "id = new_id" in graph.notes[0]
    assert "'id' has another whole number in every row" in graph.notes[1]
    assert graph.feature_names == ("id", "views")
    assert read_tables(put("e.csv", "from,to\n0,1\n1,2\n"), nodes, ignore=["id"]).feature_names == ("views",)


def test_row_numbers_stay_ids_where_no_column_is_one(put):
    graph = read_tables(put("e.csv", "0,1\n1,2\n"), put("n.csv", "age,other_id\n5,900\n6,900\n7,901\n"))
    assert graph.names is None
    assert "id = the row number" in graph.notes[0]
    assert graph.feature_names == ("age", "other_id")


@pytest.mark.parametrize("name", ["label", "target", "class", "ml_target", "topicLabel"])
def test_usual_names_of_the_label_and_what_was_taken_for_what(put, name):
    nodes = put("n.csv", f"id,a,b,c,d,{name}\n0,1,1,1,1,x\n1,2,2,2,3,y\n")
    graph = read_tables(put("links.csv", "id_2,id_1,weight\n0,1,2\n"), nodes)
    assert graph.classes == ("x", "y")
    assert graph.notes == (
        "links.csv: source = id_1, target = id_2, weight = weight; n.csv: id = id, "
        f"label = {name}, split = drawn anew for each seed, features = a, …, d (4 × number).",
    )


def test_columns_of_the_edges_that_are_not_read_are_named(put):
    graph = read_tables(put("links.csv", "from,to,since,value\n0,1,2019,5\n1,2,2020,6\n"))
    assert graph.notes[0].startswith("links.csv: source = from, target = to, not read: since, value")


def test_a_column_to_be_ignored_that_is_not_there(put):
    with pytest.raises(FormatError, match=r"--ignore weigth: no such column in .*n\.csv\.\nDid you mean 'width'"):
        read_tables(put("e.csv", EDGES), put("n.csv", NODES), ignore=["weigth"])


def test_edges_alone_are_a_graph_of_the_nodes_they_name(put, tmp_path):
    graph = read_tables(put("e.csv", "id_1,id_2\n9,10\n10,2\n"))
    assert graph.features.shape == (3, 0)
    assert graph.names is not None
    assert graph.names.tolist() == [2, 9, 10]
    assert dense(graph).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    words = read_tables(put("w.csv", "from,to\nx,10\n10,02\n"))
    assert words.names is not None
    assert words.names.tolist() == ["02", "10", "x"]
    import_files(tmp_path / "g", open_tables(tmp_path / "w.csv"), memory=2**20)
    kept = load_graph(tmp_path / "g")
    assert kept.fingerprints == words.fingerprints


def test_labels_alone_and_nodes_that_only_edges_name(put, tmp_path):
    edges, target = put("e.csv", "id_1,id_2\n7,8\n8,5\n9,7\n"), put("t.csv", "id,target\n8,a\n7,b\n")
    graph = read_tables(edges, target)
    assert graph.names is not None
    assert graph.names.tolist() == [8, 7, 5, 9]
    assert graph.labels.tolist() == [0, 1, -1, -1]
    assert dense(graph).tolist() == [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert "features = those of the structure, and 2 nodes more that only edges name" in graph.notes[0]
    import_files(tmp_path / "g", open_tables(edges, target), memory=2**20)
    assert load_graph(tmp_path / "g").fingerprints == graph.fingerprints
    words = read_tables(edges, put("w.csv", "id,split,target\n8,train,1\nz,,0\n"))
    assert words.names is not None
    assert words.names.tolist() == ["8", "z", "5", "7", "9"]
    assert words.labels.tolist() == [1, 0, -1, -1, -1]
    with pytest.raises(IdError, match="names node 5"):  # features that are missing are an error
        read_tables(edges, put("f.csv", "id,target,x\n8,a,1\n7,b,2\n9,b,3\n"))
