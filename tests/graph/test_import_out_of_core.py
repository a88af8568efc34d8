"""Import within a budget: equal to the reading in memory, in every format; killed, full and damaged disks."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from pyarrow import csv, parquet

from gamlp.errors import FormatError, GamlpError, IdError, NotFiniteError, SettingsError, StorageError
from gamlp.graph import load_graph, read_tables
from gamlp.graph.build import edge_chunks, external_csr
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.build.external_csr import build_adjacency, ranges_of
from gamlp.graph.build.hashing import hash_strings
from gamlp.graph.build.ids import NodeIds
from gamlp.graph.build.import_directory import import_files
from gamlp.graph.readers.columns import matrix_chunks
from gamlp.graph.readers.edges import EdgeList, open_edges
from gamlp.graph.readers.table import ArrayTable
from gamlp.graph.readers.tables import open_tables

LITTLE = 2**18  # 4,096 edges a chunk, 6,553 entries a range
RNG = np.random.default_rng(0)


def import_tables(out, *files, memory, overwrite=False, **options):
    return import_files(out, open_tables(*files, **options), memory=memory, overwrite=overwrite)


def edge_stream(path, source, target, weights, nodes):
    """Edges that are arrays; the file only names them."""
    path.touch()
    given = [values for values in (source, target, weights) if values is not None]
    names = ("source", "target", "weight")[: len(given)]
    return EdgeList(ArrayTable(path, names, tuple(given)), names, NodeIds(nodes), NodeIds(nodes))


def arrays(folder):
    found = {name: np.load(folder / f"{name}.npy") for name in ("indptr", "indices")}
    if (folder / "weights.npy").exists():
        found["weights"] = np.load(folder / "weights.npy")
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("symmetric", "self_loops"), [(True, False), (False, True)])
@pytest.mark.parametrize(("nodes", "edges"), [(1000, 15_000), (4096, 9000), (3, 20_000), (70_000, 5), (5, 0)])
@pytest.mark.parametrize("memory", [LITTLE, 2**30])
def test_equal_to_the_build_in_memory(tmp_path, nodes, edges, weighted, symmetric, self_loops, memory):
    source, target = RNG.integers(0, nodes, (2, edges))
    target[: edges // 3] = 2  # a hub
    weights = RNG.random(edges).astype(np.float32) if weighted else None
    stream = edge_stream(tmp_path / "e", source, target, weights, nodes)
    options = {"symmetric": symmetric, "self_loops": self_loops}
    build_adjacency(tmp_path / "g", stream, nodes=nodes, memory=memory, **options)
    expected = adjacency_from_edges(source, target, nodes=nodes, weights=weights, **options)
    found = arrays(tmp_path / "g")
    assert_array_equal(found["indptr"], expected.indptr)
    assert_array_equal(found["indices"], expected.indices)
    assert found["indices"].dtype == np.int32
    if weighted:
        assert_array_equal(found["weights"], expected.weights)


def test_ranges_hold_what_they_may():
    starts = np.array([0, 10, 10, 60, 61, 61])
    assert ranges_of([starts, starts], shift=0, most=30) == [(0, 2), (2, 3), (3, 5)]
    assert ranges_of([np.zeros(5, np.int64)], shift=4, most=40) == [(0, 2), (2, 4)]


NODES = 300
WORDS = [f"item-{n * 7919 % 10007}" + "ß" * (n % 5) for n in range(NODES)]


@pytest.fixture
def tables(tmp_path):
    """Edges and nodes as Parquet and as CSV, with words, numbers or rows as ids."""
    source, target = RNG.integers(0, NODES, (2, 9000))
    features = RNG.normal(size=(NODES, 3)).astype(np.float32)
    words = np.array(WORDS, dtype=object)
    for kind, ids in (("words", words), ("numbers", np.arange(NODES) * 3 - 5), ("rows", np.arange(NODES))):
        weights = (source * 31 + target) % 7 + 1.0
        edges = pa.table({"src": pa.array(ids[source]), "dst": pa.array(ids[target]), "weight": weights})
        columns = {f"f{at}": features[:, at] for at in range(3)}
        named = {} if kind == "rows" else {"id": pa.array(ids)}
        labels = [["red", "green", None][n % 3] for n in range(NODES)]
        split = ["" if n % 3 == 2 else ["train", "valid", "test"][n // 3 % 3] for n in range(NODES)]
        nodes = pa.table({**named, **columns, "label": labels, "split": split})
        parquet.write_table(edges, tmp_path / f"{kind}-edges.parquet", row_group_size=1000)
        parquet.write_table(nodes, tmp_path / f"{kind}-nodes.parquet")
        csv.write_csv(edges, tmp_path / f"{kind}-edges.csv")
        csv.write_csv(nodes, tmp_path / f"{kind}-nodes.csv")
    return tmp_path


@pytest.mark.parametrize("kind", ["words", "numbers", "rows"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_same_graph_as_reading_in_memory(tables, kind, suffix):
    files = tables / f"{kind}-edges.{suffix}", tables / f"{kind}-nodes.{suffix}"
    facts = import_tables(tables / "g", *files, memory=LITTLE)
    found, expected = load_graph(tables / "g"), read_tables(*files)
    assert facts["entries"] == expected.adjacency.entries
    assert found.fingerprints == expected.fingerprints
    assert found.feature_names == ("f0", "f1", "f2")
    assert found.classes == ("green", "red")
    assert found.name == expected.name
    assert np.isfortran(found.features)
    assert sorted(path.name for path in tables.iterdir() if "partial" in path.name) == []


@pytest.mark.parametrize("form", ["rows.npy", "columns.npy", "edges.npz"])
def test_arrays_of_edges_and_features(tmp_path, form):
    edges = RNG.integers(0, 50, (2, 5000)).astype(np.int32)
    if form == "edges.npz":
        np.savez(tmp_path / form, edge_index=edges)
    else:
        np.save(tmp_path / form, edges.T if form == "rows.npy" else edges)
    np.save(tmp_path / "x.npy", RNG.normal(size=(50, 4)))
    import_tables(tmp_path / "g", tmp_path / form, features=tmp_path / "x.npy", memory=LITTLE)
    expected = read_tables(tmp_path / form, features=tmp_path / "x.npy")
    assert load_graph(tmp_path / "g").fingerprint == expected.fingerprint


@pytest.mark.parametrize("kind", ["words", "numbers"])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
@pytest.mark.parametrize("nodes", ["parquet", "npz"])
def test_arrays_of_edges_name_nodes_by_their_ids(tmp_path, kind, suffix, nodes):
    ids = np.array(WORDS if kind == "words" else np.arange(NODES) * 3 - 5)
    source, target = RNG.integers(0, NODES, (2, 900))
    edges = tmp_path / f"e.{suffix}"
    if suffix == "npy":
        np.save(edges, np.stack([ids[source], ids[target]], axis=1))
    else:
        np.savez(edges, source=ids[source], target=ids[target])
    features = RNG.normal(size=(NODES, 2)).astype(np.float32)
    if nodes == "npz":
        np.savez(tmp_path / "n.npz", ids=ids, features=features)
    else:
        columns = {"id": ids.tolist(), "x": features[:, 0], "y": features[:, 1]}
        parquet.write_table(pa.table(columns), tmp_path / "n.parquet")
    import_tables(tmp_path / "g", edges, tmp_path / f"n.{nodes}", memory=LITTLE)
    found, expected = load_graph(tmp_path / "g"), adjacency_from_edges(source, target, nodes=NODES)
    assert found.adjacency.fingerprint == expected.fingerprint
    assert found.names.tolist() == ids.tolist()
    assert found.fingerprints == read_tables(edges, tmp_path / f"n.{nodes}").fingerprints


def test_what_cannot_be_imported_leaves_nothing_in_place(tables):
    def refused(kind, match, edges, nodes=None, **options):
        with pytest.raises(kind, match=match):
            import_tables(tables / "g", edges, nodes, memory=LITTLE, **options)
        assert not (tables / "g").exists()

    good = tables / "words-edges.parquet", tables / "words-nodes.parquet"
    cut = tables / "cut.parquet"
    cut.write_bytes(good[0].read_bytes()[:-100])
    refused(FormatError, r"cut\.parquet could not be read", cut, good[1])
    csv_edges = tables / "numbers-edges.csv"
    text = csv_edges.read_text().splitlines()
    text[5000] = "99999,-5,1"
    csv_edges.write_text("\n".join(text))
    refused(
        IdError, r"line 5,001, names node 99999, which is not among the 300", csv_edges, tables / "numbers-nodes.csv"
    )
    parquet.write_table(pa.table({"id": ["a", "b", "a"], "x": [1.0, 2, 3]}), tables / "twice.parquet")
    refused(IdError, "the id 'a' stands in 2 rows or more, row 2", good[0], tables / "twice.parquet")
    np.save(tables / "nan.npy", np.array([[1.0], [np.nan]]))
    np.save(tables / "e.npy", np.array([[0, 1]]))
    refused(NotFiniteError, "Feature 0 of node 1 is nan", tables / "e.npy", features=tables / "nan.npy")
    np.save(tables / "far.npy", np.array([[0, 2]]))
    np.save(tables / "x.npy", np.ones((2, 1)))
    refused(IdError, "names node 2, which is not among the 2 nodes", tables / "far.npy", features=tables / "x.npy")
    with pytest.raises(SettingsError, match="300 ids needs"):
        import_tables(tables / "g", *good, memory=2**12)


def test_words_hash_apart():
    words = [b"", b"\0", b"\0\0", b"ab", b"ba", b"12345678", b"1234567", b"123456789", b"12345678\0"]
    ends = np.cumsum([0] + [len(word) for word in words])
    assert len(set(hash_strings(ends, np.frombuffer(b"".join(words), np.uint8)).tolist())) == len(words)


def steps(monkeypatch, stop_after):
    """Stop the import before its n-th write of a chunk or of a range's state."""
    count = [0]

    def counted(function):
        def call(*arguments, **options):
            count[0] += 1
            if count[0] > stop_after:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(edge_chunks.ChunkWriter, "write", counted(edge_chunks.ChunkWriter.write))
    monkeypatch.setattr(external_csr, "sort_range", counted(external_csr.sort_range))
    return count


