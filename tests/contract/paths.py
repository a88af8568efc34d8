"""Small graphs in files, and every way to predictions as a function: train, resume, predict, compare, the estimator."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

QUICK = {"hidden": 8, "epochs": [6, 4], "hops": 2, "head_layers": 2, "label_layers": 1, "learning_rate": 0.02,
         "label_folds": 3, "threshold": 0.4}  # fmt: skip


MORE = {"directed": ["--directed"], "labels": ["--column", "label=go_*"]}


@dataclass(frozen=True)
class Case:
    """A method with settings, on one of the graphs."""

    method: str
    graph: str = "plain"
    settings: dict = field(default_factory=dict)

    @property
    def chosen(self) -> dict:
        """The quick settings that the method takes, and its own."""
        from gamlp.methods import method_named

        takes = method_named(self.method).takes
        if method_named(self.method).extra:
            return {"epochs": 6, "hidden": 8, **self.settings}
        return {key: value for key, value in QUICK.items() if takes(key)} | self.settings

    def __str__(self) -> str:
        return " ".join([self.method, self.graph, *(f"{key}={value}" for key, value in self.settings.items())])


def call(*words):
    """Run the command line in this process; return its JSON, or the error it ended with."""
    from gamlp.cli import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main([*(str(word) for word in words), "--json"])
    assert not left.value.code, err.getvalue()
    return json.loads(out.getvalue())


def set_words(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def result_of(run: Path, seed: int = 0):
    """Return the rows and probabilities that a run keeps of a seed."""
    return np.load(run / f"seed-{seed}" / "rows.npy"), np.load(run / f"seed-{seed}" / "probabilities.npy")


def confidences(table: Path):
    """Return the class and the confidence of each id in a file of predictions."""
    columns = parquet.read_table(table).to_pydict()
    return {
        one: (name, sure)
        for one, name, sure in zip(columns["id"], columns["predicted"], columns["confidence"], strict=True)
    }


class Worlds:
    """The graphs in files, by name, each with another one of the same columns."""

    def __init__(self, folder: Path, make_planted) -> None:
        self.folder = folder
        for seed, which in ((0, "train"), (1, "other")):
            graph = make_planted(nodes=90, features=4, degree=4, labelled=6, seed=seed)
            for kind in ("plain", "weighted", "numbered", "bare", "labels"):
                self._tables(graph, kind, which)
            self._types(graph, which)

    def words(self, kind: str, which: str = "train") -> list[str]:
        """Return how the command line is told of a graph."""
        if kind == "types":
            return [str(self.folder / f"types-{which}")]
        files = "plain" if kind == "directed" else kind
        words = [str(self.folder / f"{files}-{which}-{part}.parquet") for part in ("edges", "nodes")]
        return [*words, *MORE.get(kind, [])]

    def read(self, kind: str, which: str = "train"):
        """Return the same graph, read."""
        from gamlp.graph import read_graph

        words = self.words(kind, which)
        if kind == "types":
            return read_graph(words)
        return read_graph(words[:2], directed=kind == "directed", label="go_*" if kind == "labels" else None)

    def _tables(self, graph, kind, which):
        ids = {
            "numbered": np.arange(graph.nodes) * 7 + 3,
            "bare": np.arange(graph.nodes),
        }.get(kind, np.array([f"n{at}" for at in range(graph.nodes)]))
        parquet.write_table(
            edges_of(graph, ids, weighted=kind == "weighted"), self.folder / f"{kind}-{which}-edges.parquet"
        )
        nodes = nodes_of(graph, ids)
        nodes = nodes.select(["id", "label", "split"]) if kind == "bare" else nodes  # no features
        nodes = with_labels(nodes, graph.labels) if kind == "labels" else nodes
        parquet.write_table(nodes, self.folder / f"{kind}-{which}-nodes.parquet")

    def _types(self, graph, which):
        folder = self.folder / f"types-{which}"
        folder.mkdir()
        ids = np.array([f"n{at}" for at in range(graph.nodes)])
        csv.write_csv(edges_of(graph, ids, weighted=False), folder / "cites.csv")
        csv.write_csv(nodes_of(graph, ids), folder / "papers.csv")
        authors = np.arange(graph.nodes) % 20
        csv.write_csv(pa.table({"who": authors, "what": ids}), folder / "wrote.csv")
        (folder / "hetero.toml").write_text(
            'target = "paper"\n[nodes.paper]\nfile = "papers.csv"\n[nodes.author]\ncount = 20\n'
            '[relations.cites]\nfile = "cites.csv"\nsource = "paper"\ntarget = "paper"\n'
            '[relations.wrote]\nfile = "wrote.csv"\nsource = "author"\ntarget = "paper"\ncolumns = ["who", "what"]\n'
        )


def edges_of(graph, ids, *, weighted):
    source = np.repeat(np.arange(graph.nodes), np.diff(graph.adjacency.indptr))
    target = graph.adjacency.indices
    columns = {"source": ids[source], "target": ids[target]}
    if weighted:
        columns["weight"] = ((source + target) % 3 + 1).astype(np.float32)
    return pa.table(columns)


def nodes_of(graph, ids):
    split = np.full(graph.nodes, "", dtype=object)
    for name in ("train", "valid", "test"):
        split[getattr(graph.split, name)] = name
    features = {f"x{at}": graph.features[:, at] for at in range(graph.features.shape[1])}
    return pa.table({"id": ids, "label": np.array(graph.classes)[graph.labels], "split": split.astype(str), **features})


def with_labels(nodes, classes):
    """Two labels a node in place of its class, the second with gaps."""
    second = pa.array((classes > 0).astype(int), mask=np.arange(len(classes)) % 7 == 3)
    return (
        nodes.drop_columns(["label"])
        .append_column("go_a", pa.array((classes == 0).astype(int)))
        .append_column("go_b", second)
    )


@pytest.fixture(scope="session")
def worlds(tmp_path_factory, make_planted):
    return Worlds(tmp_path_factory.mktemp("worlds"), make_planted)


@pytest.fixture(scope="session")
def trained(worlds, tmp_path_factory):
    """Train a case by the command line, once: case → its run directory."""
    runs = {}

    def train(case: Case) -> Path:
        if str(case) not in runs:
            out = tmp_path_factory.mktemp("runs") / "run"
            call("train", *worlds.words(case.graph), *asked(case), "--out", out)
            runs[str(case)] = out
        return runs[str(case)]

    return train


def asked(case):
    """Return the words for a case that train and compare share, beside the graph."""
    return ["--method", case.method, "--seeds", 1, *set_words(case.chosen)]
