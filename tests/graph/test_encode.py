"""Columns of any type as features: every kind by hand or beside scikit-learn, the same bits from everywhere."""

import datetime
import json
import re
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from gamlp import GAMLPClassifier, read_graph
from gamlp.errors import FormatError, GamlpError, SettingsError
from gamlp.graph.build.import_directory import import_files
from gamlp.graph.encode import Columns
from gamlp.graph.encode.text import LENGTH
from gamlp.graph.readers.tables import open_tables, read_tables
from gamlp.graph.store import load_graph, save_graph
from gamlp.model_file import load_fitted


def fit(**columns):
    return Columns.fit(pa.table(columns), "row {}".format, title="nodes")


def encoded(columns, **values):
    batch = pa.table(values).combine_chunks().to_batches()[0]
    return columns.encode(batch, "row {}".format)


def features(**columns):
    """Fit and encode the same rows; by the names of the features."""
    found = fit(**columns)
    return dict(zip(found.names, encoded(found, **columns).T.tolist(), strict=True))


# By hand


def test_numbers_alone_stay_as_they_are():
    assert features(x=[1, 2, 30], y=[0.5, None, 2.5]) == {
        "x": [1, 2, 30],
        "y": [0.5, 1.5, 2.5],
        "y is empty": [0, 1, 0],
    }


def test_numbers_beside_others_have_one_scale():
    found = features(x=[0.0, 1, 2, 3, 4], colour=list("rgrgr"))
    spread = 2 / 1.349  # between the quartiles 1 and 3
    scaled = (np.arange(5) - 2) / spread
    np.testing.assert_allclose(found["x"], scaled / np.sqrt(1 + (scaled / 3) ** 2), rtol=1e-6)
    assert found["colour=g"] == [0, 1, 0, 1, 0]
    assert found["colour=r"] == [1, 0, 1, 0, 1]


def test_categories_with_gaps():
    found = features(city=["Oslo", None, "Bonn", "Oslo", " Bonn ", "N/A"])
    assert found == {
        "city=Bonn": [0, 0, 1, 0, 1, 0],
        "city=Oslo": [1, 0, 0, 1, 0, 0],
        "city is empty": [0, 1, 0, 0, 0, 1],
    }


def test_true_and_false_in_words():
    assert features(ok=["yes", "No", "YES"]) == {"ok": [1, 0, 1]}
    assert features(ok=[True, None, False]) == {"ok": [1, 0, 0], "ok is empty": [0, 1, 0]}


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %b %Y", "%Y-%m-%dT%H:%M:%SZ", "epoch"])
def test_dates(written):
    days = [datetime.datetime(2024, 2, day, tzinfo=datetime.UTC) for day in (1, 15, 22)]
    texts = [int(day.timestamp()) if written == "epoch" else day.strftime(written) for day in days]
    found = features(created_at=texts)
    middle, spread = 14, (17.5 - 7) / 1.349  # of the days 0, 14 and 21
    scaled = (np.array([0, 14, 21]) - middle) / spread
    np.testing.assert_allclose(found["created_at day"], scaled / np.sqrt(1 + (scaled / 3) ** 2), rtol=1e-6)
    thursday = 2 * np.pi * 4 / 7  # from Sunday, all three
    np.testing.assert_allclose(found["created_at in the week cos"], [np.cos(thursday)] * 3, atol=1e-6)
    np.testing.assert_allclose(found["created_at in the week sin"], [np.sin(thursday)] * 3, atol=1e-6)
    assert "created_at in the day cos" not in found


