"""Everything that gamlp reads: how to make it, and what reading it gives."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from forks import command
from scenarios import settings

from gamlp.graph.splits import Split


@dataclass(frozen=True)
class Kind:
    """A sort of input: `make` fills a folder (variants differ in content), `read` returns a hash of what is read.

    `checked` kinds are written by gamlp with checksums: any change must be found or change nothing. The files of others
    come from users; of these a change can be another valid input, which nobody can tell.
    """

    name: str
    make: Callable[[Path, int], None]
    read: Callable[[Path], str]
    checked: bool = True
    every: int = 1  # only every so manieth corruption is tried, where reading is slow


def hashed(*parts: Any) -> str:
    """Return a hash of arrays and words."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(f"{part.dtype} {part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        else:
            total.update(repr(part).encode())
    return total.hexdigest()


def of_graph(graph: Any) -> str:
    """Return a hash of everything in a graph."""
    adjacency = graph.adjacency
    split = graph.split_for(0) if graph.classes else Split(*[np.zeros(0, np.int64)] * 3)
    parts = [adjacency.indptr, adjacency.indices, adjacency.weights, np.asarray(graph.features), graph.labels]
    names = None if graph.names is None else graph.names.tolist()
    return hashed(*parts, split.train, split.valid, split.test, graph.classes, names, graph.name)


def tables(folder: Path, variant: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Return edges, features, labels and split of a graph with 24 nodes."""
    random = np.random.default_rng(variant)
    edges = random.integers(0, 24, (60, 2))
    split = (["train"] * 9 + ["valid"] * 6 + ["test"] * 9)[:24]
    folder.mkdir(parents=True, exist_ok=True)
    return edges, random.normal(size=(24, 5)).astype(np.float32), np.arange(24) % 3, split


def arrow_tables(folder: Path, variant: int) -> tuple[Any, Any]:
    import pyarrow as pa

    edges, features, labels, split = tables(folder, variant)
    ids = np.array([f"n{at}" for at in range(24)], dtype=object)
    ends = pa.table({"source": ids[edges[:, 0]], "target": ids[edges[:, 1]]})
    columns = {"id": ids, "label": np.array(list("abc"), dtype=object)[labels], "split": split}
    return ends, pa.table({**columns, **{f"x{at}": features[:, at] for at in range(5)}})


def make_csv(folder: Path, variant: int) -> None:
    from pyarrow import csv

    for table, name in zip(arrow_tables(folder, variant), ("edges", "nodes"), strict=True):
        csv.write_csv(table, folder / f"{name}.csv")


def make_parquet(folder: Path, variant: int) -> None:
    from pyarrow import parquet

    for table, name in zip(arrow_tables(folder, variant), ("edges", "nodes"), strict=True):
        parquet.write_table(table, folder / f"{name}.parquet")


def make_arrays(folder: Path, variant: int) -> None:
    edges, features, _, _ = tables(folder, variant)
    np.savez(folder / "edges.npz", source=edges[:, 0], target=edges[:, 1])
    np.save(folder / "features.npy", features)


def make_graph(folder: Path, variant: int) -> None:
    from gamlp.graph.readers.tables import read_tables
    from gamlp.graph.store import save_graph

    beside = folder.with_name(f"{folder.name}-tables")
    make_csv(beside, variant)
    save_graph(read_tables(beside / "edges.csv", beside / "nodes.csv"), folder)


def make_planetoid(folder: Path, variant: int) -> None:
    from scipy.sparse import csr_matrix

    folder.mkdir(parents=True)
    rows, eye = np.arange(8, dtype=np.float32).reshape(4, 2) + variant, np.eye(3, dtype=np.int32)
    graph = defaultdict(list, {0: [1, 1, 2], 1: [0], 2: [2, 0], 5: [0], 4: [3]})
    content = {
        "x": csr_matrix(rows[:2]), "allx": csr_matrix(rows), "tx": csr_matrix(rows[:2] * 3), "graph": graph,
        "y": eye[[2, 0]], "ally": eye[[2, 0, 1, 1]], "ty": eye[[1, 2]],
    }  # fmt: skip
    for part, value in content.items():
        raw = pickle.dumps(value, protocol=2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
        (folder / f"ind.tiny.{part}").write_bytes(raw.replace(b"scipy.sparse._csr", b"scipy.sparse.csr"))
    (folder / "ind.tiny.test.index").write_text("5\n4\n")


def make_npz(folder: Path, variant: int) -> None:
    from scipy.sparse import csr_array

    edges, features, labels, _ = tables(folder, variant)
    adjacency = csr_array((np.ones(60), edges.T), shape=(24, 24))
    parts = {"adj": adjacency, "attr": csr_array(np.abs(features))}
    arrays = {f"{name}_{part}": getattr(matrix, part) for name, matrix in parts.items()
              for part in ("data", "indices", "indptr", "shape")}  # fmt: skip
    np.savez(folder / "graph.npz", **arrays, labels=labels)


def make_ogb(folder: Path, variant: int) -> None:
    texts = {
        "raw/edge": "0,1\n1,2\n2,1\n", "raw/node-feat": f"0.5,1\n-2,3\n4,5e-1\n6,{variant}\n",
        "raw/node-label": "0\n2\n1\n2\n", "raw/num-node-list": "4\n", "raw/num-edge-list": "3\n",
        "split/time/train": "0\n1\n", "split/time/valid": "2\n", "split/time/test": "3\n",
    }  # fmt: skip
    for name, text in texts.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def make_hops(folder: Path, variant: int) -> None:
    from gamlp.graph.build.csr import adjacency_from_edges
    from gamlp.propagate import LocalEngine, Propagation

    edges, features, _, _ = tables(folder.with_name("unused"), variant)
    adjacency = adjacency_from_edges(edges[:, 0], edges[:, 1], nodes=24)
    spec = Propagation(2, rows=np.arange(0, 24, 2), stationary=True)
    LocalEngine().propagate_to(folder, adjacency, features, spec)


def make_layers(folder: Path, variant: int) -> None:
    """Keep states of a graph, let an edge and a node come, and take what is kept then."""
    from gamlp.graph.build.changes import Changes, EdgeSet, apply_changes
    from gamlp.graph.build.csr import adjacency_from_edges
    from gamlp.graph.graph import Graph
    from gamlp.propagate import LocalEngine, Propagation
    from gamlp.propagate import changed_states as changing
    from gamlp.propagate.states import PREFIX, keep_states

    edges, features, _, _ = tables(folder.with_name("unused"), variant)
    graph = Graph(adjacency_from_edges(edges[:, 0], edges[:, 1], nodes=24), features, np.full(24, -1))
    none = np.zeros(0, np.int64)
    new = Graph(adjacency_from_edges(none, none, nodes=1), features[:1], np.array([-1]))
    engine = LocalEngine(cache=folder.with_name(f"cache-{variant}"))
    old = keep_states(engine, graph.adjacency, graph.features, Propagation(1))
    now, moved = apply_changes(graph, Changes(new, edges_added=EdgeSet(np.array([24]), np.array([3]))), directed=False)
    most, changing.MOST = changing.MOST, 2.0
    states, _ = changing.changed_states(engine, old, now.adjacency, now.features, moved, directed=False)
    changing.MOST = most
    shutil.copytree(engine.cache / f"{PREFIX}{states.key}", folder)
    assert (folder / "changed.npy").exists()
    shutil.rmtree(engine.cache)


def read_hops(folder: Path) -> str:
    from gamlp.propagate.hops import load_hops

    found = load_hops(folder)
    return hashed(*(np.asarray(part[:]) for part in (found.values, found.rows, found.stationary) if part is not None),
                  found.key)  # fmt: skip


def make_run(folder: Path, variant: int) -> None:
    """Train; the graph is beside and stays whole, the run is what is damaged."""
    graph = folder.parent / "graph-of-runs"
    if not graph.exists():
        make_graph(graph, 0)
    words = ["train", str(graph), "--method", "gamlp-jk", "--seeds", "1", "--seed", str(variant), "--out", str(folder)]
    done = command([*words, *settings("epochs=2")])
    assert done["code"] == 0, done["err"]
    if variant:
        (folder / f"seed-{variant}").rename(folder / "seed-0")


def read_run(folder: Path) -> str:
    """Return a hash of what predict and the report make of a run."""
    from gamlp.cli.begin import read_own_graph
    from gamlp.explain.finished_run import open_run
    from gamlp.explain.report import render
    from gamlp.model_file import load_fitted
    from gamlp.runs import record

    graph = read_own_graph(record.read_run(folder))
    opened = open_run(graph, folder)
    model = load_fitted(folder / "seed-0")
    weights = [tensor.numpy() for tensor in model.learned.tensors().values()]
    page = render(opened)
    return hashed(opened.rows, opened.probabilities, opened.attention, model.classes, *weights, len(page))


def make_stage(folder: Path, variant: int) -> None:
    """Leave a run with a finished stage and a second one under way, as a kill does."""
    from gamlp.train import stage
    from gamlp.train.checkpoint import Checkpoint

    graph = folder.parent / "graph-of-runs"
    if not graph.exists():
        make_graph(graph, 0)
    plain, due = stage.run_epoch, Checkpoint.due

    def run_epoch(*words: Any, key: list[int], **options: Any) -> float:
        if key[1:] == [1, 1]:
            raise KeyboardInterrupt
        return plain(*words, key=key, **options)

    stage.run_epoch = run_epoch
    Checkpoint.due = lambda self: self.path is not None  # type: ignore[method-assign]
    try:
        words = ["train", str(graph), "--method", "gamlp-jk+rlu", "--seeds", "1", "--out", str(folder)]
        done = command([*words, *settings("epochs=2,2", "threshold=0.4", f"weight_decay={variant / 100}")])
        assert done["code"] == 130, done
    finally:
        stage.run_epoch, Checkpoint.due = plain, due  # type: ignore[method-assign]


def read_stage(folder: Path) -> str:
    """Return a hash of what the run gives when it is resumed."""
    done = command(["train", "--resume", str(folder), "--json"])
    if done["code"]:
        raise Refused(done["code"], done["err"])
    return hashed(np.load(folder / "seed-0" / "probabilities.npy"), json.loads(done["out"])["test_accuracy"])


class Refused(Exception):
    """The command line refused it, or broke down."""


def make_classifier(folder: Path, variant: int) -> None:
    from gamlp import GAMLPClassifier

    edges, features, labels, _ = tables(folder.with_name("unused"), variant)
    classifier = GAMLPClassifier("gamlp-jk", epochs=2, hidden=4, hops=1, random_state=variant)
    classifier.fit(features, labels, adjacency=adjacency_of(edges)).save(folder)


def adjacency_of(edges: np.ndarray) -> Any:
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(edges)), edges.T), shape=(24, 24)).tocsr()


def read_classifier(folder: Path) -> str:
    from gamlp import GAMLPClassifier

    loaded = GAMLPClassifier.load(folder)
    weights = [tensor.numpy() for tensor in loaded._fitted.learned.tensors().values()]
    return hashed(loaded.probabilities_, loaded.attention_, loaded.classes_, loaded.get_params(), *weights)


def make_embeddings(folder: Path, variant: int) -> None:
    from gamlp.embed.settings import EmbeddingSettings
    from gamlp.embed.train import train_embeddings
    from gamlp.embed.triples import Triples

    random = np.random.default_rng(variant)
    ends = random.integers(0, 20, (2, 60))
    triples = Triples(ends[0], random.integers(0, 2, 60), ends[1], entities=20, relation_names=("a", "b"))
    train_embeddings(triples, EmbeddingSettings(dimension=8, steps=3), seed=variant, folder=folder)


def read_embeddings(folder: Path) -> str:
    from gamlp.embed.result import load_embeddings

    found = load_embeddings(folder)
    return hashed(found.entities, found.relations, found.relation_names, found.settings, found.seed, found.scores)


def read_tables_in(*names: str, **options: str) -> Callable[[Path], str]:
    def read(folder: Path) -> str:
        from gamlp.graph.readers.tables import read_tables

        paths = [folder / name for name in names]
        return of_graph(read_tables(*paths, **{key: folder / name for key, name in options.items()}))

    return read


def read_with(module: str, name: str, *words: Any, file: str = "", **options: Any) -> Callable[[Path], str]:
    def read(folder: Path) -> str:
        import importlib

        reader = getattr(importlib.import_module(module), name)
        return of_graph(reader(folder / file if file else folder, *words, **options))

    return read


KINDS = [
    Kind("graph directory", make_graph, read_with("gamlp.graph.store", "load_graph")),
    Kind("hops", make_hops, read_hops),
    Kind("hops of a changed graph", make_layers, read_hops),
    Kind("run with its model", make_run, read_run, every=4),
    Kind("checkpoint", make_stage, read_stage, every=12),
    Kind("classifier", make_classifier, read_classifier),
    Kind("embeddings", make_embeddings, read_embeddings),
    Kind("CSV", make_csv, read_tables_in("edges.csv", "nodes.csv"), checked=False),
    Kind("Parquet", make_parquet, read_tables_in("edges.parquet", "nodes.parquet"), checked=False),
    Kind("npz and npy", make_arrays, read_tables_in("edges.npz", features="features.npy"), checked=False),
    Kind(
        "npz graph",
        make_npz,
        read_with("gamlp.graph.readers.npz_arrays", "read_npz", "x", file="graph.npz"),
        checked=False,
    ),
    Kind(
        "Planetoid", make_planetoid, read_with("gamlp.graph.readers.planetoid", "read_planetoid", "tiny"), checked=False
    ),
    Kind("OGB", make_ogb, read_with("gamlp.graph.readers.ogb", "read_ogb", "ogbn-x", split="time"), checked=False),
]
