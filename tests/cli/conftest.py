"""The command line called in this process, and small graphs in files for it."""

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

SMALL = ("hidden=8", "epochs=3,2", "head_layers=2", "label_layers=2", "hops=2", "learning_rate=0.01")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def run_gamlp(*words: object) -> Outcome:
    """Run the command line with these words."""
    from gamlp.cli import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return Outcome(left.value.code or 0, out.getvalue(), err.getvalue())


@dataclass(frozen=True)
class Files:
    """A graph with 90 nodes as two tables; ids are words."""

    edges: Path
    nodes: Path


def edge_table(graph, ids) -> pa.Table:
    source = np.repeat(np.arange(graph.nodes), np.diff(graph.adjacency.indptr))
    return pa.table({"source": ids[source], "target": ids[graph.adjacency.indices]})


def node_table(graph, ids) -> pa.Table:
    split = np.full(graph.nodes, "", dtype=object)
    for name in ("train", "valid", "test"):
        split[getattr(graph.split, name)] = name
    columns = {"id": pa.array(ids), "label": pa.array(np.array(graph.classes, dtype=object)[graph.labels])}
    features = {f"x{column}": graph.features[:, column] for column in range(graph.features.shape[1])}
    return pa.table({**columns, "split": pa.array(split), **features})


def write_files(graph, folder: Path, kind: str = "csv") -> Files:
    ids = np.array([f"node-{at}" for at in range(graph.nodes)], dtype=object)
    folder.mkdir(exist_ok=True, parents=True)
    files = Files(folder / f"edges.{kind}", folder / f"nodes.{kind}")
    write = csv.write_csv if kind == "csv" else parquet.write_table
    write(edge_table(graph, ids), files.edges)
    write(node_table(graph, ids), files.nodes)
    return files


@pytest.fixture(scope="session")
def gamlp():
    """The command line as a function of its words."""
    return run_gamlp


@pytest.fixture(scope="session")
def quick() -> list[str]:
    """Settings with which training takes no time."""
    return [word for setting in SMALL for word in ("--set", setting)]


@pytest.fixture(scope="session")
def small(make_planted):
    """A graph of 90 nodes: 18 train, 45 validate, 27 test."""
    return make_planted(nodes=90, features=4, degree=4, labelled=6)


@pytest.fixture(scope="session")
def files(small, tmp_path_factory) -> Files:
    return write_files(small, tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="session")
def files_of():
    """Write a graph as two tables: (graph, folder) → Files."""
    return write_files