def test_hours_of_dates_and_their_zones():
    found = features(at=["2024-02-01T06:00:00+00:00", "2024-02-01 20:00:00+08:00", None])
    np.testing.assert_allclose(found["at in the day sin"], [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(found["at in the day cos"], [0, -1, 0], atol=1e-6)
    assert found["at is empty"] == [0, 0, 1]


def test_text_is_tf_idf_as_scikit_learn_has_it():
    texts = ["a red fox and a red hen", "the quick red fox", "hens and foxes of the wood", ""]
    found = fit(about=texts)
    rows = encoded(found, about=texts)
    expected = TfidfVectorizer(token_pattern=r"[^\W_]{2,}", min_df=2).fit_transform(texts).toarray()
    expected *= LENGTH / np.sqrt((expected**2).sum(axis=1).mean())
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-6)


def test_wide_text_keeps_the_leading_directions():
    random = np.random.default_rng(0)
    words = np.array([f"w{at:03}" for at in range(300)])
    texts = [" ".join(random.choice(words, 12, p=np.arange(1, 301) / 45_150)) for _ in range(400)]
    found = fit(about=texts)
    rows = encoded(found, about=texts).astype(np.float64)
    assert rows.shape == (400, 128)
    matrix = TfidfVectorizer(min_df=2).fit_transform(texts).toarray()
    best = (np.linalg.svd(matrix)[1][:128] ** 2).sum()
    directions = np.linalg.qr(found.columns[0].array[:, 1:].astype(np.float64))[0]
    assert ((matrix @ directions) ** 2).sum() > 0.97 * best  # a randomised method, nearly the best
    assert (rows**2).sum(axis=1).mean() == pytest.approx(LENGTH**2, rel=1e-4)


def test_names_of_many_values_are_letters_or_words():
    names = [f"{first}{last}" for first in ("lib", "py", "go", "ruby", "perl") for last in ("alpha", "beta", "gamma")]
    values = [f"{name}{at}" for at in range(4) for name in names]
    found = fit(package=values)
    assert found.words == "package (category of 60 values → 32 columns)"
    rows = encoded(found, package=[*values, "pyalpha9"])
    near = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    closest = np.argsort(-(near[:60] @ near[60]))[:4]
    assert {values[at][:-1] for at in closest} == {"pyalpha"}  # a name never seen is like those that it resembles


def test_what_says_nothing_is_left_out():
    codes = [f"{at:08x}-{at * 7919 % 65536:04x}" for at in range(50)]
    found = fit(empty=[None] * 50, gaps=[""] * 50, code=codes, same=["x"] * 50, one=[1] * 50, colour=["r", "g"] * 25)
    assert found.words == (
        "empty, gaps (2 × left out: empty), code (left out: another code in every row), "
        "same, one (2 × left out: the same in every row), colour (category of 2 values)"
    )
    assert found.names == ("colour=g", "colour=r")


def test_mixed_types_in_one_column():
    assert fit(x=["1", "2.5", "-3e2", "oops", *"5678901234"]).words == "x (number, but 1 words are gaps, as 'oops')"
    assert features(x=["12%", "$7.50", "€ 3", "-1"]) == {"x": [12, 7.5, 3, -1]}
    assert features(x=["[1, 2]", "[3,4]", "[5 6]"]) == {"x[0]": [1, 3, 5], "x[1]": [2, 4, 6]}
    assert features(x=[[1, 2], None, [3, 5]])["x is empty"] == [0, 1, 0]
    assert fit(tags=[["a", "b"], ["b"], ["a"], ["a"], []]).words == "tags (category of 3 values)"


def test_all_problems_at_once():
    table = {
        "price": ["1,234", "5", "7,000,000"],
        "day": ["03/04/2024", "05/06/2024", "01/02/2024"],
        "vector": [[1.0, 2.0], [3.0], [4.0, 5.0]],
        "record": [{"a": 1}] * 3,
        "fine": [1, 2, 3],
    }
    with pytest.raises(GamlpError) as error:
        fit(**table)
    text = str(error.value)
    assert text.startswith("nodes: 4 columns cannot be read as features.")
    assert "column 'price' has signs between thousands: '1,234' in row 0; write 1234" in text
    assert "column 'day' has dates as '03/04/2024': which is the month?" in text
    assert "row 1: column 'vector' has a list of 1 values, others have 2" in text
    assert "column 'record' holds struct" in text
    assert text.endswith("--ignore price --ignore day --ignore vector --ignore record.")
    assert fit(day=["30/04/2024", "05/06/2024", "28/02/2023"]).words == "day (date)"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xef\xbb\xbf id , label \r\n0,a\r\n1,b\r\n", "id =  id , label =  label "),
        (b",id,label,x\n0,0,a,5\n1,1,b,6\n", "(no name) (left out: numbers of the rows), x (number)"),
        (b"id,label,x\n0,a,\n1,b,\n", "x (left out: empty), so those of the structure"),
        (b'id,label,x\n0,a,"red, fox\nand hen"\n1,b,"a red, old fox"\n', "x (text → 2 columns)"),
        (b"id,label,date\n0,a,20240131\n1,b,20240301\n", "date (date)"),
        (b"id;label;x;y\n0;a;1,5;so\n1;b;2,5;no\n", "x (number), y (category of 2 values)"),
    ],
)
def test_odd_files(content, words, tmp_path):
    (tmp_path / "n.csv").write_bytes(content)
    (tmp_path / "e.csv").write_text("a,b\n0,1\n")
    assert words in read_tables(tmp_path / "e.csv", tmp_path / "n.csv").notes[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id,label,city\n0,a,Köln\n1,b,Bonn\n".encode("latin-1"), "It is not written in UTF-8"),
        ("id,label,city\n0,a,Köln\n1,b,Bonn\n".encode("utf-16"), "It is not written in UTF-8"),
        (b"id;label;x\n0;a;1.234,50\n1;b;2.000,25\n", "'1.234,50' in line 2; write 1234.50"),
        (b"id,label,x\n0,a\n1,b,3\n", "Expected 3 columns, got 2"),
    ],
)
def test_odd_files_that_are_refused(content, words, tmp_path):
    (tmp_path / "n.csv").write_bytes(content)
    (tmp_path / "e.csv").write_text("a,b\n0,1\n")
    with pytest.raises(FormatError, match=re.escape(words)):
        read_tables(tmp_path / "e.csv", tmp_path / "n.csv")