def test_stopped_anywhere_it_goes_on_and_ends_the_same(tables, monkeypatch):
    files = tables / "words-edges.parquet", tables / "words-nodes.parquet"
    import_tables(tables / "whole", *files, memory=LITTLE)
    wanted = {path.name: path.read_bytes() for path in (tables / "whole").iterdir()}
    with monkeypatch.context() as patch:
        total = steps(patch, 10**6)
        import_tables(tables / "counted", *files, memory=LITTLE)
    assert total[0] >= 5  # three chunks, and some ranges
    done = 0
    for _ in range(total[0] + 1):
        with monkeypatch.context() as patch:
            count = steps(patch, 1)  # one step, then Ctrl-C
            try:
                import_tables(tables / "g", *files, memory=LITTLE)
            except KeyboardInterrupt:
                assert not (tables / "g").exists()
                done += 1
            else:
                break
    assert count[0] <= 1
    assert done == total[0] - 1  # no step was done twice
    assert {path.name: path.read_bytes() for path in (tables / "g").iterdir()} == wanted


PROGRAM = """
import sys, time
from pathlib import Path
from gamlp.graph.build import edge_chunks
from gamlp.graph.build.import_directory import import_files
from gamlp.graph.readers.tables import open_tables
folder, pause = Path(sys.argv[1]), float(sys.argv[2])
write = edge_chunks.ChunkWriter.write
def slow(self, *rest):
    write(self, *rest)
    (folder / "begun").touch()
    time.sleep(pause)
edge_chunks.ChunkWriter.write = slow
files = open_tables(folder / "rows-edges.parquet", folder / "rows-nodes.parquet")
import_files(folder / "g", files, memory=2**18)
"""


