"""Heterogeneous graphs from PyG, from a folder of tables and from OGB's raw layout; one small graph in all three."""

import gzip
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gamlp.errors import FormatError, IdError, InputError, LabelError, MissingFileError
from gamlp.graph.readers.convert import from_pyg_hetero
from gamlp.graph.readers.datasets import read_graph
from gamlp.graph.readers.ogb import MAG_FILES as FILES
from gamlp.graph.readers.ogb import read_ogb_hetero
from gamlp.graph.readers.tables import read_hetero_tables

TOML = """
target = "book"
[nodes.book]
file = "books.parquet"
label = "genre"
[nodes.reader]
file = "readers.csv"
[nodes.shelf]
count = 2
[relations.borrowed]
file = "loans.csv"
source = "reader"
target = "book"
columns = ["who", "what"]
[relations.stands_on]
file = "places.csv"
source = "book"
target = "shelf"
"""


@pytest.fixture
def folder(tmp_path):
    books = {
        "id": ["x", "y", "z"],
        "genre": ["crime", "poems", "crime"],
        "split": ["train", "train", "valid"],
        "pages": [1.0, 2.0, 3.0],
    }
    parquet.write_table(pa.table(books), tmp_path / "books.parquet")
    (tmp_path / "readers.csv").write_text("id\n7\n9\n")
    (tmp_path / "loans.csv").write_text("when,who,what\n1,9,x\n2,7,z\n")
    (tmp_path / "places.csv").write_text("book,shelf\nx,1\nz,0\ny,1\n")
    (tmp_path / "hetero.toml").write_text(TOML)
    return tmp_path


def test_a_folder_of_tables(folder):
    graph = read_graph(folder)
    assert [(kind.name, kind.nodes, kind.described) for kind in graph.types] == [
        ("book", 3, True),
        ("reader", 2, False),
        ("shelf", 2, False),
    ]
    borrowed, stands_on = graph.relations
    assert borrowed.heads.tolist() == [4, 3]  # reader 9 is the second of them, after three books
    assert borrowed.tails.tolist() == [0, 2]
    assert stands_on.heads.tolist() == [0, 2, 1]
    assert stands_on.tails.tolist() == [6, 5, 6]
    assert graph.classes == ("crime", "poems")
    assert graph.split.train.tolist() == [0, 1]
    assert graph.names[:5].tolist() == ["x", "y", "z", "7", "9"]
    assert graph.name == folder.name
    assert graph.feature_names == ("book.pages",)


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ('source = "reader"', 'source = "raeder"', InputError, "no type 'raeder'.\nDid you mean 'reader'"),
        ("count = 2", "count = 0", FormatError, "nodes.shelf has neither"),
        ('label = "genre"', 'lable = "genre"', FormatError, "no key 'nodes.book.lable'.\nDid you mean 'label'"),
        ('"who", "what"', '"who", "which"', FormatError, "no column 'which'"),
        ('file = "loans.csv"', "", FormatError, "borrowed has no file"),
        ("target", "target = ", FormatError, "not valid TOML"),
    ],
)
def test_mistakes_in_the_folder_are_named(folder, old, new, error, words):
    (folder / "hetero.toml").write_text(TOML.replace(old, new, 1))
    with pytest.raises(error, match=words):
        read_hetero_tables(folder)


def test_ids_that_no_table_has_are_named_with_their_line(folder):
    (folder / "loans.csv").write_text("who,what\n9,x\n8,z\n")
    with pytest.raises(IdError, match="line 3, names node 8,"):
        read_hetero_tables(folder)


def test_relations_as_arrays(folder):
    np.save(folder / "beside.npy", np.array([[0, 1], [1, 1], [1, 0]]))
    more = '[relations.beside]\nfile = "beside.npy"\nsource = "shelf"\ntarget = "shelf"\n'
    (folder / "hetero.toml").write_text(TOML + more)
    beside = read_hetero_tables(folder).relation("beside")
    assert (beside.heads.tolist(), beside.tails.tolist()) == ([5, 6, 6], [6, 6, 5])


def test_pyg_hetero_data():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data_module = pytest.importorskip("torch_geometric.data")
        transforms = pytest.importorskip("torch_geometric.transforms")
    import torch

    data = data_module.HeteroData()
    data["author"].num_nodes = 2
    data["paper"].x = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    data["paper"].y = torch.tensor([0, 1, 0])
    data["paper"].train_mask = torch.tensor([True, True, False])
    data["paper"].val_mask = torch.tensor([False, False, True])
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [1, 2]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0], [1]])
    graph = from_pyg_hetero(data)
    assert [(kind.name, kind.nodes) for kind in graph.types] == [("paper", 3), ("author", 2)]
    assert graph.relation("writes").heads.tolist() == [3, 4]
    assert graph.split.valid.tolist() == [2]
    both_ways = from_pyg_hetero(transforms.ToUndirected()(data))
    assert [one.name for one in both_ways.relations] == ["writes", "cites"]  # rev_writes says nothing new
    assert both_ways.adjacency.entries == graph.adjacency.entries
    data["author"].y = torch.tensor([0, 1])
    with pytest.raises(LabelError, match="2 types of nodes have labels"):
        from_pyg_hetero(data)


def put(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def mag(tmp_path):
    put(tmp_path, "raw/num-node-dict.csv.gz", "author,field_of_study,institution,paper\n2,1,1,4\n")
    kinds = ("author,affiliated_with,institution", "author,writes,paper", "paper,cites,paper")
    put(tmp_path, "raw/triplet-type-list.csv.gz", "\n".join((*kinds, "paper,has_topic,field_of_study\n")))
    edges = {
        "author___affiliated_with___institution": "0,0\n1,0\n",
        "author___writes___paper": "0,0\n1,2\n",
        "paper___cites___paper": "0,1\n",
        "paper___has_topic___field_of_study": "2,0\n",
    }
    for name, text in edges.items():
        put(tmp_path, f"raw/relations/{name}/edge.csv.gz", text)
    put(tmp_path, "raw/node-feat/paper/node-feat.csv.gz", "1,2\n3,4\n5,6\n7,8\n")
    put(tmp_path, "raw/node-label/paper/node-label.csv.gz", "0\n1\n1\n0\n")
    for part, ids in {"train": "0\n2\n", "valid": "1\n", "test": "3\n"}.items():
        put(tmp_path, f"split/time/paper/{part}.csv.gz", ids)
    return tmp_path


def test_ogb_raw_folder(mag):
    graph = read_ogb_hetero(mag, "ogbn-mag")
    assert all((mag / file).is_file() for file in FILES)
    assert [(kind.name, kind.nodes) for kind in graph.types] == [
        ("paper", 4),
        ("author", 2),
        ("field_of_study", 1),
        ("institution", 1),
    ]
    assert graph.relation("affiliated_with").heads.tolist() == [4, 5]
    assert graph.relation("affiliated_with").tails.tolist() == [7, 7]
    assert graph.labels.tolist() == [0, 1, 1, 0, -1, -1, -1, -1]
    assert [ids.tolist() for ids in (graph.split.train, graph.split.valid, graph.split.test)] == [[0, 2], [1], [3]]


def test_a_damaged_ogb_folder_is_named(mag):
    put(mag, "raw/num-node-dict.csv.gz", "author,paper\n2\n")
    with pytest.raises(FormatError, match="num-node-dict"):
        read_ogb_hetero(mag, "ogbn-mag")
    (mag / "raw/num-node-dict.csv.gz").unlink()
    with pytest.raises(MissingFileError, match="num-node-dict"):
        read_ogb_hetero(mag, "ogbn-mag")
