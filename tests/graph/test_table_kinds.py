"""The same graph, whatever holds its tables: files of every kind, databases, data frames, PyG's objects."""

import gzip
import sqlite3
import warnings
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch

from gamlp import GAMLPClassifier, read_graph
from gamlp.errors import FormatError, InputError, MissingFileError, SettingsError
from gamlp.graph.readers.source import GraphSource

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the library's own, while it is imported
    geometric = pytest.importorskip("torch_geometric.data")

N = 60
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3)).astype(np.float32)
Y = np.arange(N) % 3
ENDS = RANDOM.integers(0, N, size=(2, 200))
SET = np.array(["train", "train", "valid", "test"])[np.arange(N) // 3 % 4]
EDGES = pa.table({"source": ENDS[0], "target": ENDS[1]})
NODES = pa.table({"label": Y, "split": SET, **{f"x{at}": X[:, at] for at in range(3)}})
TABLES = {"edges": EDGES, "nodes": NODES}


def text(table, path, delimiter=","):
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    lines = [delimiter.join(table.column_names), *(delimiter.join(map(str, row)) for row in rows)]
    content = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def texts(folder, suffix, delimiter):
    return [text(table, folder / f"{name}{suffix}", delimiter) for name, table in TABLES.items()]


def parquet_files(folder):
    for name, table in TABLES.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return [folder / f"{name}.parquet" for name in TABLES]


def parquet_folders(folder):
    for name, table in TABLES.items():
        (folder / name).mkdir()
        for at in range(3):  # the last one empty, a stranger between
            pq.write_table(table.slice(at * 50, 50 if at < 2 else None), folder / name / f"part-{at}.parquet")
        (folder / name / "_SUCCESS").write_text("")
    return [folder / name for name in TABLES]


def one_folder(folder):
    parquet_files(folder)
    return folder


def sqlite_file(folder):
    path = folder / "mine.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, table in TABLES.items():
            columns = ", ".join(table.column_names)
            connection.execute(f"CREATE TABLE {name} ({columns})")
            rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            connection.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * table.num_columns)})", rows)
    return path


def duckdb_file(folder):
    path = folder / "mine.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name, table in TABLES.items():
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            connection.unregister("given")
    return path


def relations(_):
    connection = duckdb.connect()
    for name, table in TABLES.items():
        connection.register(name, table)
    return [connection.table(name) for name in TABLES]


def pyg(_):
    masks = {f"{part}_mask": torch.tensor(word == SET) for part, word in (("train", "train"), ("val", "valid"))}
    masks["test_mask"] = torch.tensor(SET == "test")
    return geometric.Data(x=torch.tensor(X), y=torch.tensor(Y), edge_index=torch.tensor(ENDS), **masks)


KINDS = {
    "csv": lambda folder: texts(folder, ".csv", ","),
    "csv with semicolons": lambda folder: texts(folder, ".csv", ";"),
    "tsv": lambda folder: texts(folder, ".tsv", "\t"),
    "txt with tabs": lambda folder: texts(folder, ".txt", "\t"),
    "txt with blanks": lambda folder: texts(folder, ".txt", " "),
    "csv.gz": lambda folder: texts(folder, ".csv.gz", ";"),
    "gz": lambda folder: texts(folder, ".gz", ","),
    "parquet": parquet_files,
    "folders of parquet": parquet_folders,
    "a folder of both": one_folder,
    "sqlite": sqlite_file,
    "tables of sqlite": lambda folder: [*map(sqlite_file(folder).joinpath, TABLES)],
    "duckdb": duckdb_file,
    "pandas": lambda _: [table.to_pandas() for table in TABLES.values()],
    "polars": lambda _: [polars.from_arrow(table) for table in TABLES.values()],
    "relations of duckdb": relations,
    "arrow": lambda _: list(TABLES.values()),
    "edge_index and pandas": lambda _: [torch.tensor(ENDS), NODES.to_pandas()],
    "pyg": pyg,
}


@pytest.fixture(scope="module")
def expected():
    return read_graph([EDGES, NODES])