# Unseen, and kept


def test_what_training_has_not_seen_is_no_error():
    known = fit(
        x=[1, 2, 3, 4], colour=["r", "g", "r", "g"], about=["red hen", "red fox", "old fox", "old hen"],
        day=["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"], ok=[True, False, True, True],
    )  # fmt: skip
    new = {"x": ["2.5", "many"], "colour": ["blue", None], "about": ["zebra", None], "day": ["soon", None]}
    assert not encoded(known, **new, ok=["?", "x"]).any()


@pytest.mark.parametrize(
    "values", [["many", "few"], [None, "many"], [float("inf"), None], [1e39, 1e39], [[1, 2], [3, 4]]]
)
def test_numbers_of_training_that_are_none_at_all_are_another_column(values):
    known = fit(x=[1, 2, 3, 4])
    with pytest.raises(FormatError, match="'x' held numbers in training"):
        encoded(known, x=values)
    assert encoded(known, x=[1.0, None]).tolist() == [[1.0], [2.5]]  # the median of training


VALUES = {
    "number": st.none() | st.floats(width=32, allow_subnormal=False) | st.integers(-9, 9).map(float),
    "word": st.none() | st.text(max_size=12),
    "few": st.sampled_from(["a", "b", "c", None]),
    "truth": st.booleans() | st.none(),
    "date": st.none() | st.dates(datetime.date(1900, 1, 1), datetime.date(2200, 1, 1)),
    "vector": st.none() | st.lists(st.floats(-9, 9, width=32), min_size=2, max_size=2),
}


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(1, 30))
def test_kept_as_data_it_gives_the_same_bits_in_blocks_of_any_size(data, rows):
    kinds = {"date": pa.date32(), "vector": pa.list_(pa.float32()), "number": pa.float32(), "truth": pa.bool_()}
    table = pa.table(
        {
            name: pa.array(data.draw(st.lists(values, min_size=rows, max_size=rows)), kinds.get(name, pa.string()))
            for name, values in VALUES.items()
        }
    )
    columns = Columns.fit(table, str, title="nodes")
    described, flat = columns.data()
    again = Columns.from_data(json.loads(json.dumps(described)), flat)
    assert again.key == columns.key
    batch = table.combine_chunks().to_batches()[0]
    whole = columns.encode(batch, str)
    assert whole.shape == (rows, len(columns.names)) and np.isfinite(whole).all()
    at = data.draw(st.integers(0, rows))
    parts = [again.encode(batch.slice(0, at), str), again.encode(batch.slice(at), str)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


# On the road

N = 90
RANDOM = np.random.default_rng(5)
WORDS = np.array([f"word{at}" for at in range(200)])
EDGES = pa.table({"source": RANDOM.integers(0, N, 300), "target": RANDOM.integers(0, N, 300)})
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(int(day)) for day in RANDOM.integers(0, 900, N)]
NODES = pa.table(
    {
        "label": [f"c{at % 3}" for at in range(N)],
        "age": [None if at % 9 == 0 else float(np.float32(at / 7)) for at in range(N)],
        "count": [int(at) for at in RANDOM.integers(0, 50, N)],
        "city": [None if at % 11 == 0 else ["Oslo", "Bonn, Rhein", 'the "old" one'][at % 3] for at in range(N)],
        "about": [" ".join(RANDOM.choice(WORDS[at % 3 * 60 :][:80], 8)) for at in range(N)],
        "maintainer": [f"Person {at % 45} <p{at % 45}@example.org>" for at in range(N)],
        "joined": DAYS,
        "active": [None if at % 13 == 0 else at % 2 == 0 for at in range(N)],
    }
)