def test_kill_9_and_go_on(tables):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tables), "60"])
    while not (tables / "begun").exists():
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tables / "g").exists()
    assert len(list((tables / "g.partial" / "chunks").glob("chunk-*.npy"))) == 1
    files = tables / "rows-edges.parquet", tables / "rows-nodes.parquet"
    import_tables(tables / "g", *files, memory=LITTLE)
    assert load_graph(tables / "g").fingerprint == read_tables(*files).fingerprint


def test_a_full_disk_is_one_message_and_the_old_graph_stays(tables, monkeypatch):
    files = tables / "rows-edges.parquet", tables / "rows-nodes.parquet"
    import_tables(tables / "g", *files, memory=LITTLE)
    before = load_graph(tables / "g").fingerprint

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(edge_chunks, "write_array", full)
    other = tables / "numbers-edges.parquet", tables / "numbers-nodes.parquet"
    with pytest.raises(StorageError, match="No space left on device"):
        import_tables(tables / "g", *other, memory=LITTLE, overwrite=True)
    monkeypatch.undo()
    assert load_graph(tables / "g").fingerprint == before
    with pytest.raises(StorageError, match="already holds a graph"):
        import_tables(tables / "g", *other, memory=LITTLE)
    import_tables(tables / "g", *other, memory=LITTLE, overwrite=True)
    assert load_graph(tables / "g").names is not None