def predictions(graph):
    model = GAMLPClassifier("gamlp-jk", hops=2, hidden=8, epochs=3, random_state=1)
    return model.fit(graph).predict_proba(graph)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_graph_to_the_bit(kind, tmp_path, expected):
    given = KINDS[kind](tmp_path)
    graph = read_graph(given)
    np.testing.assert_array_equal(graph.features, X)
    np.testing.assert_array_equal(graph.labels, Y)
    for name in ("adjacency", "features", "labels", "classes", "split"):
        assert graph.fingerprints[name] == expected.fingerprints[name], name
    if kind != "pyg":  # which has no names of columns
        assert graph.fingerprints == expected.fingerprints


def test_the_same_predictions_to_the_bit(tmp_path, expected):
    first = predictions(expected)
    for kind in ("csv", "parquet", "pandas", "polars", "relations of duckdb", "pyg"):
        (tmp_path / kind).mkdir()
        np.testing.assert_array_equal(predictions(read_graph(KINDS[kind](tmp_path / kind))), first)


def test_fit_takes_a_data_as_it_is(expected):
    data = pyg(None)
    model = GAMLPClassifier("gamlp-jk", hops=2, hidden=8, epochs=3, random_state=1).fit(data)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.predict_proba(data), predictions(expected))
    right = model.predict(data)[SET == "test"] == Y[SET == "test"]
    assert model.score(data) == pytest.approx(right.mean())


def test_fit_takes_hetero_data():
    data = geometric.HeteroData()
    data["paper"].x, data["paper"].y = torch.tensor(X), torch.tensor(Y)
    data["paper"].train_mask = torch.tensor(SET == "train")
    data["paper"].val_mask, data["paper"].test_mask = torch.tensor(SET == "valid"), torch.tensor(SET == "test")
    data["author"].x = torch.ones(10, 3)
    data["paper", "cites", "paper"].edge_index = torch.tensor(ENDS)
    data["author", "writes", "paper"].edge_index = torch.tensor([[at % 10 for at in range(N)], list(range(N))])
    model = GAMLPClassifier("nars-gamlp-jk", settings={"subsets": 2}, hops=1, hidden=8, epochs=2).fit(data)
    assert model.predict_proba(data).shape == (N, 3)
    assert 0 <= model.score(data) <= 1


@pytest.mark.parametrize("kind", ["pandas", "polars", "relations of duckdb", "arrow"])
def test_fit_takes_tables_one_by_one(kind):
    edges, nodes = KINDS[kind](None)
    if kind == "relations of duckdb":
        features, labels = nodes.select("x0, x1, x2"), nodes.select("label")
    else:
        features, labels = (
            nodes[["x0", "x1", "x2"]] if kind != "arrow" else nodes.select(["x0", "x1", "x2"]),
            nodes["label"],
        )
    model = GAMLPClassifier("gamlp-jk", hops=2, hidden=8, epochs=3, random_state=1)
    said = model.fit(features, labels, adjacency=edges).predict_proba(features, adjacency=edges)
    again = GAMLPClassifier("gamlp-jk", hops=2, hidden=8, epochs=3, random_state=1).fit(X, Y, adjacency=ENDS)
    np.testing.assert_array_equal(said, again.predict_proba(X, adjacency=torch.tensor(ENDS)))