def csv(table, path, *, windows=False):
    pyarrow.csv.write_csv(table, path)
    content = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n") if windows else content)
    return path


def parquet(table, path):
    pq.write_table(table, path, row_group_size=17)
    return path


def sqlite(table, path):
    with closing(sqlite3.connect(path)) as connection, connection:
        names = ", ".join(table.column_names)
        connection.execute(f"CREATE TABLE nodes ({names})")
        texts = table.set_column(6, "joined", table["joined"].cast(pa.string()))
        rows = [list(row.values()) for row in texts.to_pylist()]
        connection.executemany(f"INSERT INTO nodes VALUES ({','.join('?' * len(rows[0]))})", rows)
    return path / "nodes"


SOURCES = {
    "csv": csv,
    "csv of Windows": lambda table, path: csv(table, path, windows=True),
    "parquet": parquet,
    "pandas": lambda table, _: table.to_pandas(),
    "pandas and Arrow": lambda table, _: table.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype),
    "polars": lambda table, _: pytest.importorskip("polars").from_arrow(table),
    "duckdb": lambda table, _: pytest.importorskip("duckdb").from_arrow(table),
    "sqlite": sqlite,
}
SUFFIX = {"csv": ".csv", "csv of Windows": ".csv", "parquet": ".parquet", "sqlite": ".sqlite"}


@pytest.fixture(scope="module")
def expected():
    return read_graph([EDGES, NODES])


def test_what_each_column_was_taken_for(expected):
    assert expected.notes[0].endswith(
        "features = age, count (2 × number), city (category of 3 values), about (text → 90 columns), "
        "maintainer (category of 45 values → 32 columns), joined (date), active (true or false)."
    )


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_bits_from_every_source(source, tmp_path, expected):
    nodes = SOURCES[source](NODES, tmp_path / f"nodes{SUFFIX.get(source, '')}")
    assert read_graph([EDGES, nodes]).fingerprints == expected.fingerprints


@pytest.mark.parametrize("kind", [csv, parquet])
def test_the_same_bits_within_a_memory_limit(kind, tmp_path, expected):
    nodes = kind(NODES, tmp_path / f"nodes.{kind.__name__}")
    edges = parquet(EDGES, tmp_path / "edges.parquet")
    import_files(tmp_path / "graph", open_tables(edges, nodes, name="graph"), memory=2**24)
    graph = load_graph(tmp_path / "graph")
    assert graph.fingerprints == expected.fingerprints
    assert graph.encoded.same(expected.encoded.columns)
    save_graph(expected, tmp_path / "other")
    assert load_graph(tmp_path / "other").encoded.same(expected.encoded.columns)


def test_a_word_that_follows_many_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("gamlp.graph.readers.table.BLOCK", 512)
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("x,label\n" + "".join(f"{at},a\n" for at in range(400)) + "many,b\n")
    edges.write_text("source,target\n0,400\n")
    graph = read_tables(edges, nodes)
    assert graph.features[399:].tolist() == [[399, 0], [199.5, 1]]
    import_files(tmp_path / "graph", open_tables(edges, nodes), memory=2**24)
    np.testing.assert_array_equal(load_graph(tmp_path / "graph").features, graph.features)


def some_model(**more):
    return GAMLPClassifier("gamlp-jk", hops=1, hidden=8, epochs=2, random_state=1, **more)


NEW = NODES.slice(0, 4).set_column(3, "city", pa.array(["Paris", None, "Oslo", "Oslo"]))
NEW = NEW.set_column(4, "about", pa.array(["never seen", None, "word1 word2", ""]))
NEW_EDGES = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})