def test_a_changed_file_begins_anew(tables, monkeypatch):
    files = tables / "rows-edges.parquet", tables / "rows-nodes.parquet"
    with monkeypatch.context() as patch:
        steps(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            import_tables(tables / "g", *files, memory=LITTLE)
    edges = parquet.read_table(files[0]).slice(100)
    parquet.write_table(edges, files[0], row_group_size=1000)
    import_tables(tables / "g", *files, memory=LITTLE)
    assert load_graph(tables / "g").fingerprint == read_tables(*files).fingerprint


def test_a_run_cut_short_is_noticed(tables, monkeypatch):
    files = tables / "rows-edges.parquet", tables / "rows-nodes.parquet"
    with monkeypatch.context() as patch:
        steps(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            import_tables(tables / "g", *files, memory=LITTLE)
    keys = sorted((tables / "g.partial" / "chunks").glob("*.keys"))[0]
    os.truncate(keys, keys.stat().st_size - 8)
    with pytest.raises(GamlpError, match="cut short"):
        import_tables(tables / "g", *files, memory=LITTLE)


def test_after_a_power_cut_runs_are_not_trusted(tables, monkeypatch):
    files = tables / "rows-edges.parquet", tables / "rows-nodes.parquet"
    with monkeypatch.context() as patch:
        steps(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            import_tables(tables / "g", *files, memory=LITTLE)
    keys = tables / "g.partial" / "chunks" / "chunk-00000.keys"
    keys.write_bytes(bytes(keys.stat().st_size))  # as a file whose pages never reached the disk
    monkeypatch.setattr(external_csr, "boot", lambda: "another")
    import_tables(tables / "g", *files, memory=LITTLE)
    assert load_graph(tables / "g").fingerprint == read_tables(*files).fingerprint


def resident_of(path):
    """Return the bytes of a mapped file that this process holds."""
    found, ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0] and not line.split()[0].endswith(":"):
            ours = line.endswith(str(path))
        elif ours and line.startswith("Rss:"):
            found += 1024 * int(line.split()[1])
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_mapped_array_of_edges_is_let_go_as_it_is_read(tmp_path):
    nodes, edges, path = 100, 6 * 2**20, tmp_path / "edges.npy"
    np.save(path, np.random.default_rng(0).integers(0, nodes, (2, edges)))  # 96 MiB
    listed = open_edges(path).between(NodeIds(nodes), NodeIds(nodes))
    held = [resident_of(path) for _ in listed.batches()]
    assert 0 < max(held) <= 3 * 16 * 2**20  # two columns of a chunk, and what is read ahead


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_mapped_matrix_of_features_is_not_read_through_the_map(tmp_path):
    path = tmp_path / "features.npy"
    np.save(path, np.random.default_rng(0).random((2**16, 128), np.float32))  # 32 MiB
    values = np.load(path, mmap_mode="r")
    total = 0.0
    for chunk in matrix_chunks(values):
        total += chunk.sum(dtype=np.float64)
        assert resident_of(path) <= 2**20
    assert total == pytest.approx(values.sum(dtype=np.float64))