def test_a_square_table_with_names_is_edges():
    edges = pandas.DataFrame({"source": [0, 1, 2], "target": [1, 2, 0], "weight": [1.0, 1.0, 1.0]})
    from gamlp.classifier_inputs import as_adjacency

    found = as_adjacency(edges, X[:3])
    assert found.indptr.tolist() == [0, 2, 4, 6]
    dense = pandas.DataFrame([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert as_adjacency(dense, X[:3]).indptr.tolist() == [0, 1, 2, 2]


def test_words_categories_and_a_filtered_frame_are_ids_and_labels():
    nodes = pandas.DataFrame(
        {"id": [f"n{at}" for at in range(N)], "label": pandas.Categorical(Y.astype(str)), "x": X[:, 0]}
    )
    nodes.loc[5, "label"] = None
    edges = pandas.DataFrame({"source": [f"n{at}" for at in ENDS[0]], "target": [f"n{at}" for at in ENDS[1]]})
    for wanted in (
        [edges, nodes],
        [edges, nodes.set_index("id")],
        [edges.iloc[::-1], nodes[nodes.x < 100]],
        [polars.from_arrow(pa.Table.from_pandas(frame)) for frame in (edges, nodes)],
    ):
        graph = read_graph(wanted)
        assert graph.features.shape == (N, 1)
        assert graph.feature_names == ("x",)
        assert graph.names.tolist() == nodes.id.tolist()
        assert graph.labels[:7].tolist() == [0, 1, 2, 0, 1, -1, 0]


def test_comments_at_the_top_of_an_edge_list(tmp_path):
    (tmp_path / "e.txt").write_text("# Directed graph\n# Nodes: 3 Edges: 2\n# From\tTo\n0\t1\n1\t2\n")
    graph = read_graph(tmp_path / "e.txt", features=np.eye(3))
    assert graph.adjacency.indptr.tolist() == [0, 1, 3, 4]


def test_a_sign_inside_quotes_parts_nothing(tmp_path):
    (tmp_path / "n.csv").write_text('id;label;x\n"a;b";"u,v";1\nc;"w,w";2\n')
    (tmp_path / "e.csv").write_text('source;target\n"a;b";c\n')
    graph = read_graph([tmp_path / "e.csv", tmp_path / "n.csv"])
    assert graph.names.tolist() == ["a;b", "c"]
    assert graph.classes == ("u,v", "w,w")


def test_a_decimal_comma_between_semicolons(tmp_path):
    (tmp_path / "n.csv").write_text("id;x;y\na;1,5;2\nb;-,25;3\n")
    (tmp_path / "e.csv").write_text("source;target\na;b\n")
    assert read_graph([tmp_path / "e.csv", tmp_path / "n.csv"]).features.tolist() == [[1.5, 2], [-0.25, 3]]


def test_a_database_is_named_again(tmp_path, monkeypatch):
    sqlite_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    for what in (["mine.sqlite"], ["mine.sqlite/edges", "mine.sqlite/nodes"]):
        source = GraphSource.named(what)
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir("/")
            assert source.read().nodes == N
    assert GraphSource.named(["mine.sqlite"]).read().name == "mine"
    with pytest.raises(SettingsError, match="held in memory"):
        GraphSource.named(["mine.sqlite"]).open()


def test_what_is_wrong_with_tables_is_said(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE links (source, target)")
        connection.execute("CREATE TABLE people (id, x)")
        connection.execute("INSERT INTO people VALUES (1, x'00')")
    with pytest.raises(FormatError, match=r"no table 'edge'.*\n.*links"):
        read_graph([tmp_path / "a.sqlite" / "edge", NODES])
    with pytest.raises(FormatError, match="database without a table edges"):
        read_graph(tmp_path / "a.sqlite")
    with pytest.raises(FormatError, match="column 'x' holds binary data"):
        read_graph([tmp_path / "a.sqlite" / "links", tmp_path / "a.sqlite" / "people"])
    for name in ("b.sqlite", "b.duckdb"):
        (tmp_path / name).write_bytes(b"no database" * 100)
        with pytest.raises(FormatError, match="could not be read"):
            read_graph(tmp_path / name)
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    text(EDGES, tmp_path / "edges.csv")
    with pytest.raises(FormatError, match=r"edges.csv, edges.parquet.*\n.*Which"):
        read_graph(tmp_path)
    (tmp_path / "parts").mkdir()
    pq.write_table(EDGES, tmp_path / "parts" / "a.parquet")
    pq.write_table(EDGES.rename_columns(["from", "to"]), tmp_path / "parts" / "b.parquet")
    with pytest.raises(FormatError, match=r"b.parquet has other columns.* than a.parquet"):
        read_graph([tmp_path / "parts", NODES])
    with pytest.raises(FormatError, match="LazyFrame is no table"):
        read_graph([polars.from_arrow(EDGES).lazy(), NODES])
    with pytest.raises(FormatError, match="cannot be read as a table"):
        read_graph([EDGES.to_pandas()["source"], NODES])
    with pytest.raises(SettingsError, match="label was given for a Data object"):
        read_graph(pyg(None), label="y")
    with pytest.raises(InputError, match="adjacency was given beside a whole graph"):
        GAMLPClassifier().fit(pyg(None), adjacency=EDGES)
    with pytest.raises(MissingFileError, match="no data set"):
        read_graph(tmp_path / "not-there.sqlite")


def test_duckdb_is_an_extra(tmp_path, monkeypatch):
    import sys

    from gamlp.errors import MissingExtraError

    path = duckdb_file(tmp_path)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"gamlp\[duckdb\]"):
        read_graph(path)
