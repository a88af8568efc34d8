"""A small run on tables, its service, and a client that speaks to an app without a socket."""

import asyncio
import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

SMALL = ("hidden=8", "epochs=3,2", "head_layers=2", "label_layers=2", "hops=2", "learning_rate=0.01")


def outcome(*words: object) -> tuple[int, str, str]:
    """Run the command line; return its code and what it printed on standard output and standard error."""
    from gamlp.cli import main

    out, told = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(told), pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0), out.getvalue(), told.getvalue()


def run_gamlp(*words: object) -> str:
    """Run the command line, which must succeed, and return what it prints."""
    code, out, told = outcome(*words)
    assert code == 0, told
    return out


@dataclass(frozen=True)
class Run:
    folder: Path
    edges: Path
    nodes: Path


def train(graph, folder: Path, *, method: str, ids: str = "node-{}") -> Run:
    """Write a graph as two tables, whose ids are words, and train on it."""
    ids = np.array([ids.format(at) for at in range(graph.nodes)], dtype=object)
    source = np.repeat(np.arange(graph.nodes), np.diff(graph.adjacency.indptr))
    edges = pa.table({"source": ids[source], "target": ids[graph.adjacency.indices]})
    known = {"id": pa.array(ids), "label": pa.array(np.array(graph.classes, dtype=object)[graph.labels])}
    nodes = pa.table({**known, **{f"x{at}": graph.features[:, at] for at in range(graph.features.shape[1])}})
    run = Run(folder / "run", folder / "edges.csv", folder / "nodes.csv")
    csv.write_csv(edges, run.edges)
    csv.write_csv(nodes, run.nodes)
    train_on([run.edges, run.nodes], run.folder, method=method)
    return run


def train_on(graph: list[Path], folder: Path, *, method: str) -> None:
    """Train a small network, or what has nothing to train."""
    settings = [word for setting in SMALL for word in ("--set", setting)] if method.startswith("gamlp") else []
    run_gamlp("train", *graph, "--out", folder, "--seeds", 1, "--method", method, *settings)


def opened(run: Path, graph: Path | None = None):
    """Return a run with its service, as gamlp serve opens it."""
    from gamlp.cli.options import ComputeOptions
    from gamlp.cli.serve import opened
    from gamlp.serve.limits import Limits

    return opened(run, None, None, ComputeOptions(), Limits(), graph)


@dataclass(frozen=True)
class Standing:
    """A service that has no other versions."""

    service: object
    count: int = 0


class Client:
    """Sends requests to an app, one after the other or several at a time."""

    def __init__(self, app, **options) -> None:
        self.runner = asyncio.Runner()
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", **options)

    def get(self, path, **options) -> httpx.Response:
        return self.runner.run(self.client.get(path, **options))

    def post(self, path, content, **options) -> httpx.Response:
        """Send JSON: an object, or bytes as they are."""
        kind = {"content-type": "application/json"}
        body = {"content": content} if isinstance(content, bytes) else {"json": content}
        return self.runner.run(self.client.post(path, **body, **{"headers": kind, **options}))

    def together(self, *requests) -> list[httpx.Response]:
        """Send several at a time: (method, path, options)."""

        async def all_of_them():
            return await asyncio.gather(*(self.client.request(*words, **options) for *words, options in requests))

        return self.runner.run(all_of_them())

    def close(self) -> None:
        self.runner.run(self.client.aclose())
        self.runner.close()