def test_another_graph_is_encoded_as_training_was(tmp_path, expected):
    model = some_model().fit(expected)
    other = read_graph([NEW_EDGES, NEW])  # by itself: other categories, no maintainers to speak of
    assert not other.encoded.same(expected.encoded.columns)
    same = read_graph([NEW_EDGES, NEW], encoding=expected.encoded.columns)
    assert same.feature_names == expected.feature_names
    np.testing.assert_array_equal(same.features[2, :3], expected.features[2, :3])
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(same))
    model.save(tmp_path / "model")
    loaded = GAMLPClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(other), model.predict_proba(same))
    assert load_fitted(tmp_path / "model").encoding[""].key == expected.encoded.columns[""].key
    save_graph(other, tmp_path / "alone")
    with pytest.raises(SettingsError, match="became features by themselves"):
        model.predict(load_graph(tmp_path / "alone"))


def test_columns_are_matched_by_name(expected):
    model = some_model().fit(expected)
    names = NEW.column_names
    turned = read_graph([NEW_EDGES, NEW.select(names[::-1])])
    np.testing.assert_array_equal(model.predict_proba(turned), model.predict_proba(read_graph([NEW_EDGES, NEW])))
    with pytest.raises(SettingsError, match="no feature column 'city'"):
        model.predict(read_graph([NEW_EDGES, NEW.drop_columns(["city"])]))
    with pytest.raises(SettingsError, match="a feature column 'more'"):
        model.predict(read_graph([NEW_EDGES, NEW.append_column("more", pa.array(range(4)))]))


@pytest.mark.parametrize("source", ["pandas", "polars", "duckdb"])
def test_the_estimator_takes_frames_as_they_are(source, expected):
    table, new = NODES.drop_columns(["label"]), NEW.drop_columns(["label"])
    model = some_model().fit(SOURCES[source](table, None), NODES["label"].to_pylist())
    assert model.n_features_in_ == 7
    said = model.predict_proba(SOURCES[source](new, None))
    assert said.shape == (4, 3)
    other = some_model().fit(table, NODES["label"].to_pylist())
    np.testing.assert_array_equal(other.predict_proba(new), said)


def test_numbers_may_have_gaps_when_predicted():
    numbers = pa.table({"x": [0.0, 1, 2, 3] * 5, "y": [1.0, 3] * 10})
    model = some_model().fit(numbers, [0, 1] * 10)
    gaps = pa.table({"x": [None, 1.0], "y": [1.0, None]})
    filled = pa.table({"x": [1.5, 1.0], "y": [1.0, 2.0]})
    np.testing.assert_array_equal(model.predict_proba(gaps), model.predict_proba(filled))


def test_types_of_a_heterogeneous_graph(tmp_path):
    (tmp_path / "hetero.toml").write_text(
        'target = "paper"\n[nodes.paper]\nfile = "papers.csv"\n[nodes.author]\nfile = "authors.csv"\n'
        '[relations.writes]\nfile = "writes.csv"\nsource = "author"\ntarget = "paper"\n'
    )
    (tmp_path / "papers.csv").write_text("id,label,venue\np,x,KDD\nq,y,WWW\nr,x,KDD\n")
    (tmp_path / "authors.csv").write_text("id,age\na,20\nb,\nc,40\n")
    (tmp_path / "writes.csv").write_text("author,paper\na,p\nb,q\nc,r\n")
    graph = read_graph(tmp_path)
    assert graph.feature_names == ("paper.venue=KDD", "paper.venue=WWW", "author.age", "author.age is empty")
    assert graph.features[:3].tolist() == [[1, 0], [0, 1], [1, 0]]
    bound = 1.349 / np.sqrt(1 + (1.349 / 3) ** 2)  # 10 from the middle, the quartiles are 25 and 35
    np.testing.assert_allclose(graph.features[3:], [[-bound, 0], [0, 1], [bound, 0]], rtol=1e-6)
    (tmp_path / "authors.csv").write_text("id,age\na,old\nb,30\nc,40\n")
    other = read_graph(tmp_path, encoding=graph.encoded.columns)
    assert other.features[3].tolist() == [0, 1]
    features, names = graph.encoded.again(graph.encoded.columns)
    assert names == graph.feature_names and features[3].tolist() == [0, 1]


def test_binary_columns_and_damaged_data_are_refused(expected, tmp_path):
    with pytest.raises(FormatError, match="column 'x' holds binary"):
        fit(x=[b"1", b"2"])
    described, flat = expected.encoded.columns[""].data()
    for broken in ([{**described[0], "kind": "other"}], [{**described[0], "middle": "x"}], described[:-3]):
        with pytest.raises((KeyError, ValueError, TypeError)):
            Columns.from_data(broken, flat[:-1])
